"""`millstream explain`: prints a form of the plan of a pipeline file, or draws its query graph."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.arguments import File, Values, choose, read, variables, warn_of_unused


class Form(StrEnum):
    """The forms of a plan."""

    logical = "logical"
    graph = "graph"
    spark = "spark"


def explain(
    file: File,
    form: Annotated[Form, typer.Option(help="The plan after all rules, the query graph, or its stages on Spark.")] = Form.logical,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", dir_okay=False, help="Draw the query graph into this file.", show_default=False)
    ] = None,
    values: Values = None,
) -> None:
    """Show how the queries of a pipeline file would run; no file is looked at.

    What `run` would refuse is refused, as far as that can be told without data.
    """
    if picture is not None and picture.suffix.lower() != ".png":
        said = f"a picture is a PNG, and `{picture.name}` does not end in .png"
        raise typer.BadParameter(said, param_hint="--picture")
    given = variables(values)
    text = read(file)

    from millstream.errors import PlanProblem, SinkProblem
    from millstream.pipeline import Pipeline
    from millstream.runtime.launch import Launch

    pipeline = Pipeline()
    warn_of_unused(given, text, file)
    pipeline.add_text(text, variables=given, file=str(file))
    choose(pipeline.settings, given, text)
    queries = pipeline.queries or [pipeline.explained(statement) for statement in pipeline.explains]
    if not queries:
        raise PlanProblem(f"{file}: there is no query to explain", hint="write INSERT INTO sink SELECT ... FROM stream")
    Launch.rehearse(pipeline, queries)
    print(pipeline.explain(form.value, queries))
    if picture is not None:
        from millstream.graph.execution import Execution
        from millstream.graph.picture import png

        try:
            picture.write_bytes(png(pipeline.sketched(queries), file.name, Execution.of(pipeline.settings).breaks))
            print(f"drawn into {picture}", file=sys.stderr)
        except OSError as error:
            raise SinkProblem(f"{picture}: {error.strerror}", hint="choose another file for --picture") from None

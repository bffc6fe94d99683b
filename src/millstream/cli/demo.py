"""`millstream demo`: a live auction with a silent source, on Spark, with a picture of what happens."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    out: Annotated[str, typer.Option(help="Where bids, results and the picture go.")] = "demo",
    runtime: Annotated[str, typer.Option(help="spark or local.")] = "spark",
    seconds: Annotated[float, typer.Option(help="How long the auction lasts.")] = 20.0,
) -> None:
    """Run a live auction in which one source falls silent, and say what happens."""
    from millstream.demo.story import tell

    tell(out, lambda line: print(line, flush=True), runtime=runtime, seconds=seconds, silent_after=min(7.0, seconds / 3))

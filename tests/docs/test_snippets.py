"""What the documents show runs: SQL blocks are planned and run in one process, Python blocks are executed, lists are complete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream as ms
from millstream.cli import COMMANDS, _load
from millstream.expressions.registry import FUNCTIONS
from millstream.plan.aggregates import FUNCTIONS as AGGREGATES
from millstream.plan.catalog import Stream
from millstream.settings import SETTINGS

ROOT = Path(__file__).parents[2]
LANGUAGE = (ROOT / "docs" / "language.md").read_text()
BLOCK = re.compile(r"(?:<!-- refused: (?P<refused>.*?) -->\n)?```(?P<kind>sql|python)\n(?P<body>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    kind: str
    body: str
    refused: str | None
    line: int


def snippets(page: str, kind: str) -> list[Snippet]:
    text = (ROOT / page).read_text()
    found = [Snippet(m["kind"], m["body"], m["refused"], text.count("\n", 0, m.start("body")) + 1) for m in BLOCK.finditer(text)]
    return [snippet for snippet in found if snippet.kind == kind]


# SQL: one session per page; its queries run together over a few tuples per stream.


@pytest.mark.parametrize("page", ["docs/language.md", "docs/dead-letters.md"])
def test_sql_runs(page: str, tmp_path: Path) -> None:
    session = ms.Session("local")
    (tmp_path / "rate.csv").write_text("currency,factor\nEUR,1.1\n")
    places = {"in": str(tmp_path), "out": str(tmp_path / "out")}
    for snippet in snippets(page, "sql"):
        if snippet.refused is not None:
            with pytest.raises(ms.MillstreamError, match=re.escape(snippet.refused)):
                session.sql(snippet.body, **places)
            continue
        try:
            session.sql(snippet.body, **places)
        except ms.MillstreamError as problem:
            pytest.fail(f"{page}, line {snippet.line}: {problem}")
    streams = [entry for entry in session.pipeline.catalog.relations if isinstance(entry, Stream)]
    result = ms.testing.run(session, {stream.name: sample(stream.read_schema) for stream in streams})
    assert set(result.tables) == {query.sink.name for query in session.pipeline.queries}
    for query in session.pipeline.queries:
        assert result.to_arrow(query.sink.name).num_rows > 0, f"{page}: the query into {query.sink.name} shows nothing"


def sample(schema: pa.Schema) -> list[dict[str, Any]]:
    """Tuples one second apart that agree in all their keys, so that joins find partners."""
    return [{field.name: _value(field.type, second) for field in schema} for second in range(3)]


def _value(kind: pa.DataType, second: int) -> Any:
    if pa.types.is_timestamp(kind):
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)
    if pa.types.is_boolean(kind):
        return False
    if pa.types.is_decimal(kind):
        return Decimal(second)
    if pa.types.is_date(kind):
        return date(2026, 1, 1)
    if pa.types.is_floating(kind):
        return 150.0
    return 1 if pa.types.is_integer(kind) else "a"


# Python: the blocks of a page one after the other in one namespace, in a directory with the README's first pipeline.


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bids").mkdir()
    for kind, name in (("csv", "bids/1.csv"), ("sql", "bids.sql")):
        found = re.search(rf"```{kind}\n(.*?)```", readme, re.DOTALL)
        assert found is not None
        (tmp_path / name).write_text(found[1])
    namespace: dict[str, Any] = {}
    for snippet in snippets(page, "python"):
        # As many empty lines before it as the page has, so that a traceback names the right one.
        exec(compile("\n" * (snippet.line - 1) + snippet.body, str(ROOT / page), "exec"), namespace)


# Lists: what the language page lists is all there is.


def test_every_setting_is_listed() -> None:
    section = LANGUAGE.split("\n## SET\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w.]+)` \|", section, re.M)) == set(SETTINGS)


def test_every_function_is_listed() -> None:
    section = LANGUAGE.split("\n## Expressions\n")[1].split("\n## ")[0]
    listed = set(re.findall(r"`(\w+)`", section))
    assert set(FUNCTIONS) - listed == set()


def test_every_aggregate_is_listed() -> None:
    section = LANGUAGE.split("\n### Aggregation\n")[1].split("\n### ")[0]
    assert set(AGGREGATES.values()) - set(re.findall(r"`(\w+)`", section)) == set()


@pytest.mark.parametrize("name", [name for name in COMMANDS if (ROOT / "src" / "millstream" / "cli" / f"{name}.py").exists()])
def test_every_option_of_a_command_is_listed(name: str) -> None:
    line = re.search(rf"^millstream {name}\b.*$", LANGUAGE, re.M)
    assert line is not None
    options = [option for parameter in _load(name).params for option in parameter.opts if option.startswith("--")]
    assert [option for option in options if option != "--help" and option not in line[0]] == []

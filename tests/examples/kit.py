"""Runs the files under examples/ and reads what they wrote, and what DuckDB makes of the same data."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from millstream.pipeline import Pipeline
from tests.runtimes.oracle import ask

ROOT = Path(__file__).parents[2] / "examples"
ORACLE = Path(__file__).parent / "oracle"
EXAMPLES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in sorted(ROOT.glob("*/*.sql"))}
Rows = list[dict[str, Any]]


def pipeline_of(name: str, out: Path) -> Pipeline:
    path = EXAMPLES[name]
    pipeline = Pipeline()
    pipeline.add_text(path.read_text(), variables={"in": str(path.parent / "data"), "out": str(out)}, file=str(path))
    return pipeline


def expected(name: str) -> dict[str, Rows]:
    """DuckDB's answer for each sink; "" for the only one, "letters" for how many dead letters of each kind."""
    text = (ORACLE / f"{name}.sql").read_text().replace("${in}", str(EXAMPLES[name].parent / "data"))
    parts = re.split(r"^-- (?:sink: )?(\w+)$", text, flags=re.M)
    if len(parts) == 1:
        return {"": _answer(text)}
    return {sink: _answer(query) for sink, query in zip(parts[1::2], parts[2::2], strict=True)}


def _answer(query: str) -> Rows:
    """Files hold decimals as numbers, and Python reads those as floats."""
    return [{name: float(v) if isinstance(v, Decimal) else v for name, v in row.items()} for row in ask(query)]


def written(place: Path, like: Rows) -> Rows:
    """The tuples in the files of a sink; text formats write 6.0 as 6, so `like` tells which columns are floats."""
    floats = {name for row in like for name, value in row.items() if isinstance(value, float)}
    rows = [row for path in sorted(place.glob("part-*")) for row in _rows(path)]
    return [{name: float(v) if name in floats and isinstance(v, int) else v for name, v in row.items()} for row in rows]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        yield from pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            yield json.loads(line)
    else:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                yield {name: _number(text) for name, text in row.items()}


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None

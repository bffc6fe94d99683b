"""What a checkpoint must agree with: the facts of a query that its state and its offsets were made from.

Left out is what may change between two lives of a run without changing an answer: settings, enabling timestamps, where a directory
of files stands, whether it is watched, the address of a socket, secret options, the path
and format of a sink, the contents of tables.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.core.types import columns_text
from millstream.graph.graph import Graph
from millstream.io import secrets_of
from millstream.io.places import local_path
from millstream.language.durations import NO_LIMIT
from millstream.language.statements import Key, Punctuate, Timestamp
from millstream.plan.catalog import SinkEntry, Stream
from millstream.runtime.visible import visible

FREE = ("path", "watch", "host", "port", "on_bad_file")
"""Options of a source that another life may change."""


@dataclass(frozen=True)
class Facts:
    """Readable lines by what they are about, and the fingerprint of everything behind them."""

    lines: Mapping[str, str]
    fingerprint: str

    @classmethod
    def of(cls, graph: Graph) -> Facts:
        lines: dict[str, str] = {}
        for vertex in graph.sources:
            lines |= _stream(vertex.config.stream)  # type: ignore[attr-defined]
        for vertex in graph.sinks:
            config: Any = vertex.config
            lines[f"the columns of sink {config.sink.name}"] = columns_text(visible(config.schema))
        for vertex in graph.vertices:
            reads = f" <- {', '.join(f'#{i}' for i in vertex.inputs)}" if vertex.inputs else ""
            lines[f"operator #{vertex.number}"] = vertex.config.label + reads
            lines |= {f"{name} at operator #{vertex.number}": value for name, value in vertex.config.choices.items()}
        whole = [lines, [_told(vertex.config) for vertex in graph.vertices]]
        return cls(lines, hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:16])

    def difference(self, before: Mapping[str, str]) -> str:
        """The first line that has changed since, in words."""
        for what in [*before, *self.lines]:
            was, now = before.get(what), self.lines.get(what)
            were, are = ("were", "are") if what.startswith("the columns ") else ("was", "is")
            if was is None:
                return f"{what} {are} new"
            if now is None:
                return f"{what} {are} gone"
            if was != now:
                return f"{what} {were} `{was}` and {are} `{now}`"
        return "an operator works otherwise"


def _stream(stream: Stream) -> dict[str, str]:
    time, name = stream.timestamp, f"stream {stream.name}"
    stamp = f"{time.kind} {time.column or ''} {time.order} {time.slack / 1e6:g} s".replace("  ", " ")
    lines = {
        f"the columns of {name}": columns_text(stream.columns),
        f"the timestamp of {name}": stamp + _ahead(time),
    }
    for number, clause in enumerate(stream.punctuate):
        lines[f"PUNCTUATE {number + 1} of {name}"] = f"on {clause.told} when {clause.when.sql('spark')}{_horizon(clause)}"
    for word, keys in (("UNIQUE", stream.unique), ("CLUSTERED BY", stream.clustered)):
        for number, key in enumerate(keys):
            lines[f"{word} {number + 1} of {name}"] = ", ".join(key.columns) + _horizon(key)
    for number, check in enumerate(stream.checks):
        lines[f"CHECK {number + 1} of {name}"] = check.condition.sql("spark")
    free = secrets_of(stream.options).union(FREE)
    options = {key: value for key, value in stream.options.items() if key not in free}
    path = stream.options.get("path")
    if path is not None and not os.path.isdir(local_path(path)):
        options["path"] = local_path(path)  # offsets name files below a directory without it, and others with their path
    lines[f"the source of {name}"] = ", ".join(f"{k} = {v}" for k, v in sorted(options.items())) or type(stream.source).__name__
    return lines


def _ahead(time: Timestamp) -> str:
    if time.ahead is None:
        return ""
    return " ahead none" if time.ahead == NO_LIMIT else f" ahead {time.ahead / 1e6:g} s"


def _horizon(clause: Punctuate | Key) -> str:
    return "" if clause.horizon is None else f" for {clause.horizon / 1e6:g} s"


def _told(value: Any) -> Any:
    """A configuration as JSON, down to its last field."""
    if isinstance(value, (Stream, SinkEntry)):
        return value.name
    if isinstance(value, exp.Expr):
        return value.sql("spark")
    if isinstance(value, pa.Schema):
        return ", ".join(f"{column.name} {column.type}" for column in value)
    if is_dataclass(value):
        return [
            type(value).__name__,
            *(_told(getattr(value, f.name)) for f in fields(value) if f.metadata.get("fact", True)),
        ]
    if isinstance(value, (list, tuple)):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return [[str(key), _told(each)] for key, each in sorted(value.items(), key=lambda pair: str(pair[0]))]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value) if isinstance(value, pa.DataType) else type(value).__name__

"""The catalog holds what the statements of a session have declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import pyarrow as pa
from sqlglot import exp

from millstream.core.punctuation import Punctuation
from millstream.core.types import HIDDEN, SEQUENCE, TIMESTAMP, is_hidden
from millstream.errors import NameProblem, Place, TypeProblem
from millstream.expressions import compile_expression, name_of
from millstream.language.statements import Check, CreateSink, CreateStream, CreateTable, CreateView, Ets, Key, Punctuate, Timestamp
from millstream.plan.promised import comparable, impossible

T = TypeVar("T")

STAMP = HIDDEN + "ts"
"""The hidden time of streams without a timestamp column, and of join results."""


@dataclass(frozen=True)
class Stream:
    """A declared stream; two streams are the same when their names are."""

    name: str
    columns: pa.Schema = field(compare=False)
    timestamp: Timestamp = field(compare=False)
    punctuate: tuple[Punctuate, ...] = field(compare=False)
    ets: Ets = field(compare=False)
    options: dict[str, str] = field(compare=False)
    place: Place | None = field(compare=False, default=None)
    source: Any = field(compare=False, default=None)
    """A ready source (Python API, tests) in place of options."""
    unique: tuple[Key, ...] = field(compare=False, default=())
    clustered: tuple[Key, ...] = field(compare=False, default=())
    checks: tuple[Check, ...] = field(compare=False, default=())

    @classmethod
    def of(cls, statement: CreateStream) -> Stream:
        columns = pa.schema([(c.name, c.type) for c in statement.columns])
        for clause in statement.punctuate:
            kind = compile_expression(clause.when, columns).type
            if not pa.types.is_boolean(kind):
                said = f"PUNCTUATE ... WHEN takes a condition, `{clause.when.sql('spark')}` is {name_of(kind)}"
                raise TypeProblem(said, place=clause.place, hint="compare it with something, such as `kind = 'heartbeat'`")
            comparable(clause, columns)
        made = cls(
            statement.name,
            columns,
            statement.timestamp,
            statement.punctuate,
            statement.ets,
            dict(statement.options),
            statement.place,
            unique=statement.unique,
            clustered=statement.clustered,
            checks=statement.checks,
        )
        _ = made.bounds
        return made

    @property
    def time(self) -> str:
        """The progressing attribute: the declared column, or a hidden one for latent streams."""
        return self.timestamp.column or STAMP

    @property
    def closings(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each of its value punctuations, with the time where one is group-wise."""
        marked = (p.columns for p in self.punctuate if p.columns != (self.time,))
        return (*marked, *(key.columns for key in (*self.unique, *self.clustered)))

    @property
    def closed_columns(self) -> tuple[str, ...]:
        """All columns of its value punctuations, each once; with the time where some hold up to one."""
        timed = any(p.horizon is not None for p in self.punctuate) or any(key.horizon is not None for key in self.unique)
        return tuple(dict.fromkeys([column for columns in self.closings for column in columns] + [self.time] * timed))

    def closers(self, columns: Iterable[str]) -> str:
        """The clauses that may have closed a value of these columns, in words."""
        found = set(columns) - {self.time}
        clauses = [(p.columns, p.text) for p in self.punctuate if p.columns != (self.time,)]
        for word, keys in (("UNIQUE", self.unique), ("CLUSTERED BY", self.clustered)):
            clauses += [(key.columns, f"{word} ({', '.join(key.columns)})") for key in keys]
        fitting = [text for names, text in clauses if set(names) - {self.time} == found]
        return " or ".join(dict.fromkeys(fitting))

    @cached_property
    def bounds(self) -> tuple[tuple[Check, tuple[Punctuation, ...]], ...]:
        """Each CHECK with what it promises from the start."""
        kinds = {c.column: self.columns.field(c.column).type for c in self.checks}
        return tuple((c, tuple(Punctuation.of({c.column: p}) for p in impossible(c, kinds[c.column]))) for c in self.checks)

    @cached_property
    def schema(self) -> pa.Schema:
        """Everything a tuple of this stream carries: declared columns, hidden time, arrival number."""
        schema = self.columns
        if self.time not in schema.names:
            schema = schema.append(pa.field(self.time, TIMESTAMP))
        return schema.append(pa.field(SEQUENCE, pa.int64()))

    @property
    def read_schema(self) -> pa.Schema:
        """The columns that the source itself provides."""
        if self.timestamp.kind != "internal":
            return self.columns
        return pa.schema([f for f in self.columns if f.name != self.time])


@dataclass(frozen=True)
class Table:
    """A declared static relation."""

    name: str
    columns: pa.Schema = field(compare=False)
    options: dict[str, str] = field(compare=False)
    place: Place | None = field(compare=False, default=None)
    rows: Any = field(compare=False, default=None)
    """Ready rows (a pa.Table) in place of options."""

    @classmethod
    def of(cls, statement: CreateTable) -> Table:
        return cls(statement.name, pa.schema([(c.name, c.type) for c in statement.columns]), dict(statement.options), statement.place)


@dataclass(frozen=True)
class SinkEntry:
    """A declared sink."""

    name: str
    options: dict[str, str] = field(compare=False)
    place: Place | None = field(compare=False, default=None)
    sink: Any = field(compare=False, default=None)
    """A ready sink (Python API, tests) in place of options."""

    @classmethod
    def of(cls, statement: CreateSink) -> SinkEntry:
        return cls(statement.name, dict(statement.options), statement.place)


class Names(Generic[T]):
    """A case-insensitive dictionary that keeps the user's spelling."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, tuple[str, T]] = {}

    def add(self, name: str, entry: T, place: Place | None = None) -> None:
        if is_hidden(name):
            raise NameProblem.reserved(name, place)
        if name.lower() in self._entries:
            hint = "choose another name; outside a run CREATE OR REPLACE replaces it, in Python replace=True"
            raise NameProblem(f"{self.kind} `{name}` is declared twice", place=place, hint=hint)
        self._entries[name.lower()] = (name, entry)

    def get(self, name: str) -> T | None:
        found = self._entries.get(name.lower())
        return found[1] if found else None

    def need(self, name: str, place: Place | None = None) -> T:
        found = self._entries.get(name.lower())
        if found is None:
            raise NameProblem.unknown(self.kind, name, self.names(), place=place)
        return found[1]

    def names(self) -> list[str]:
        return [spelled for spelled, _ in self._entries.values()]

    def replace(self, name: str, entry: T) -> None:
        self._entries[name.lower()] = (name, entry)

    def copy(self) -> Names[T]:
        made: Names[T] = Names(self.kind)
        made._entries = dict(self._entries)
        return made

    def __iter__(self) -> Iterator[T]:
        return (entry for _, entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True)
class BoundView:
    """The plan of a view, and the declarations of all that it reads."""

    view: CreateView
    plan: Any
    read: dict[str, Stream | Table | CreateView]

    @classmethod
    def of(cls, view: CreateView, plan: Any, catalog: Catalog) -> BoundView:
        read: dict[str, Stream | Table | CreateView] = {}
        for table in view.query.find_all(exp.Table):
            name = table.name.lower()
            entry = catalog.relations.need(name)
            read[name] = entry
            if isinstance(entry, CreateView):
                read |= catalog.bound[name].read
        return cls(view, plan, read)

    def holds(self, catalog: Catalog) -> bool:
        """True when nothing that it reads has been declared anew."""
        return all(catalog.relations.get(name) is entry for name, entry in self.read.items())


class Catalog:
    """Streams, tables and views share one space of names, sinks have their own."""

    def __init__(self) -> None:
        self.relations: Names[Stream | Table | CreateView] = Names("stream, table or view")
        self.sinks: Names[SinkEntry] = Names("sink")
        self.bound: dict[str, BoundView] = {}
        """Views that have been bound, by name in lower case."""

    def names_of(self, entry: Stream | Table | CreateView | SinkEntry) -> Names[Any]:
        """The space of names in which something is declared."""
        return self.sinks if isinstance(entry, SinkEntry) else self.relations

    def reads(self, query: exp.Expr) -> set[str]:
        """The names, in lower case, of all that a query reads, also by way of views."""
        found: set[str] = set()
        left = [query]
        while left:
            for name in {table.name.lower() for table in left.pop().find_all(exp.Table)} - found:
                found.add(name)
                if isinstance(entry := self.relations.get(name), CreateView):
                    left.append(entry.query)
        return found

    def copy(self) -> Catalog:
        made = Catalog()
        made.relations, made.sinks, made.bound = self.relations.copy(), self.sinks.copy(), dict(self.bound)
        return made

"""What a pipeline file says, one frozen value per statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa
from sqlglot import exp

from millstream.errors import Place


@dataclass(frozen=True)
class Column:
    """A declared column of a stream or table, or a parameter of an aggregate."""

    name: str
    type: pa.DataType
    place: Place


@dataclass(frozen=True)
class Timestamp:
    """The origin of a tuple's timestamp, and its greatest disorder (`slack`, microseconds).

    `ahead` is how far after its arrival it may lie: None unless declared, `NO_LIMIT` for AHEAD NONE.
    """

    kind: Literal["external", "internal", "latent"]
    column: str | None = None
    order: Literal["ordered", "slack", "punctuated"] = "ordered"
    slack: int = 0
    ahead: int | None = None


@dataclass(frozen=True)
class Span:
    """Values from `low` to `high`, each an expression; None leaves an end open."""

    low: exp.Expr | None = None
    high: exp.Expr | None = None
    low_inclusive: bool = True
    high_inclusive: bool = True


@dataclass(frozen=True)
class Members:
    """The values of a list of expressions."""

    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Punctuate:
    """A row for which `when` holds promises that no later tuple has its values in `columns`, or those of `values` in its one column."""

    columns: tuple[str, ...]
    when: exp.Expr
    place: Place
    values: Span | Members | None = None
    on: exp.Expr | None = None
    """The condition that stands for `values` in the text."""
    horizon: int | None = None
    """Microseconds for which a broken promise is recognised: the time of the tuple, from that of the promise on; None for ever."""

    @property
    def told(self) -> str:
        """What stands in the parentheses."""
        return ", ".join(self.columns) if self.on is None else self.on.sql("spark")

    @property
    def text(self) -> str:
        """The clause as a person would look for it."""
        return f"PUNCTUATE ON ({self.told}) WHEN {self.when.sql('spark')}"


@dataclass(frozen=True)
class Key:
    """Columns of which a stream promises something together: `UNIQUE (...)` or `CLUSTERED BY (...)`."""

    columns: tuple[str, ...]
    place: Place
    horizon: int | None = None
    """See `Punctuate`."""


@dataclass(frozen=True)
class Check:
    """The values that can occur in a column, beside null."""

    column: str
    values: Span | Members
    condition: exp.Expr
    place: Place


@dataclass(frozen=True)
class Ets:
    """When enabling timestamps are made; `period` and `skew` are microseconds, and a skew that was not declared is None."""

    policy: Literal["on-demand", "every", "none"] = "on-demand"
    period: int | None = None
    skew: int | None = None


class Written(str):
    """The value of an option, with where it stands in the filled-in text."""

    start: int
    end: int

    @classmethod
    def at(cls, value: str, start: int, end: int) -> Written:
        made = cls(value)
        made.start, made.end = start, end
        return made


@dataclass(frozen=True)
class CreateStream:
    name: str
    columns: tuple[Column, ...]
    timestamp: Timestamp
    punctuate: tuple[Punctuate, ...]
    ets: Ets
    options: dict[str, str]
    place: Place
    unique: tuple[Key, ...] = ()
    clustered: tuple[Key, ...] = ()
    checks: tuple[Check, ...] = ()
    replace: bool = False


@dataclass(frozen=True)
class CreateTable:
    name: str
    columns: tuple[Column, ...]
    options: dict[str, str]
    place: Place
    replace: bool = False


@dataclass(frozen=True)
class CreateSink:
    name: str
    options: dict[str, str]
    place: Place
    replace: bool = False


@dataclass(frozen=True)
class CreateView:
    name: str
    query: exp.Query
    place: Place
    replace: bool = False


@dataclass(frozen=True)
class CreateAggregate:
    """An aggregate written by the user; `language` is lower case, `body` the text after AS."""

    name: str
    parameters: tuple[Column, ...]
    returns: pa.DataType
    language: str
    body: str
    place: Place


@dataclass(frozen=True)
class Insert:
    """A continuous query and the sink its answer goes to."""

    sink: str
    query: exp.Query
    place: Place
    named: Place | None = None
    """The place of the sink's name."""


@dataclass(frozen=True)
class DropQuery:
    """No more of the queries that write into a sink."""

    sink: str
    place: Place


@dataclass(frozen=True)
class Explain:
    form: Literal["logical", "graph", "spark"]
    query: exp.Query | Insert
    place: Place


@dataclass(frozen=True)
class SetOption:
    """A choice of physical policy; `name` is lower case with dots."""

    name: str
    value: str | int | float | bool
    place: Place


Statement: TypeAlias = CreateStream | CreateTable | CreateSink | CreateView | CreateAggregate | Insert | DropQuery | Explain | SetOption

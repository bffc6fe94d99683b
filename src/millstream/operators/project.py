"""Project computes columns; promises about a column hold for what is computed from it in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import pyarrow as pa
from sqlglot import exp

from millstream.core import types
from millstream.core.block import Block, empty_batch
from millstream.core.punctuation import Constant, OneOf, Part, Pattern, Punctuation, Range, is_below, plain_values
from millstream.expressions import Monotone, compile_expression, evaluate_guarded, monotone
from millstream.operators.contract import Config, Due, Output, UnaryOperator
from millstream.operators.failures import failure_letters
from millstream.plan.scope import column


@dataclass(frozen=True)
class Project(Config):
    """Paper 004, section 5.4. A linear punctuation `ts < t` becomes `f(ts) < f(t)` for every non-decreasing f(ts)."""

    input: pa.Schema
    columns: tuple[tuple[str, exp.Expr], ...]
    origin: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, compile_expression(e, self.input).type) for name, e in self.columns])

    @property
    def label(self) -> str:
        return "project " + ", ".join(
            n if isinstance(e, exp.Column) and e.name == n else f"{e.sql('spark')} as {n}" for n, e in self.columns
        )

    @cached_property
    def renames(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, expression in self.columns:
            if isinstance(expression, exp.Column):
                found.setdefault(expression.name, []).append(name)
        return found

    @cached_property
    def moving(self) -> list[tuple[str, Monotone]]:
        rules = ((name, monotone(e, self.input)) for name, e in self.columns)
        return [(name, rule) for name, rule in rules if rule is not None]

    def translate(self, punctuation: Punctuation) -> tuple[Punctuation, ...]:
        if punctuation.is_end:
            return (punctuation,)
        if punctuation.is_linear:
            ((attribute, pattern),) = punctuation.patterns
            assert isinstance(pattern, Range)
            return tuple(Punctuation.linear(name, rule.apply(pattern.high)) for name, rule in self.moving if rule.column == attribute)
        # A value may go on under several names: each of them is promised.
        options = [self._images(name, pattern) for name, pattern in punctuation.patterns]
        return tuple(Punctuation.of(dict(chosen)) for chosen in product(*options))

    def ways(self, attribute: str, mark: int) -> tuple[tuple[Due, ...], ...]:
        found = ((rule.column, rule.reaching(mark)) for name, rule in self.moving if name == attribute)
        return tuple((Due(0, column, least),) for column, least in found if least is not None)

    def _images(self, name: str, pattern: Pattern) -> list[tuple[str, Pattern]]:
        """What a pattern on one column says of the columns that follow it."""
        if is_below(pattern):
            return [(new, Range(high=rule.apply(pattern.high))) for new, rule in self.moving if rule.column == name]  # type: ignore[attr-defined]
        found: list[tuple[str, Pattern]] = [(new, pattern) for new in self.renames.get(name, ())]
        if isinstance(pattern, (Constant, OneOf)):
            found += [(new, cast(pattern, self.input, name, e)) for new, e in self.columns if widens(e, name, self.input)]
        elif isinstance(pattern, (Part, Range)):  # values are cast when they are read
            found += [(new, pattern) for new, e in self.columns if widens(e, name, self.input)]
        return found

    @cached_property
    def _read(self) -> frozenset[str]:
        return frozenset(found.name for _, e in self.columns for found in e.find_all(exp.Column))

    def reads(self, column: str) -> bool:
        return column in self._read

    keeps_all = True

    def carrying(self, input: pa.Schema, columns: tuple[str, ...]) -> Project:
        return replace(self, input=input, columns=(*self.columns, *((name, column(name)) for name in columns)))

    def source_columns(self, columns: Iterable[str]) -> dict[str, str] | None:
        meanings = dict(self.columns)
        found = {}
        for name in columns:
            expression = meanings[name]
            if not isinstance(expression, exp.Column):
                return None
            found[name] = expression.name
        return found

    def build(self, journal: bool = False) -> RunningProject:
        return RunningProject(self)


def widens(expression: exp.Expr, name: str, schema: pa.Schema) -> bool:
    """True for a cast of a column that keeps different values different, such as INT to BIGINT (the keys of a join)."""
    if not isinstance(expression, exp.Cast) or not isinstance(expression.this, exp.Column) or expression.this.name != name:
        return False
    return types.widens(schema.field(name).type, compile_expression(expression, schema).type)


def cast(pattern: Constant | OneOf, schema: pa.Schema, name: str, expression: exp.Expr) -> Pattern:
    """The pattern over the values that a widening cast makes."""
    field = schema.field(name)
    values = pattern.array(field.type) if isinstance(pattern, OneOf) else pa.array([pattern.value], field.type)
    batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([field]))
    made = compile_expression(expression, batch.schema).evaluate(batch)
    return OneOf(made) if isinstance(pattern, OneOf) else Constant(plain_values(made)[0])


def _places(config: Project) -> list[int] | None:
    """Where the columns are in the input, when all of them are there as they come out: then nothing is computed."""
    found = [config.input.get_field_index(e.name) if isinstance(e, exp.Column) else -1 for _, e in config.columns]
    same = (place >= 0 and config.input.field(place).type == out.type for place, out in zip(found, config.schema, strict=True))
    return found if all(same) else None


class RunningProject(UnaryOperator):
    def __init__(self, config: Project) -> None:
        self.config = config
        self.needs = config.needs
        self.schema = config.schema
        self.empty = empty_batch(config.schema)
        self.places = _places(config)
        self.compiled = [compile_expression(e, config.input) for _, e in config.columns]

    def handle(self, block: Block, out: Output) -> None:
        batch = self.empty
        if self.places is not None and len(block):
            batch = pa.RecordBatch.from_arrays([block.batch.column(place) for place in self.places], schema=self.schema)
        elif len(block):
            arrays, _, failures = evaluate_guarded(self.compiled, block.batch)
            if failures:
                out.letters += failure_letters(self.config.origin, block.batch, failures)
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        out.put(batch, [new for old in block.punctuations for new in self.config.translate(old)])

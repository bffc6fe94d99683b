"""Promises of arcs that flow together, values declared finished, and what projections make of promises."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.punctuation import Constant, NoneOf, OneOf, Part, Pattern, Punctuation, Range
from millstream.operators.project import Project
from millstream.operators.promises import Promises
from millstream.state.closed import Closed
from millstream.state.registers import Registers

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("t", pa.int64())])


values = st.fixed_dictionaries(
    {
        "k": st.none() | st.integers(0, 3),
        "s": st.none() | st.sampled_from(["a", "b", ""]),
        "x": st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.5]),
        "t": st.integers(0, 5),
    }
)
SHAPES = [("k",), ("k*",), ("k<",), ("s*",), ("s",), ("x",), ("k", "s"), ("k", "t"), ("s", "t"), ("x", "t"), ("k", "s", "t")]
SHAPES += [("x*",), ("k+", "s+"), ("x+", "s+", "k+"), ("s!",), ("x!",)]
columns = st.sampled_from(SHAPES)


def group(k: int, t: int) -> Punctuation:
    return Punctuation.of({"k": Constant(k), "t": Range(high=t)})


def test_linear_promises_of_several_arcs_are_their_minimum() -> None:
    promises = Promises(2, SCHEMA)
    assert promises.take(0, Punctuation.linear("t", 5)) == []
    assert promises.take(1, Punctuation.linear("t", 3)) == [Punctuation.linear("t", 3)]
    assert promises.take(1, Punctuation.linear("t", 9)) == [Punctuation.linear("t", 5)]
    assert promises.take(0, Punctuation.end()) == [Punctuation.linear("t", 9)]
    assert promises.take(1, Punctuation.end()) == [Punctuation.end()]


def test_value_promises_wait_for_every_arc() -> None:
    promises = Promises(2, SCHEMA)
    assert promises.take(0, Punctuation.of({"k": OneOf((1, 2))})) == []
    assert promises.take(1, Punctuation.of({"k": Constant(2)})) == [Punctuation.of({"k": Constant(2)})]
    assert promises.take(1, Punctuation.end()) == [Punctuation.of({"k": OneOf((1, 2))})]


def test_group_wise_promises_meet_at_the_lower_time_and_keep_one_entry_a_group() -> None:
    promises = Promises(2, SCHEMA)
    assert promises.take(0, group(1, 10)) == []
    assert promises.take(1, group(1, 4)) == [group(1, 4)]
    assert promises.take(0, group(1, 20)) == []
    assert promises.take(1, group(1, 15)) == [group(1, 15)]
    for time in range(16, 100):
        promises.take(0, group(1, time))
    assert [len(promises.registers[f"closed {port} by k until t"]) for port in (0, 1)] == [1, 1]


@given(st.lists(st.tuples(st.integers(0, 1), columns, values)), st.randoms(use_true_random=False), st.lists(values, min_size=1))
def test_property_promises_of_two_arcs_are_what_both_have_promised(given_: list, chance: random.Random, tuples: list) -> None:
    promises, batch = Promises(2, SCHEMA), pa.RecordBatch.from_pylist(tuples, schema=SCHEMA)
    sides = [np.zeros(len(tuples), dtype=bool), np.zeros(len(tuples), dtype=bool)]
    told = np.zeros(len(tuples), dtype=bool)
    for port, names, row in given_:
        punctuation = _made(names, row, chance)
        sides[port] |= punctuation.matches(batch)
        for new in promises.take(port, punctuation):
            assert not (new.matches(batch) & ~(sides[0] & sides[1])).any()
            told |= new.matches(batch)
    assert not (told & ~(sides[0] & sides[1])).any()
    for new in promises.take(0, Punctuation.end()):
        told |= new.matches(batch)
    assert list(told) == list(sides[1])


def test_closed_values_merge_and_group_wise_ones_keep_the_latest() -> None:
    registers = Registers()
    closed = Closed(SCHEMA, registers, "closed")
    closed.add([Punctuation.of({"k": Constant(k)}) for k in range(1000)])
    assert [array.tolist() for array in registers["closed:k"].ranges] == [[0], [999]]
    closed.add([Punctuation.of({"s": Constant("a"), "t": Range(high=t)}) for t in range(1000)])
    assert len(registers["closed by s until t"]) == 1


@given(st.lists(st.tuples(columns, values)), st.lists(values, min_size=1), st.randoms(use_true_random=False))
def test_property_closed_matches_what_its_punctuations_match(closings: list, tuples: list, chance: random.Random) -> None:
    made = [_made(names, row, chance) for names, row in closings]
    closed = Closed(SCHEMA, Registers(), "closed")
    at = chance.randint(0, len(made))
    closed.add(made[:at])
    closed.add(made[at:])
    batch = pa.RecordBatch.from_pylist(tuples, schema=SCHEMA)
    wanted = np.logical_or.reduce([p.matches(batch) for p in made]) if made else np.zeros(len(tuples), dtype=bool)
    found = closed.matches(batch)
    naive = [any(_is(p, row) for p in made) for row in batch.to_pylist()]
    assert list(wanted) == naive
    assert list(np.zeros(len(tuples), dtype=bool) if found is None else found) == list(wanted)
    assert list(np.logical_or.reduce([*(p.matches(batch) for p in closed.promises()), np.zeros(len(tuples), bool)])) == list(wanted)
    for row in np.flatnonzero(wanted):
        assert closed.broken_by(batch.slice(int(row), 1)).matches(batch.slice(int(row), 1)).all()


def _made(names: tuple[str, ...], row: dict, chance: random.Random) -> Punctuation:
    if not names[0].endswith("+"):
        return Punctuation.of({n[0]: _pattern(n, row, chance) for n in names})
    combinations = [row, *([{**row, "k": 2}, {**row, "s": "b", "x": None}] if chance.random() < 0.5 else [])]
    return Punctuation.of(Part.all(pa.RecordBatch.from_pylist(combinations, schema=SCHEMA).select([n[0] for n in names])))


def _is(punctuation: Punctuation, row: dict) -> bool:
    """Whether a tuple matches, value by value."""
    parts = [(name, p) for name, p in punctuation.patterns if isinstance(p, Part)]
    if parts:
        rows = parts[0][1].rows.to_pylist()
        return any(all(_same(combination[name], row[name]) for name, _ in parts) for combination in rows)
    return all(_fits(pattern, row[name]) for name, pattern in punctuation.patterns)


def _fits(pattern: Pattern, value: object) -> bool:
    match pattern:
        case Constant(known):
            return _same(known, value)
        case OneOf(values):
            return any(_same(known, value) for known in values)
        case NoneOf(values):
            return value is not None and not any(_same(known, value) for known in values)
        case Range():
            return value is not None and pattern._holds(value)
    raise AssertionError(pattern)


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


def _pattern(name: str, row: dict, chance: random.Random) -> Pattern:
    if name == "k<":  # from the value on, or up to it, or around it
        value = row["k"] or 0
        return Range(*chance.choice([(value, None), (None, value), (value - 1, value + 1)]), chance.random() < 0.5, chance.random() < 0.5)
    if name.endswith("!"):
        return NoneOf(tuple(_key(value) for value in (row[name[0]], {"s": "b", "x": 1.5}[name[0]]) if value is not None))
    if name.endswith("*"):
        values = [row[name[0]], *({"k": [3, 7, None], "s": ["b", "c"], "x": [2.5]}[name[0]])]
        plain = [_key(value) for value in values]
        return OneOf(pa.array(values, SCHEMA.field(name[0]).type)) if chance.random() < 0.5 else OneOf(plain)
    return Range(high=row["t"]) if name == "t" else Constant(_key(row[name]))


def _key(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("expressions", "given_", "wanted"),
    [
        ({"a": "k", "b": "k"}, {"k": Constant(1)}, [{"a": Constant(1)}, {"b": Constant(1)}]),
        ({"a": "CAST(k AS DECIMAL(20,0))"}, {"k": OneOf((1, 2))}, [{"a": OneOf((1, 2))}]),
        ({"a": "CAST(k AS INT)"}, {"k": Constant(1)}, []),
        ({"a": "k + 1"}, {"k": Constant(1)}, []),
        ({"a": "k", "u": "t + 5"}, {"k": Constant(1), "t": Range(high=3)}, [{"a": Constant(1), "u": Range(high=8)}]),
        ({"a": "k"}, {"k": Constant(1), "t": Range(high=3)}, []),
        ({"u": "t div 2", "v": "t"}, {"t": Range(high=7)}, [{"u": Range(high=3)}, {"v": Range(high=7)}]),
    ],
)
def test_a_projection_passes_on_what_it_can(expressions: dict, given_: dict, wanted: list) -> None:
    project = Project(SCHEMA, tuple((name, sqlglot.parse_one(text, read="spark")) for name, text in expressions.items()))
    assert list(project.translate(Punctuation.of(given_))) == [Punctuation.of(w) for w in wanted]


def test_a_list_of_floats_knows_one_zero() -> None:
    for zeros in (OneOf(pa.array([-0.0, 1.5])), OneOf((0.0, 1.5))):
        assert zeros.matches(pa.array([0.0, -0.0, 2.5])).tolist() == [True, True, False]


@pytest.mark.parametrize("kind", ["DECIMAL(20,0)", "BIGINT"])
def test_combinations_pass_a_cast_that_loses_nothing(kind: str) -> None:
    schema = pa.schema([("k", pa.int32()), ("s", pa.string())])
    combinations = pa.RecordBatch.from_pydict({"k": [1, 2, None], "s": ["a", "b", "c"]}, schema=schema)
    expressions = {"wide": f"CAST(k AS {kind})", "s": "s"}
    project = Project(schema, tuple((name, sqlglot.parse_one(text, read="spark")) for name, text in expressions.items()))
    (told,) = project.translate(Punctuation.of(Part.all(combinations)))
    batch = pa.RecordBatch.from_pydict({"wide": [1, 1, 2, None], "s": ["a", "b", "b", "c"]}, schema=project.schema)
    assert told.matches(batch).tolist() == [True, False, True, True]

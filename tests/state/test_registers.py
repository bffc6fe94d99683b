"""Registers against a dictionary, with restarts from the journal."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.types import MIN_TIME
from millstream.state.listing import Listing
from millstream.state.ranges import Ranges, runs
from millstream.state.registers import Registers

NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NAMES, st.one_of(st.integers(), st.text(max_size=2), st.tuples(st.integers()))),
        st.tuples(st.sampled_from(["raise", "add"]), st.sampled_from("xy"), st.integers(-5, 5)),
        st.tuples(st.sampled_from(["grow", "shrink"]), st.sampled_from("tu"), st.frozensets(st.integers(0, 9), max_size=2)),
        st.tuples(st.sampled_from(["delete", "write", "restart"]), st.sampled_from("abctu"), st.none()),
        st.tuples(st.just("drop"), NAMES, st.floats(0, 1)),
    )
)


def plain(value: object) -> object:
    if not isinstance(value, Listing):
        return value
    return frozenset(np.flatnonzero(value.bounds([pa.array(range(10))]) > MIN_TIME).tolist())


@given(STEPS)
def test_restored_is_the_same(steps: list[tuple[str, str, object]]) -> None:
    registers, values, segments = Registers(journal=True), dict[str, object](), list[tuple[int, bytes]]()
    for action, name, value in steps:
        if action == "set":
            registers[name] = values[name] = value
        elif action == "raise":
            assert isinstance(value, int)
            before = values.get(name)
            rises = before is None or before < value  # type: ignore[operator]
            assert registers.raise_to(name, value) == rises
            if rises:
                values[name] = value
        elif action == "add":
            assert isinstance(value, int)
            assert registers.add(name, value) == values.get(name, 0)
            values[name] = values.get(name, 0) + value  # type: ignore[operator]
        elif action == "delete" and name in registers:
            del registers[name], values[name]
        elif action == "grow":
            assert isinstance(value, frozenset)
            keys = pa.RecordBatch.from_arrays([pa.array(sorted(value), pa.int64())], names=["k"])
            registers.grow(name, Listing, (keys, np.zeros(len(value), dtype=np.int64)))
            values[name] = values.get(name, frozenset()) | value  # type: ignore[operator]
        elif action == "shrink" and name in registers:
            assert isinstance(value, frozenset)
            registers.alter(name, "shrink", [pa.array(sorted(value), pa.int64())])
            values[name] -= value  # type: ignore[operator]
        elif action == "drop":  # the oldest segments, down to any of them
            assert isinstance(value, float)
            number = segments[-1][0] + 1 if segments else 1
            since = 1 + int(value * (number - 1))
            whole = registers.changes(number, since)
            assert whole is not None
            segments = [segment for segment in segments if segment[0] >= since] + [(number, whole.data)]
        elif action in ("write", "restart"):
            segment = registers.changes()
            segments += [(segments[-1][0] + 1 if segments else 1, segment.data)] if segment is not None else []
            assert registers.changes() is None
            assert registers.nbytes >= sum(len(pickle.dumps(v, protocol=5)) for v in values.values() if not isinstance(v, frozenset))
            if action == "restart":
                registers = Registers(journal=True)
                registers.restore(segments)
        assert {name: plain(registers[name]) for name in registers} == values
        assert len(registers) == len(values)


def test_a_mark_that_does_not_move_is_not_written() -> None:
    registers = Registers(journal=True)
    registers["mark"] = 7
    assert registers.changes() is not None
    registers["mark"] = 7
    assert not registers.raise_to("mark", 7)
    assert registers.changes() is None
    with pytest.raises(RuntimeError, match="no journal"):
        Registers().changes()


def test_what_grows_is_written_once() -> None:
    registers, written = Registers(journal=True), []
    for number in range(100):
        keys = pa.RecordBatch.from_pydict({"k": [f"value {number} {i}" for i in range(50)]})
        registers.grow("closed", Listing, (keys, np.full(50, number)))
        segment = registers.changes()
        assert segment is not None
        written.append(len(segment.data))
    assert max(written[1:]) < 1.2 * written[1]
    assert len(registers["closed"]) == 5000
    restored = Registers(journal=True)
    restored.restore([(1, registers.changes(1, 1).data)])  # type: ignore[union-attr]
    assert restored["closed"].bounds([pa.array(["value 7 3", "value 7 50", "value 99 0"])]).tolist() == [7, MIN_TIME, 99]


def test_values_that_merge_need_little() -> None:
    registers = Registers(journal=True)
    for number in range(1000):
        registers.grow("closed", Ranges, runs(np.arange(number * 100, number * 100 + 100)))
    assert registers.nbytes < 1000


def test_what_grew_in_a_segment_that_stays_may_have_begun_in_one_that_was_dropped() -> None:
    registers, segments = Registers(journal=True), []
    for number in (1, 2):
        registers.grow("closed", Ranges, runs(np.array([10 * number])))
        segments.append((number, registers.changes().data))  # type: ignore[union-attr]
    segments.append((3, registers.changes(3, 2).data))  # type: ignore[union-attr]
    restored = Registers(journal=True)
    restored.restore(segments[1:])
    assert [array.tolist() for array in restored["closed"].ranges] == [[10, 20], [10, 20]]

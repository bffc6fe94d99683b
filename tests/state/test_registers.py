"""Registers against a dictionary, with restarts from the journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.state.registers import Registers

NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NAMES, st.one_of(st.integers(), st.text(max_size=2), st.tuples(st.integers()))),
        st.tuples(st.sampled_from(["raise", "add"]), st.sampled_from("xy"), st.integers(-5, 5)),
        st.tuples(st.sampled_from(["delete", "write", "snapshot", "restart"]), NAMES, st.none()),
    )
)


@given(STEPS)
def test_restored_is_the_same(steps: list[tuple[str, str, object]]) -> None:
    registers, values, segments = Registers(journal=True), dict[str, object](), list[bytes]()
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
        elif action == "snapshot":
            whole = registers.changes(1, 1)
            segments = [(1, whole.data)] if whole is not None else []
        elif action in ("write", "restart"):
            segment = registers.changes()
            segments += [(len(segments) + 2, segment.data)] if segment is not None else []
            assert registers.changes() is None
            if action == "restart":
                registers = Registers(journal=True)
                registers.restore(segments)
        assert {name: registers[name] for name in registers} == values
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

"""What waits for order against a plain list: whatever the blocks, and whoever looks at the state meanwhile."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.block import Block
from millstream.core.punctuation import Constant, Punctuation
from millstream.core.types import TIMESTAMP
from millstream.operators import in_order
from millstream.operators.buffers import Buffer, Inputs
from millstream.operators.contract import OUTPUT, Output
from millstream.operators.in_order import InOrder, RunningInOrder
from millstream.operators.union import Union

SCHEMA = pa.schema([("n", pa.int64()), ("ts", TIMESTAMP)])
GAPS = st.lists(st.integers(0, 3), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tuples"), st.integers(0, 1), GAPS),
        st.tuples(st.just("promise"), st.integers(0, 1), st.integers(0, 4)),
        st.tuples(st.sampled_from(["look", "restart"])),
    ),
    max_size=40,
)


def block(rows: list[tuple[int, int]], *promises: Punctuation) -> Block:
    columns = [pa.array([n for n, _ in rows], pa.int64()), pa.array([t for _, t in rows], pa.int64()).view(TIMESTAMP)]
    return Block(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), promises)


class Waiting:
    """A union in order with two inputs, each of them in the order of time."""

    def __init__(self) -> None:
        config = InOrder(Union(SCHEMA, 2), (SCHEMA, SCHEMA), ("ts", "ts"), "ts")
        self.fresh = lambda: config.build(journal=True)
        self.operator: RunningInOrder = self.fresh()
        self.buffers = [Buffer(), Buffer()]
        self.inputs = Inputs([buffer.head() for buffer in self.buffers])
        self.segments: list[list[tuple[int, bytes]]] = [[] for _ in self.operator.state]
        self.out: list[tuple[int, int]] = []
        self.promised = -1

    def put(self, port: int, given: Block) -> None:
        self.buffers[port].put(given)
        out = Output()
        self.operator.step(self.inputs, out, None)
        for made in out.blocks:
            times = made.batch.column("ts").view(pa.int64()).to_pylist()
            assert all(time >= self.promised for time in times)
            self.out += zip(made.batch.column("n").to_pylist(), times, strict=True)
            marks = [p.patterns[0][1].high for p in made.punctuations if p.is_linear]  # type: ignore[attr-defined]
            self.promised = max([self.promised, *marks])

    def restart(self) -> None:
        """In another process, from the journal."""
        for log, container in zip(self.segments, self.operator.state, strict=True):
            segment = container.changes(len(log) + 1)
            if segment is not None:
                log.append((len(log) + 1, segment.data))
        self.operator = self.fresh()
        for log, container in zip(self.segments, self.operator.state, strict=True):
            container.restore(log)


@pytest.mark.parametrize("many", [0, 2, 16])
@given(steps=STEPS)
def test_tuples_go_when_no_register_is_behind_them(many: int, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_order, "MANY", many)
        waiting, at, came = Waiting(), [0, 0], list[tuple[int, int]]()
        tsm = [-1, -1]
        for action, *rest in steps:
            if action == "tuples":
                port, gaps = rest
                rows = []
                for gap in gaps:
                    at[port] += gap
                    rows.append((len(came), at[port]))
                    came.append(rows[-1])
                tsm[port] = max(tsm[port], at[port])
                waiting.put(port, block(rows))
            elif action == "promise":
                port, ahead = rest
                at[port] += ahead
                tsm[port] = max(tsm[port], at[port])
                waiting.put(port, block([], Punctuation.linear("ts", at[port])))
            elif action == "look":
                assert sum(len(rows) for rows in waiting.operator.state[:2]) == waiting.operator.waiting
            else:
                waiting.restart()
            gone = [(n, time) for n, time in came if time <= min(tsm)]
            assert sorted(waiting.out) == gone
            assert [time for _, time in waiting.out] == sorted(time for _, time in waiting.out)
            assert waiting.operator.waiting == len(came) - len(gone)
            left = [time for _, time in came if time > min(tsm)]
            dues = [due.mark for due in waiting.operator.due() if due.attribute == OUTPUT]
            assert dues == ([min(left)] if left else [])


def test_a_value_is_closed_when_no_tuple_of_it_waits() -> None:
    waiting = Waiting()
    closed = Punctuation.of({"n": Constant(7)})
    waiting.put(0, block([(7, 5)], closed))
    waiting.put(1, block([], closed))
    assert waiting.out == []
    out = Output()
    waiting.buffers[1].put(block([], Punctuation.linear("ts", 9)))
    waiting.operator.step(waiting.inputs, out, None)
    (made,) = out.blocks
    assert made.batch.column("n").to_pylist() == [7] and closed in made.punctuations

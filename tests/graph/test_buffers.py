"""A buffer with several heads against as many queues of its own."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.operators.buffers import Buffer, Head

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5)),
        st.tuples(st.just("take"), st.integers(0, 3), st.sampled_from([None, 1, 2, 10])),
        st.tuples(st.sampled_from(["join", "leave"]), st.integers(0, 3)),
    ),
    max_size=40,
)


@given(STEPS)
def test_each_head_sees_everything_once_and_in_order(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    buffer, heads, seen, wanted, count = Buffer(), dict[int, Head](), dict[int, list[int]](), dict[int, list[int]](), 0
    for action, which, *rest in steps:
        if action == "put":
            rows = list(range(count, count + which))
            count += which
            buffer.put(Block(pa.record_batch({"x": pa.array(rows, pa.int64())}), (Punctuation.linear("x", count),)))
            for number in heads:
                wanted[number] += [*rows, -count - 1]
        elif action == "join" and which not in heads:
            heads[which], seen[which], wanted[which] = buffer.head(), [], []
        elif action == "leave" and which in heads:
            heads.pop(which).leave()
        elif action == "take" and which in heads:
            (limit,) = rest
            block = heads[which].take(limit)
            if block is not None:
                assert limit is None or len(block) <= limit
                seen[which] += block.batch.column(0).to_pylist()
                seen[which] += [-p.patterns[0][1].high - 1 for p in block.punctuations]  # type: ignore[attr-defined]
        for number, head in heads.items():
            left = wanted[number][len(seen[number]) :]
            assert seen[number] == wanted[number][: len(seen[number])]
            assert head.rows == sum(x >= 0 for x in left)
            assert (len(head) > 0) == bool(left)
        assert len(buffer) == max((len(head) for head in heads.values()), default=0)


def test_a_block_is_held_once_for_all_and_freed_by_the_last() -> None:
    buffer = Buffer()
    heads = [buffer.head() for _ in range(1000)]
    for _ in range(5):
        buffer.put(Block(pa.record_batch({"x": [1, 2, 3]})))
    assert (len(buffer), buffer.rows) == (5, 15)
    for head in heads[:-1]:
        while head.take() is not None:
            pass
    assert (len(buffer), buffer.rows) == (5, 15)
    heads[-1].leave()
    assert (len(buffer), buffer.rows) == (0, 0)


def test_the_book_counts_tuples_and_punctuations_without_one() -> None:
    buffer = Buffer()
    head = buffer.head()
    promise = (Punctuation.linear("x", 9),)
    for rows in ([1, 2], [], []):
        buffer.put(Block(pa.record_batch({"x": pa.array(rows, pa.int64())}), promise))
    book = buffer.book
    assert (book.rows, book.promises, book.peak, book.most) == (2, 2, 2, 4)
    while head.take() is not None:
        pass
    assert (book.rows, book.promises, book.peak, book.most) == (0, 0, 2, 4)

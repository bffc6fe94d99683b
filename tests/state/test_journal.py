"""Numbers in few bytes come back as they were; a ledger knows from where on a journal is needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.state import journal, ledger
from millstream.state.ledger import Ledger

words = st.integers(-(2**63), 2**63 - 1)
near = st.integers(0, 300).flatmap(lambda base: st.lists(st.integers(base, base + 70_000), max_size=20))
counted = st.tuples(words, st.integers(0, 20)).map(lambda t: [max(-(2**63), min(t[0], 2**62)) + i for i in range(t[1])])


@given(st.lists(st.one_of(st.lists(words, max_size=20), near, counted), min_size=1, max_size=5), st.integers(-5, 5))
def test_numbers_come_back(columns: list[list[int]], apart: int) -> None:
    numbers = {f"c{i}": np.array(values, dtype=np.int64) for i, values in enumerate(columns)}
    numbers["like"] = numbers["c0"] + np.int64(apart)
    batch = pa.record_batch({"x": pa.array(["a", None])})
    header, found, (again,) = journal.unpack(journal.pack({"a": 1}, numbers, [batch]))
    assert header == {"a": 1} and again.equals(batch)
    assert {name: values.tolist() for name, values in found.items()} == {name: values.tolist() for name, values in numbers.items()}


@pytest.mark.parametrize(
    ("values", "size"),
    [
        (np.arange(10**6, 10**6 + 5000), 0),
        (np.full(5000, 7), 0),
        (np.arange(5000)[::-1].copy(), 0),
        (np.random.default_rng(1).integers(10**15, 10**15 + 200, 5000), 5000),
        (np.random.default_rng(1).integers(0, 2**30, 5000), 20_000),
    ],
)
def test_numbers_that_say_little_take_few_bytes(values: np.ndarray, size: int) -> None:
    assert size <= len(journal.pack({}, {"x": values, "y": values + 5}, [])) < size + 400


def test_a_journal_is_worn_when_half_of_it_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEAST", 0)
    book = Ledger()
    for number in range(1, 201):
        book.add(number, 10, 100)
    assert book.worn(1000, 201) == 0  # 2,000 rows written, of them 1,000 living
    since = book.worn(999, 201)
    assert since == 51
    book.drop(since)
    assert (book.rows, book.bytes) == (1500, 15_000)
    assert book.worn(0, 201) == 89
    for number in range(201, 500):
        book.add(number, 10, 100)
    assert book.rows == 1500 + 2990


def test_a_single_worn_segment_goes_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEAST", 0)
    book = Ledger()
    book.add(1, 0, 100)
    assert book.worn(0, 2) == 2


def test_registers_have_a_price_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a few rows between many closed values would seem to be dear, and nothing would ever be dropped."""
    monkeypatch.setattr(ledger, "LEAST", 0)
    book = Ledger()
    for number in range(1, 101):
        book.add(number, 1, 110, apart=100)
    assert book.worn(living=50, apart=5000, end=101) == 0  # 11,000 bytes, of which 5,500 would do
    assert book.worn(living=50, apart=100, end=101) == 26
    book.drop(26)
    assert (book.rows, book.bytes, book.apart) == (75, 75 * 110, 7500)

"""The counting sort against a sorted list."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.kernels.partition import bucket_of, partition_rows


@given(st.lists(st.integers(0, 6)))
def test_partition_is_a_stable_sort(buckets: list[int]) -> None:
    order, offsets = partition_rows(np.array(buckets, dtype=np.int32), 7)
    for b in range(7):
        assert order[offsets[b] : offsets[b + 1]].tolist() == [i for i, bucket in enumerate(buckets) if bucket == b]


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(1, 2**31 - 1))
def test_buckets_are_in_range_and_in_proportion(hashes: list[int], buckets: int) -> None:
    found = bucket_of(np.array(hashes, dtype=np.uint64), buckets)
    assert found.tolist() == [(hash >> 32) * buckets >> 32 for hash in hashes]


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="buckets"):
        bucket_of(np.zeros(1, dtype=np.uint64), 0)
    with pytest.raises(ValueError, match="outside"):
        partition_rows(np.array([3], dtype=np.int32), 3)

"""Spreading tuples over buckets: which bucket a hash belongs to, and a stable counting sort by bucket."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Int32s, Int64s, UInt64s, compiled, given

_32 = np.uint64(32)


@compiled
def _buckets(hashes: UInt64s, buckets: np.uint64) -> Int32s:
    out = np.empty(len(hashes), dtype=np.int32)
    for i in range(len(hashes)):
        out[i] = np.int32(((hashes[i] >> _32) * buckets) >> _32)
    return out


def bucket_of(hashes: UInt64s, buckets: int) -> Int32s:
    """The bucket of each hash, by its upper half: hash tables use the lower bits, and must not lose their spread in a bucket."""
    if not 0 < buckets < 2**31:
        raise ValueError(f"buckets must be positive, not {buckets}")
    return _buckets(given(hashes, np.uint64), np.uint64(buckets))


@compiled
def _partition(bucket: Int32s, buckets: int) -> tuple[Int64s, Int64s]:
    offsets = np.zeros(buckets + 1, dtype=np.int64)
    for i in range(len(bucket)):
        offsets[bucket[i] + 1] += 1
    for b in range(buckets):
        offsets[b + 1] += offsets[b]
    at = offsets[:-1].copy()
    order = np.empty(len(bucket), dtype=np.int64)
    for i in range(len(bucket)):
        b = bucket[i]
        order[at[b]] = i
        at[b] += 1
    return order, offsets


def partition_rows(bucket: Int32s, buckets: int) -> tuple[Int64s, Int64s]:
    """`order[offsets[b]:offsets[b + 1]]` are the positions that belong to bucket b, in their own order."""
    if len(bucket) and not (int(bucket.min()) >= 0 and int(bucket.max()) < buckets):
        raise ValueError(f"a bucket number outside 0..{buckets - 1}")
    return _partition(given(bucket, np.int32), buckets)

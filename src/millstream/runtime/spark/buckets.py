"""Bucket ids that Spark's own hash partitioning spreads evenly: bucket i lands in partition i modulo their number.

With ids 0, 1, 2, ... some partitions have many buckets and others none, so the ids are searched for.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache

_MASK = 0xFFFFFFFF
_SEED = 42  # of Spark's HashPartitioning


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def murmur3(value: int, seed: int = _SEED) -> int:
    """Spark's Murmur3Hash of one int column (Murmur3_x86_32.hashInt), as a signed 32-bit int."""
    k = ((value & _MASK) * 0xCC9E2D51) & _MASK
    k = (_rotate(k, 15) * 0x1B873593) & _MASK
    h = (_rotate((seed & _MASK) ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4  # the length of an int
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


@lru_cache(maxsize=64)
def bucket_ids(buckets: int, partitions: int) -> tuple[int, ...]:
    """The id of each bucket: the smallest ints that hash into the partitions of the buckets."""
    waiting = [deque(range(partition, buckets, partitions)) for partition in range(partitions)]
    ids: dict[int, int] = {}
    candidate = 0
    while len(ids) < buckets:
        if here := waiting[murmur3(candidate) % partitions]:  # Python's % is Spark's pmod
            ids[here.popleft()] = candidate
        candidate += 1
    return tuple(ids[bucket] for bucket in range(buckets))


@lru_cache(maxsize=64)
def bucket_numbers(buckets: int, partitions: int) -> dict[int, int]:
    """The way back from an id to the number of the bucket."""
    return {number: bucket for bucket, number in enumerate(bucket_ids(buckets, partitions))}

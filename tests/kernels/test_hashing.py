"""Equal keys have equal hashes, unequal ones practically never, and they are the same everywhere."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from millstream.errors import TypeProblem
from millstream.kernels.hashing import NULL_HASH
from millstream.kernels.partition import bucket_of
from millstream.state.keys import hash_columns
from tests.state.naive import canonical
from tests.state.samples import KEY_TYPES, array_of, values_of


@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_equal_hash_means_equal_key(kind: pa.DataType) -> None:
    rng = random.Random(1)
    seen: dict[int, object] = {}
    for _ in range(30):
        array = array_of(kind, rng.randrange(20), rng)
        hashes, valid, _ = hash_columns([array], null_is_value=True)
        assert valid.all()
        for hash, value in zip(hashes.tolist(), values_of(array), strict=True):
            assert seen.setdefault(hash, canonical(value)) == canonical(value)
    keys = list(seen.values())
    assert len(set(map(repr, keys))) == len(keys)  # and equal keys mean equal hashes


@pytest.mark.parametrize("kind", KEY_TYPES, ids=str)
def test_joins_skip_nulls(kind: pa.DataType) -> None:
    rng = random.Random(2)
    first, second = array_of(kind, 50, rng), array_of(pa.int64(), 50, rng)
    _, valid, _ = hash_columns([first, second])
    expected = [a is not None and b is not None for a, b in zip(values_of(first), values_of(second), strict=True)]
    assert valid.tolist() == expected


def test_what_is_injective() -> None:
    numbers = pa.array([1, 2, None])
    assert hash_columns([numbers], null_is_value=True)[2]
    assert hash_columns([pa.array([1.5, float("nan")])])[2]
    assert not hash_columns([pa.array(["a"])])[2]
    assert not hash_columns([numbers, numbers])[2]


def unmix(hash: int) -> int:
    """The inverse of splitmix64."""
    mask = 2**64 - 1

    def unshift(value: int, shift: int) -> int:
        out = value
        for _ in range(64 // shift + 1):
            out = value ^ (out >> shift)
        return out

    value = unshift(hash, 31) * pow(0x94D049BB133111EB, -1, 2**64) & mask
    value = unshift(value, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & mask
    return (unshift(value, 30) - 0x9E3779B97F4A7C15) & mask


def test_the_one_number_that_hashes_like_null() -> None:
    twin = unmix(int(NULL_HASH))
    array = pa.array([twin, 5], type=pa.uint64())
    hashes, _, injective = hash_columns([array], null_is_value=True)
    assert int(hashes[0]) == int(NULL_HASH)
    assert not injective
    assert hash_columns([array.slice(1)], null_is_value=True)[2]


def test_the_same_in_every_process() -> None:
    """Written down: a change of these moves every stored tuple to another bucket."""
    hashes, _, _ = hash_columns([pa.array([0, 1, -1, None])], null_is_value=True)
    assert hashes.tolist() == [16294208416658607535, 10451216379200822465, 16490336266968443936, 7959387129412676716]
    texts, _, _ = hash_columns([pa.array(["", "a", "eight by", "eight by and more"])])
    assert texts.tolist() == [16294208416658607535, 8723755479318276150, 8775122922579545617, 345821130711422125]
    both, _, _ = hash_columns([pa.array([1]), pa.array(["a"])])
    assert both.tolist() == [7976310988456897168]


def test_other_forms_of_a_type_hash_alike() -> None:
    words = ["red", None, "green", "red"]
    plain = hash_columns([pa.array(words)], null_is_value=True)[0].tolist()
    for other in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        assert hash_columns([pa.array(words).cast(other)], null_is_value=True)[0].tolist() == plain
    narrow, wide = pa.array([1, -2], type=pa.int8()), pa.array([1, -2], type=pa.int64())
    assert hash_columns([narrow])[0].tolist() == hash_columns([wide])[0].tolist()


def test_nested_types_are_no_keys() -> None:
    with pytest.raises(TypeProblem, match="can not be keys"):
        hash_columns([pa.array([[1]])])


def test_small_numbers_spread_over_buckets_and_order_of_columns_counts() -> None:
    hashes, _, _ = hash_columns([pa.array(range(10_000))])
    for buckets in (1, 2, 7, 64):
        counts = np.bincount(bucket_of(hashes, buckets), minlength=buckets)
        assert counts.min() > 0.7 * 10_000 / buckets
    one, two = pa.array([1]), pa.array([2])
    assert hash_columns([one, two])[0] != hash_columns([two, one])[0]

"""Spread the tuples of a crossing over the buckets of the later stage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa

from millstream.core.block import Block
from millstream.graph.cubes import Route
from millstream.graph.cut import Crossing
from millstream.kernels.compiled import Int32s
from millstream.kernels.partition import bucket_of, partition_rows
from millstream.state.keys import hash_columns


def spread(block: Block, crossing: Crossing, buckets: int, home: int, everyone: bool) -> Iterator[tuple[int, Block]]:
    """The block's tuples by bucket; with `everyone` each bucket gets one, be it empty, because it carries promises."""
    parts: dict[int, pa.RecordBatch] = {}
    if not len(block):
        pass
    elif crossing.route is not None:
        parts = _routed(block.batch, crossing.route, buckets)
    elif crossing.keys is None:
        parts = {home: block.batch}
    elif not crossing.keys:
        parts = {0: block.batch}
    else:
        parts = _parted(block.batch, _places(block.batch, crossing.keys, buckets), buckets)
    nothing = block.batch.slice(0, 0)
    for bucket in range(buckets):
        if everyone or bucket in parts:
            yield bucket, Block(parts.get(bucket, nothing), block.punctuations)


def _routed(batch: pa.RecordBatch, route: Route, buckets: int) -> dict[int, pa.RecordBatch]:
    """To the points that have a tuple's values in the dimensions it knows, and any in the others."""
    shares = route.cube.shares(buckets)
    strides = [int(np.prod(shares[dimension + 1 :])) for dimension in range(len(shares))]
    base = np.zeros(batch.num_rows, dtype=np.int32)
    others = [0]
    for column, share, stride in zip(route.columns, shares, strides, strict=True):
        if column is None:
            others = [other + at * stride for other, at in product(others, range(share))]
        elif share > 1:
            base += _places(batch, (column,), share) * np.int32(stride)
    parts = _parted(batch, base, buckets)
    return {bucket + other: part for bucket, part in parts.items() for other in others}


def _places(batch: pa.RecordBatch, keys: tuple[str, ...], count: int) -> Int32s:
    hashes, _, _ = hash_columns([batch.column(key) for key in keys], null_is_value=True)
    return bucket_of(hashes, count)


def _parted(batch: pa.RecordBatch, places: Int32s, count: int) -> dict[int, pa.RecordBatch]:
    order, offsets = partition_rows(places, count)
    batch = batch.take(pa.array(order))
    return {at: batch.slice(int(offsets[at]), int(offsets[at + 1] - offsets[at])) for at in range(count) if offsets[at + 1] > offsets[at]}

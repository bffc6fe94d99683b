"""Segments of a journal: record batches as Arrow IPC behind a small JSON header.

A container writes what changed since its last segment, or a snapshot that replaces all before it; rows and groups
are named by serial numbers that never come back, because row numbers change when a container is compacted.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.errors import DataProblem
from millstream.kernels.compiled import Int64s, given

_MAGIC = b"MSJ1"


def pack(header: Mapping[str, Any], parts: Sequence[pa.RecordBatch]) -> bytes:
    bodies = [_ipc(part) for part in parts]
    text = json.dumps({**header, "lengths": [len(body) for body in bodies]}).encode()
    text += b" " * (-(8 + len(text)) % 64)  # Arrow's buffers stay aligned
    return b"".join([_MAGIC, struct.pack("<I", len(text)), text, *bodies])


def unpack(segment: bytes) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
    if segment[:4] != _MAGIC:
        raise DataProblem("a state segment is damaged or of another version", hint="restore from an older checkpoint")
    (size,) = struct.unpack_from("<I", segment, 4)
    header: dict[str, Any] = json.loads(segment[8 : 8 + size])
    view, at, parts = memoryview(segment), 8 + size, []
    for length in header.pop("lengths"):
        with pa.ipc.open_stream(pa.py_buffer(view[at : at + length])) as reader:
            parts.append(reader.read_next_batch())
        at += length
    return header, parts


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def numbers(**columns: Int64s) -> pa.RecordBatch:
    """A record batch of int64 columns."""
    return pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(values)) for values in columns.values()], names=list(columns))


def column(batch: pa.RecordBatch, name: str) -> Int64s:
    return given(batch.column(name).to_numpy(zero_copy_only=False), np.int64)


def places(serials: Int64s, wanted: Int64s) -> Int64s:
    """Where the wanted serial numbers stand; all must be there."""
    if bool((serials[1:] > serials[:-1]).all()):  # nearly always
        found = np.searchsorted(serials, wanted)
        if len(wanted) and (int(found.max()) >= len(serials) or bool((serials[found] != wanted).any())):
            raise DataProblem("a state segment names rows that are not there", hint="a segment before it is missing")
        return found
    order = np.argsort(serials, kind="stable")
    found = np.searchsorted(serials, wanted, sorter=order)
    if len(wanted) and (int(found.max()) >= len(serials) or bool((serials[order[found]] != wanted).any())):
        raise DataProblem("a state segment names rows that are not there", hint="a segment before it is missing")
    return order[found].astype(np.int64, copy=False)

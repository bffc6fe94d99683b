"""Segments of a journal: numbers and record batches behind a small JSON header, in few bytes.

A container writes what changed since its last segment; rows and groups are named by serial numbers that never come back,
because row numbers change when a container is compacted. Where the oldest segments hold little that still counts, what
does is written again and they are dropped, so that a journal is never much longer than the state (as in a log-structured
file system); there is no snapshot that would cost the size of the state in one micro-batch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.errors import DataProblem
from millstream.kernels.compiled import Int64s

_MAGIC = b"MSJ2"
_ALIGNED = 64

Segments = Iterable[tuple[int, bytes]]
"""Segments by their number, ascending."""


class Segment(NamedTuple):
    """What a container has to say, and how many rows or groups that tells of."""

    data: bytes
    rows: int


def pack(header: Mapping[str, Any], numbers: Mapping[str, Int64s], batches: Sequence[pa.RecordBatch]) -> bytes:
    forms: list[list[Any]] = []
    bodies: list[bytes | memoryview] = []
    seen: dict[str, Int64s] = {}
    for name, values in numbers.items():
        form, body = _form(values, seen)
        seen[name] = values
        forms.append([name, len(values), *form, len(body)])
        bodies.append(body)
    bodies += [_ipc(batch) for batch in batches]
    lengths = [len(body) for body in bodies[len(forms) :]]
    text = json.dumps({**header, "numbers": forms, "lengths": lengths}).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    padded = [part for body in bodies for part in (body, bytes(-len(body) % _ALIGNED))]
    return b"".join([_MAGIC, struct.pack("<I", len(text)), text, *padded])


def unpack(segment: bytes) -> tuple[dict[str, Any], dict[str, Int64s], list[pa.RecordBatch]]:
    if segment[:4] != _MAGIC:
        raise DataProblem("a state segment is damaged or of another version", hint="restore from an older checkpoint")
    (size,) = struct.unpack_from("<I", segment, 4)
    header: dict[str, Any] = json.loads(segment[8 : 8 + size])
    view, at = memoryview(segment), 8 + size
    numbers: dict[str, Int64s] = {}
    for name, rows, kind, first, second, length in header.pop("numbers"):
        numbers[name] = _values(kind, first, second, rows, view[at : at + length], numbers)
        at += length + -length % _ALIGNED
    batches = []
    for length in header.pop("lengths"):
        with pa.ipc.open_stream(pa.py_buffer(view[at : at + length])) as reader:
            batches.append(reader.read_next_batch())
        at += length + -length % _ALIGNED
    return header, numbers, batches


def _form(values: Int64s, seen: Mapping[str, Int64s]) -> tuple[list[Any], bytes]:
    """How to write numbers: counted from a first one, as another column and a distance, or from the least one in few bytes."""
    if not len(values):
        return ["count", 0, 0], b""
    first, step = int(values[0]), int(values[1]) - int(values[0]) if len(values) > 1 else 0
    if abs(step) < 1 << 62 and int(values[-1]) - first == step * (len(values) - 1) and bool((values[1:] - values[:-1] == step).all()):
        return ["count", first, step], b""
    for name, other in seen.items():
        if len(other) != len(values):
            continue
        apart = int(values[0]) - int(other[0])
        if abs(apart) < 1 << 62 and int(values[-1]) - int(other[-1]) == apart and bool((values - other == apart).all()):
            return ["like", name, apart], b""
    least = int(values.min())
    span = int(values.max()) - least
    for kind in ("u1", "u2", "u4"):
        if span < 1 << 8 * int(kind[1]):
            return ["above", least, kind], (values - least).astype(kind).tobytes()
    return ["plain", 0, 0], values.tobytes()


def _values(kind: str, first: Any, second: Any, rows: int, body: memoryview, seen: Mapping[str, Int64s]) -> Int64s:
    values: Int64s
    if kind == "count":
        values = np.int64(first) + np.int64(second) * np.arange(rows, dtype=np.int64)
    elif kind == "like":
        values = seen[first] + np.int64(second)
    elif kind == "above":
        values = np.frombuffer(body, dtype=second).astype(np.int64) + np.int64(first)
    else:
        values = np.frombuffer(body, dtype=np.int64)
    return values


def _ipc(batch: pa.RecordBatch) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def joined(parts: Sequence[Int64s]) -> Int64s:
    """One array of several."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def latest(serials: Int64s, gone: Int64s) -> Int64s:
    """Positions of the last entry for each serial number that is not gone, in the order of the numbers."""
    order = np.argsort(serials, kind="stable")
    sorted_serials = serials[order]
    last = np.ones(len(order), dtype=np.bool_)
    last[:-1] = sorted_serials[1:] != sorted_serials[:-1]
    order = order[last]
    return order[~np.isin(serials[order], gone)]

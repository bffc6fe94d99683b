"""Strings as offsets into bytes: gather, compare, and the smallest or greatest per group."""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Bools, Bytes, Int64s, compiled


@compiled
def gather_offsets(offsets: Int64s, rows: Int64s) -> Int64s:
    out = np.empty(len(rows) + 1, dtype=np.int64)
    out[0] = 0
    for i in range(len(rows)):
        row = rows[i]
        out[i + 1] = out[i] + offsets[row + 1] - offsets[row]
    return out


@compiled
def gather_bytes(offsets: Int64s, data: Bytes, rows: Int64s, targets: Int64s) -> Bytes:
    out = np.empty(targets[-1], dtype=np.uint8)
    for i in range(len(rows)):
        start, at = np.uint64(offsets[rows[i]]), np.uint64(targets[i])
        for j in range(np.uint64(targets[i + 1]) - at):
            out[at + j] = data[start + j]
    return out


@compiled
def equal_texts(offsets: Int64s, data: Bytes, rows: Int64s, other_offsets: Int64s, other_data: Bytes) -> Bools:
    """True where stored text `rows[i]` has the bytes of the other column's text i."""
    out = np.empty(len(rows), dtype=np.bool_)
    for i in range(len(rows)):
        start, at = np.uint64(offsets[rows[i]]), np.uint64(other_offsets[i])
        length = np.uint64(offsets[rows[i] + 1]) - start
        if length != np.uint64(other_offsets[i + 1]) - at:
            out[i] = False
            continue
        difference = np.uint8(0)
        for j in range(length):  # to the end: without a way out the loop runs on whole vectors
            difference |= data[start + j] ^ other_data[at + j]
        out[i] = difference == 0
    return out


@compiled
def best_texts(
    best: Int64s,
    groups: Int64s,
    offsets: Int64s,
    data: Bytes,
    positions: Int64s,
    stored_offsets: Int64s,
    stored_data: Bytes,
    greatest: bool,
    winners: Int64s,
) -> int:
    """Improve each group's best text by the batch's texts; returns how many groups got a winner from the batch.

    `best[g]` is -1 (none), a stored text's number, or after this call -2 - position for a text of the batch.
    `winners` receives the groups whose best is now in the batch, each once.
    """
    count = 0
    for i in range(len(groups)):
        group, position = groups[i], positions[i]
        start, end = offsets[position], offsets[position + 1]
        current = best[group]
        if current == -1:
            winners[count] = group
            count += 1
            best[group] = -2 - position
            continue
        in_batch = current < -1
        if in_batch:
            other_start, other_end = offsets[-2 - current], offsets[-1 - current]
            other = data
        else:
            other_start, other_end = stored_offsets[current], stored_offsets[current + 1]
            other = stored_data
        length, other_length = end - start, other_end - other_start
        order = length - other_length
        for j in range(min(length, other_length)):
            mine, theirs = data[start + j], other[other_start + j]
            if mine != theirs:
                order = np.int64(mine) - np.int64(theirs)
                break
        if (order > 0) if greatest else (order < 0):
            if not in_batch:
                winners[count] = group
                count += 1
            best[group] = -2 - position
    return count

"""What the inputs of a join have promised, and what the join may promise in turn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.core.punctuation import Punctuation
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.operators.join import Join
from millstream.operators.promises import Closed, constants
from millstream.state.keys import hash_columns
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LEFT, RIGHT = 0, 1


class JoinPromises:
    """Low-water marks per side and column, closed values per side, and the promises already put out."""

    def __init__(self, config: Join, registers: Registers, rows: tuple[RowWindow, RowWindow]) -> None:
        self.config = config
        self.registers = registers
        self.rows = rows
        self.keys = (config.left_keys, config.right_keys)
        self.schemas = (config.left, config.right)
        # What one side has closed is looked up with the other side's tuples, so it is kept under the other's names.
        self.closings = tuple(Closed(self.schemas[1 - side], registers, f"closed {side}") for side in (LEFT, RIGHT))

    # -- what came in ---------------------------------------------------------------------------------------------

    def raise_mark(self, side: int, attribute: str, mark: int) -> None:
        self.registers.raise_to(f"{side}:{attribute}", mark)

    def mark(self, side: int, attribute: str | None) -> int:
        if self.registers.get("left ended" if side == LEFT else "right ended", 0):
            return MAX_TIME
        return int(self.registers.get(f"{side}:{attribute}", MIN_TIME)) if attribute is not None else MIN_TIME

    def closed(self, side: int, batch: pa.RecordBatch) -> Mask:
        """Tuples of the other side's batch for which `side` has promised to bring no more partners."""
        found = self.closings[side].matches(batch)
        return np.zeros(batch.num_rows, dtype=np.bool_) if found is None else found

    def close(self, side: int, punctuation: Punctuation) -> Int64s:
        """Remember a value punctuation on key columns; give the rows of the other side that it lets go."""
        names = dict(zip(self.keys[side], self.keys[1 - side], strict=True))
        mirrored = punctuation.renamed(names)
        none = np.empty(0, dtype=np.int64)
        if mirrored is None:
            return none
        self.closings[side].add([mirrored])
        waiting: frozenset[Punctuation] = self.registers.get(f"waiting {side}", frozenset())
        self.registers[f"waiting {side}"] = waiting | {punctuation}
        return self._matching(1 - side, mirrored)

    def _matching(self, side: int, punctuation: Punctuation) -> Int64s:
        """The rows of a side that a punctuation in its own names matches."""
        window = self.rows[side]
        rows = None
        if {name for name, _ in punctuation.patterns} == set(self.keys[side]):
            values = constants(punctuation, self.schemas[side])
            if values is not None:
                columns = dict(zip((name for name, _ in punctuation.patterns), values, strict=True))
                hashes, valid, _ = hash_columns([columns[k] for k in self.keys[side]])
                rows = window.find(hashes[valid])
        if rows is None:
            rows = window.alive_rows()
        if not len(rows):
            return rows
        return rows[punctuation.matches(window.take(rows))]

    # -- what goes out --------------------------------------------------------------------------------------------

    def output(self) -> list[Punctuation]:
        """Every promise about results that holds now and was not made before."""
        if self.mark(LEFT, "") == MAX_TIME and self.mark(RIGHT, "") == MAX_TIME:
            return [Punctuation.end()] if self.registers.raise_to("ended", 1) else []
        found = []
        for name, mark in self._marks().items():
            if name in self.config.output and MIN_TIME < mark < MAX_TIME and self.registers.raise_to(f"out:{name}", mark):
                found.append(Punctuation.linear(name, mark))
        return found + self._finished(LEFT) + self._finished(RIGHT)

    def _marks(self) -> dict[str, int]:
        """Individual punctuation for each time (paper 004, Figure 4): a result needs one new tuple and one stored or new one.

        left.ts >= min(left mark, right mark - high), right.ts >= min(right mark, left mark + low); both inclusive.
        """
        right = self.mark(RIGHT, self.config.axis)
        marks: dict[str, int] = {}
        bound = MIN_TIME
        for band in self.config.bands:
            left = self.mark(LEFT, band.left)
            if band.high is not None:
                marks[band.left] = min(left, shift(right, -band.high))
            if band.low is not None:
                bound = max(bound, shift(left, band.low))
        if self.config.axis is not None and self.config.kind in ("inner", "left"):
            marks[self.config.axis] = min(right, bound)
        if self.config.stamp is not None:
            name, a, b = self.config.stamp
            marks[name] = min(self.mark(LEFT, a), self.mark(RIGHT, b))
            if self.config.kind == "left":
                marks[name] = min(marks[name], marks.get(a, MIN_TIME))
        return marks

    def _finished(self, side: int) -> list[Punctuation]:
        """Closed values of which this side keeps no tuple: nothing with them can come out any more (paper 002, Theorem 4.1)."""
        waiting: frozenset[Punctuation] = self.registers.get(f"waiting {side}", frozenset())
        if not waiting:
            return []
        done = {p for p in waiting if not len(self._matching(side, p))}
        if done:
            self.registers[f"waiting {side}"] = waiting - done
        found = []
        for punctuation in sorted(done, key=str):
            other = punctuation.renamed(dict(zip(self.keys[side], self.keys[1 - side], strict=True)))
            both = [punctuation, other] if self.config.kind == "inner" else [punctuation]
            if self.config.kind == "left" and side == RIGHT:
                both = []  # a left tuple that found nobody has nulls here, and null may be what was closed
            found += [p for p in both if p is not None and all(name in self.config.output for name, _ in p.patterns)]
        return found


def shift(mark: int, by: int) -> int:
    """Move a mark, the ends of time stay where they are."""
    return mark if mark in (MIN_TIME, MAX_TIME) else mark + by

"""What the inputs of a join have promised, and what the join may promise in turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millstream.core.narrowing import narrowed
from millstream.core.punctuation import Punctuation, Range
from millstream.core.types import MAX_TIME, MIN_TIME, is_axis
from millstream.kernels.hashing import each_once
from millstream.operators.join import Join
from millstream.state.closed import Closed, listed, shape_of, values_of
from millstream.state.group_table import GroupTable
from millstream.state.keys import hash_columns
from millstream.state.registers import Registers
from millstream.state.row_window import RowWindow

Int64s = npt.NDArray[np.int64]
_NONE = np.empty(0, dtype=np.int64)
Mask = npt.NDArray[np.bool_]
UInt64s = npt.NDArray[np.uint64]

LEFT, RIGHT = 0, 1


class JoinPromises:
    """Low-water marks per side and column, closed values per side, and the promises already put out."""

    def __init__(self, config: Join, registers: Registers, rows: tuple[RowWindow, RowWindow]) -> None:
        self.config = config
        self.registers = registers
        self.rows = rows
        self.keys = (config.left_keys, config.right_keys)
        self.distinct = all(len(set(keys)) == len(keys) for keys in self.keys)
        """No column stands twice among the keys (`a.k = b.i AND a.k = b.j`); where one does, values are compared one promise at a time."""
        self.schemas = (config.left, config.right)
        # What one side has closed is looked up with the other side's tuples, so it is kept under the other's names.
        self.closings = tuple(Closed(self.schemas[1 - side], registers, f"closed {side}") for side in (LEFT, RIGHT))
        self.names = tuple(dict(zip(self.keys[side], self.keys[1 - side], strict=True)) for side in (LEFT, RIGHT))
        self.twins = [(dict(twins), schema) for twins, schema in zip(config.twins, self.schemas, strict=True) if twins]
        self.done: tuple[list[list[pa.Array]], ...] = ([], [])
        """Finished values that have not been told yet."""
        self.moved = False
        """Whether there may be something to tell."""
        self.stirred = [False, False]
        """Whether something has gone, so that promises that wait for it are worth a look."""

    # -- what came in ---------------------------------------------------------------------------------------------

    def raise_mark(self, side: int, attribute: str, mark: int) -> None:
        self.registers.raise_to(f"{side}:{attribute}", mark)

    def mark(self, side: int, attribute: str | None) -> int:
        if self.registers.get("left ended" if side == LEFT else "right ended", 0):
            return MAX_TIME
        return int(self.registers.get(f"{side}:{attribute}", MIN_TIME)) if attribute is not None else MIN_TIME

    def times(self, side: int) -> list[str]:
        """The columns of a side by which time moves on."""
        bands = [band.left if side == LEFT else band.right for band in self.config.moving]
        stamp = [] if self.config.stamp is None else [self.config.stamp[1 + side]]
        return list(dict.fromkeys([*bands, *stamp]))

    def closed(self, side: int, batch: pa.RecordBatch) -> Mask:
        """Tuples of the other side's batch for which `side` has promised to bring no more partners."""
        found = self.closings[side].matches(batch)
        return np.zeros(batch.num_rows, dtype=np.bool_) if found is None else found

    def close(self, side: int, punctuation: Punctuation, let_go: Callable[[int, Int64s], None]) -> None:
        """A value punctuation on key columns: the other side lets go of what it keeps for these values; it is remembered for what comes.

        Values of which this side keeps no tuple are finished then, the tuples of the others are tied (paper 002, Figure 5).
        """
        if not self._lists_keys(side, punctuation):
            self._close_others(side, punctuation, let_go)
            return
        keys, hashed = _different(values_of(punctuation, self.keys[side], self.schemas[side]))
        self.closings[side].add_keys(self.keys[1 - side], None, keys, np.full(len(keys[0]), MAX_TIME))
        let_go(1 - side, self.rows[1 - side].of(keys, *hashed)[1])
        self.prepare(side)
        finished = np.ones(len(keys[0]), dtype=np.bool_)
        window = self.rows[side]
        values, rows = window.of(keys, *hashed)
        if len(rows):
            finished[values] = False
            window.tie(rows, values, len(keys[0]))
        if self.closings[1 - side]:
            both = self.closings[1 - side].bounds(self.keys[side], None, keys) == MAX_TIME
            if self.config.kind in ("inner", "semi") and not self.registers.get(f"waiting {1 - side}"):
                finished &= ~both  # what the other side has closed before is told when its last rows are gone, and now they are
            if both.any():
                self._forget(keys if both.all() else [key.filter(pa.array(both)) for key in keys])
        chosen = keys if finished.all() else [key.filter(pa.array(finished)) for key in keys]
        self._finish(side, chosen)

    def _forget(self, keys: list[pa.Array]) -> None:
        """Neither side keeps a row of keys that both have closed, and none will come."""
        for side in (LEFT, RIGHT):
            self.closings[side].forget(self.keys[1 - side], keys)

    def _close_others(self, side: int, punctuation: Punctuation, let_go: Callable[[int, Int64s], None]) -> None:
        """Promises of another form wait until no row of this side matches them."""
        mirrored = self._mirrored(side, punctuation)
        if mirrored is None:
            return
        self.closings[side].add([mirrored])
        let_go(1 - side, self._matching(1 - side, mirrored))
        self._forget_parts(side, mirrored)
        waiting: frozenset[Punctuation] = self.registers.get(f"waiting {side}", frozenset())
        self.registers[f"waiting {side}"] = waiting | {punctuation}
        self.stirred[side] = True

    def _mirrored(self, side: int, punctuation: Punctuation) -> Punctuation | None:
        """In the other side's names; of combinations those that it can have, where two columns of this side are one there."""
        names, shape = self.names[side], shape_of(punctuation)
        if self.distinct or shape is None or shape[1] is not None or not set(shape[0]) <= set(names):
            return punctuation.renamed(names)
        found: dict[str, pa.Array] = {}
        same: Mask | bool = True
        for name, values in zip(shape[0], values_of(punctuation, shape[0], self.schemas[side]), strict=True):
            before = found.setdefault(names[name], values)
            if before is not values:
                same = same & np.asarray(pc.fill_null(pc.equal(before, values), False))
        keys = list(found.values()) if same is True else [values.filter(pa.array(same)) for values in found.values()]
        return next(iter(listed(tuple(found), None, keys, np.full(len(keys[0]), MAX_TIME))), None)

    def _forget_parts(self, side: int, mirrored: Punctuation) -> None:
        """The same for values of a part of the key."""
        shape = shape_of(mirrored)
        if shape is None or shape[1] is not None or not self.distinct or not self.closings[1 - side]:
            return
        keys = values_of(mirrored, shape[0], self.schemas[1 - side])
        own = tuple(self.names[1 - side][name] for name in shape[0])
        both = pa.array(self.closings[1 - side].bounds(own, None, keys) == MAX_TIME)
        chosen = [key.filter(both) for key in keys]
        if len(chosen[0]):
            self.closings[side].forget(shape[0], chosen)
            self.closings[1 - side].forget(own, chosen)

    def went(self, side: int, last: Int64s) -> None:
        """The last rows of tied values have gone."""
        self.stirred[side] = True
        if len(last):
            self._finish(side, self._keys_of(side, last).columns)

    def _finish(self, side: int, keys: list[pa.Array]) -> None:
        if len(keys[0]):
            self.done[side].append(keys)
            self.moved = True

    def _keys_of(self, side: int, rows: Int64s) -> pa.RecordBatch:
        return self.rows[side].take(rows).select(list(self.keys[side]))

    def prepare(self, side: int) -> None:
        """Before rows of this side go: after a restart those of closed values have to be tied again."""
        window = self.rows[side]
        if window.ringed:
            return
        window.ringed = True
        rows = window.alive_rows()
        if not len(rows) or not self.closings[side] or not self.distinct:
            return
        keys = self._keys_of(side, rows)
        closed = self.closings[side].matches(keys.rename_columns(list(self.keys[1 - side])))
        if closed is not None and closed.any():
            keys = keys.filter(pa.array(closed))
            groups, first = GroupTable(keys.schema, ()).upsert(keys.columns, np.zeros(keys.num_rows, dtype=np.int64))
            window.tie(rows[closed], groups, len(first))

    def _lists_keys(self, side: int, punctuation: Punctuation) -> bool:
        """A list of keys, be it of one: constants for all of their columns."""
        shape = shape_of(punctuation)
        return self.distinct and shape is not None and shape[1] is None and set(shape[0]) == set(self.keys[side])

    def _matching(self, side: int, punctuation: Punctuation) -> Int64s:
        """The rows of a side that a punctuation in its own names matches; one of another form than a list of keys."""
        window = self.rows[side]
        if not len(window):
            return _NONE
        if len(punctuation.patterns) == 1 and isinstance(punctuation.patterns[0][1], Range) and self._ordered(side):
            return window.between(*punctuation.patterns[0][1].ends)
        rows = window.alive_rows()
        return rows[punctuation.matches(window.take(rows))]

    def _ordered(self, side: int) -> bool:
        return len(self.keys[side]) == 1 and is_axis(self.schemas[side].field(self.keys[side][0]).type)

    # -- what goes out --------------------------------------------------------------------------------------------

    def output(self) -> list[Punctuation]:
        """Every promise about results that holds now and was not made before."""
        self.moved = False
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
        marks: dict[str, int] = {}
        bounds: dict[str, int] = {}
        for band in self.config.moving:
            left, right = self.mark(LEFT, band.left), self.mark(RIGHT, band.right)
            if band.high is not None:
                marks[band.left] = max(marks.get(band.left, MIN_TIME), min(left, shift(right, -band.high)))
            if band.low is not None:
                bounds[band.right] = max(bounds.get(band.right, MIN_TIME), shift(left, band.low))
        if self.config.kind in ("inner", "left"):
            marks |= {name: min(self.mark(RIGHT, name), bound) for name, bound in bounds.items()}
        if self.config.stamp is not None:
            name, a, b = self.config.stamp
            marks[name] = min(self.mark(LEFT, a), self.mark(RIGHT, b))
            if self.config.kind == "left":
                marks[name] = min(marks[name], marks.get(a, MIN_TIME))
        return marks

    def _finished(self, side: int) -> list[Punctuation]:
        """Closed values of which this side keeps no tuple: nothing with them can come out any more (paper 002, Theorem 4.1)."""
        done = list(self.done[side])
        self.done[side].clear()
        found: list[Punctuation] = []
        if done:
            keys = done[0] if len(done) == 1 else [pa.concat_arrays(column) for column in zip(*done, strict=True)]
            found += listed(self.keys[side], None, keys, np.full(len(keys[0]), MAX_TIME))
        waiting: frozenset[Punctuation] = self.registers.get(f"waiting {side}", frozenset())
        if waiting and self.stirred[side]:
            ready = {p for p in waiting if not len(self._matching(side, p))}
            found += sorted(ready, key=str)
            if ready:
                self.registers[f"waiting {side}"] = waiting - ready
        self.stirred[side] = False
        return [named for punctuation in found for named in self._named(side, punctuation)]

    def _named(self, side: int, punctuation: Punctuation) -> list[Punctuation]:
        """A finished value in the names under which results have it."""
        other = punctuation.renamed(self.names[side])
        kind = self.config.kind
        told = [punctuation, other] if kind == "inner" else [punctuation]
        if side == RIGHT and kind != "inner":
            # A left tuple that found nobody has nulls on the right, and null may be what was closed; those still come out of a
            # left or anti join. A semi join needs the partner that can not come any more.
            told = [other] if kind == "semi" else []
        told += [narrowed(p, *twins) for p in told if p is not None for twins in self.twins]
        return [p for p in told if p is not None and all(name in self.config.output for name, _ in p.patterns)]


def _different(keys: list[pa.Array]) -> tuple[list[pa.Array], tuple[UInt64s, Mask, bool]]:
    """Each key once, with its hash (see `hash_columns`)."""
    hashes, valid, exact = hash_columns(keys)
    if len(hashes) > 1:
        if exact:
            first = np.empty(len(hashes), dtype=np.int64)
            first = first[: each_once(hashes, np.full(2 << len(hashes).bit_length(), -1), first)]
        else:
            schema = pa.schema([(str(i), key.type) for i, key in enumerate(keys)])
            _, first = GroupTable(schema, ()).upsert(keys, np.zeros(len(hashes), dtype=np.int64))
        if len(first) < len(hashes):
            return [key.take(pa.array(first)) for key in keys], (hashes[first], valid[first], exact)
    return keys, (hashes, valid, exact)


def shift(mark: int, by: int) -> int:
    """Move a mark, the ends of time stay where they are."""
    return mark if mark in (MIN_TIME, MAX_TIME) else mark + by

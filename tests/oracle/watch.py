"""Watches every arc of the stages that run: promises are kept, marks rise, and no state is left at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from millstream.core.block import Block
from millstream.core.punctuation import Punctuation
from millstream.runtime.network import Network
from millstream.runtime.stage import RunningStage
from millstream.state.group_table import GroupTable
from millstream.state.row_window import RowWindow


class Watch:
    """What went over each arc so far."""

    def __init__(self, forgets: bool = False) -> None:
        self.forgets = forgets
        """Values may come back after the horizon of their promise; only times are watched."""
        self.stages: list[RunningStage] = []
        self.promises: dict[Any, list[Punctuation]] = {}
        self.marks: dict[Any, dict[str, Any]] = {}

    def see(self, arc: Any, block: Block) -> None:
        known = self.promises.setdefault(arc, [])
        for promise in known if len(block) else ():
            if self.forgets and not promise.is_linear and not promise.is_end:
                continue
            broken = promise.matches(block.batch)
            assert not broken.any(), f"{promise} on {arc} broken by {block.batch.filter(_array(broken)).to_pylist()[:3]}"
        for promise in block.punctuations:
            if promise.is_linear:
                ((attribute, pattern),) = promise.patterns
                marks = self.marks.setdefault(arc, {})
                assert attribute not in marks or pattern.high > marks[attribute], f"{promise} on {arc} says no more than {marks}"  # type: ignore[attr-defined]
                marks[attribute] = pattern.high  # type: ignore[attr-defined]
            known.append(promise)

    def left_over(self) -> list[str]:
        """Operators that still hold tuples or groups."""
        found = []
        for stage in self.stages:
            for number, operator in stage.executor.operators.items():
                held = [len(c) for c in operator.state if isinstance(c, (RowWindow, GroupTable)) and len(c)]
                waiting = [len(b) for b in stage.executor.network.inputs[number].heads if len(b)]
                if held or waiting:
                    found.append(f"#{number} {type(operator).__name__} holds {held} and {waiting} blocks wait")
        return found


def _array(mask: Any) -> Any:
    import pyarrow as pa

    return pa.array(mask)


@contextmanager
def watched(*, forgets: bool = False) -> Iterator[Watch]:
    """All stages made inside are watched; the arcs of ingest are not, since units are read apart from each other."""
    watch = Watch(forgets)
    inside: set[int] = set()
    make, news = RunningStage.__init__, Network._news

    def made(self: RunningStage, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        watch.stages.append(self)
        inside.add(id(self.executor.network))

    def passed(self: Network, arc: tuple[int, int], block: Block) -> Block | None:
        found = news(self, arc, block)
        if id(self) in inside and found is not None:
            watch.see((id(self), *arc), found)
        return found

    with patch.object(RunningStage, "__init__", made), patch.object(Network, "_news", passed):
        yield watch

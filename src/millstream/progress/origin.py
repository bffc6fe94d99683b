"""The origin of a low-water mark, for the letters of tuples that came after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from millstream.core.types import TIMESTAMP


@dataclass(frozen=True)
class Origin:
    """The row that moved a mark, the commit of a sink that recorded it, or the clock."""

    kind: Literal["tuple", "heartbeat", "commit", "clock"]
    file: str | None = None
    line: int | None = None
    moment: int = 0
    """The time at which the clock made it (microseconds)."""

    def __str__(self) -> str:
        if self.kind == "clock":
            at = f" at {pa.scalar(self.moment, TIMESTAMP).cast(pa.string())}" if self.moment else ""
            return f"an enabling timestamp made from the clock{at}"
        place = f"line {self.line} of {self.file}" if self.line is not None else f"{self.file}"
        return (
            f"recorded by the sink behind {self.file}"
            if self.kind == "commit"
            else f"made by the {self.kind} in {place}"
        )


def late_by(promise: str, origin: Origin | str | None) -> str:
    """The reason of a letter: what the tuple came after, and where that is from."""
    return f"it came after {promise}" + (f", {origin}" if origin else "")

"""Messages against the flow, for whoever wants to follow them: a consumer says what it does not need, and what it needs again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SUSPEND, RESUME, MARK, UNMARK = "suspend", "resume", "mark", "unmark"
"""Of a sub-tuple: whoever has it is not to take part, or is again; of one that two inputs make together, pairs are not to be made."""


@dataclass(frozen=True)
class Message:
    """`consumer` and `producer` are numbers of operators; a sub-tuple is known by its values in some columns of the producer."""

    command: str
    consumer: int
    producer: int
    values: tuple[tuple[tuple[str, Any], ...], ...] = ()

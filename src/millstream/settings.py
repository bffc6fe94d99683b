"""Settings choose physical policy and never change an answer: every `SET name = value` there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.errors import MillstreamError, NameProblem, Place, TypeProblem
from millstream.language.durations import length


@dataclass(frozen=True)
class Setting:
    """One name: its default, what it takes, and what follows from it."""

    name: str
    default: Any
    kind: type
    meaning: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 2**31 - 1
    length: bool = False
    """True where the text is a length of time."""


SETTINGS = {
    s.name: s
    for s in (
        Setting("execution.order", "out-of-order", str, "whether operators wait for order", ("out-of-order", "in-order")),
        Setting("execution.strategy", "depth-first", str, "which operator runs next", ("depth-first", "breadth-first", "round-robin")),
        Setting("execution.strategies", "", str, "other strategies for the queries into some sinks: 'Sink: strategy, ...'"),
        Setting("execution.breaks", "none", str, "virtual break points: 'none', 'auto', or buffers as '2 -> 3, 5 -> 6'"),
        Setting("execution.weights", "", str, "shares of the time for the queries into some sinks: 'Sink: 3, ...'"),
        Setting("execution.promises", "tuples", str, "whether promises go as tuples do or over arcs", ("tuples", "arcs")),
        Setting("execution.batch", 65536, int, "tuples a source reads at once", least=1),
        Setting("execution.limit", 0, int, "tuples an operator takes in one step; 0 takes whole blocks"),
        Setting("execution.stages", 0, int, "stages that there are at least on Spark, for queries that come later", most=64),
        Setting("execution.buckets", 0, int, "parallel parts of a stage on Spark; 0 takes one a core"),
        Setting("execution.partitions", 0, int, "tasks that the buckets of a stage share on Spark; 0 takes one a core"),
        Setting("execution.interval", "0 seconds", str, "least time between two micro-batches on Spark", length=True),
        Setting("join.algorithm", "auto", str, "which physical join runs", ("auto", "window", "punctuated", "punctuated-window")),
        Setting("join.tree", "auto", str, "auto, written, left-deep, right-deep, bushy, m-join, eddy, or a tree such as '((A B) (C D))'"),
        Setting("join.index", "hash", str, "how a join finds partners: by a hash, or by looking at all it stores", ("hash", "none")),
        Setting("join.feedback", True, bool, "whether joins tell their producers what nobody needs"),
        Setting("feedback.trial", 8192, int, "tuples asked about before it is judged whether feedback pays; 0 asks always"),
        Setting("source.max_files_per_batch", 0, int, "units of one stream that a micro-batch takes; 0 adapts"),
        Setting("source.max_bytes_per_batch", 0, int, "bytes of one stream that a micro-batch takes; 0 takes 64 MB a core", most=2**63 - 1),
        Setting("source.max_tuples_per_batch", 0, int, "tuples of one stream that a micro-batch takes; 0 sets no limit", most=2**63 - 1),
        Setting("dead_letters.path", "", str, "where broken and late tuples go"),
    )
}


class Settings:
    """The values in force."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def copy(self) -> Settings:
        made = Settings()
        made._values = dict(self._values)
        return made

    def set(self, name: str, value: Any, place: Place | None = None) -> None:
        setting = SETTINGS.get(name.lower())
        if setting is None:
            raise NameProblem.unknown("setting", name, SETTINGS, place=place)
        if setting.kind is int and (isinstance(value, bool) or not isinstance(value, int) or not setting.least <= value <= setting.most):
            raise TypeProblem(f"{name} takes a whole number of at least {setting.least}, not {value!r}", place=place)
        if setting.kind is bool and not isinstance(value, bool):
            raise TypeProblem(f"{name} takes true or false, not {value!r}", place=place)
        if setting.kind is str and not isinstance(value, str):
            raise TypeProblem(f"{name} takes a text, not {value!r}", place=place)
        if setting.choices and value not in setting.choices:
            raise NameProblem.unknown(f"{name}", value, setting.choices, place=place)
        if setting.length and _length(name, value, place) < 0:
            raise TypeProblem(f"{name} takes a length of time, not {value!r}", place=place, hint="write one such as '10 seconds'")
        self._values[setting.name] = value

    @property
    def chosen(self) -> dict[str, Any]:
        """The values that were set, by name."""
        return dict(self._values)

    def get(self, name: str) -> Any:
        return self._values.get(name, SETTINGS[name].default)


def _length(name: str, value: str, place: Place | None) -> int:
    try:
        return length(value)
    except MillstreamError as problem:
        said = f"{name} takes a length of time such as '10 seconds': {problem.message}"
        raise TypeProblem(said, place=place, hint=problem.hint) from None

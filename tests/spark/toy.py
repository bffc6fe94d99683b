"""A small program for the host's own tests: words counted per key, then summed over buckets; JSON as blocks."""

from __future__ import annotations

import errno
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.errors import DataProblem
from millstream.io.contract import DeadLetter, Part, Position, Reading, Unit
from millstream.runtime.program import Changes, Outcome, Packet

SCHEMA = pa.schema([("key", pa.string()), ("count", pa.int64())])


def pack(value: Any) -> bytes:
    return json.dumps(value).encode()


@dataclass
class FileWords:
    """One file a unit, words separated by spaces; `watch` makes it unbounded."""

    directory: str
    watch: bool = False

    @property
    def bounded(self) -> bool:
        return not self.watch

    def _files(self) -> list[str]:
        return sorted(str(path) for path in Path(self.directory).glob("*.txt"))

    def check(self) -> None: ...

    def initial(self) -> Position:
        return {"files": 0}

    def latest(self, start: Position, limit: int | None) -> Position:
        there = len(self._files())
        return {"files": there if limit is None else min(there, start["files"] + limit)}

    def units(self, start: Position, end: Position) -> list[Unit]:
        files = self._files()
        return [Unit(number, {"path": files[number]}) for number in range(start["files"], end["files"])]

    def read(self, unit: Unit, batch_size: int) -> Iterator[Reading]:
        words = Path(unit.detail["path"]).read_text().split()
        yield Reading(pa.record_batch([pa.array(words, pa.string())], names=["word"]))

    def arrived(self, unit: Unit) -> int | None:
        return None

    def release(self, position: Position) -> None: ...

    def finished(self, position: Position) -> bool:
        return bool(position["files"] >= len(self._files()))

    def close(self) -> None: ...


@dataclass
class FileSink:
    """Parts are JSON files; a commit lists them in a file named after the epoch."""

    directory: str
    name: str = "files"
    distributed: bool = True

    def check(self, schema: pa.Schema) -> None: ...

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> PartWriter:
        return PartWriter(self.name, str(Path(self.directory) / f"part-{epoch}-{part}-{os.urandom(4).hex()}.json"))

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        done = Path(self.directory) / f"commit-{epoch:06d}.json"
        if not done.exists():
            done.write_text(json.dumps([part.detail["path"] for part in parts]))

    def finish(self) -> None:
        (Path(self.directory) / "finished").touch()


class PartWriter:
    def __init__(self, sink: str, path: str) -> None:
        self.sink, self.path, self.rows = sink, path, []

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.to_pylist()

    def flush(self) -> None: ...

    def close(self) -> Part:
        Path(self.path).write_text(json.dumps(self.rows))
        return Part(self.sink, {"path": self.path})

    def abort(self) -> None: ...


def committed(directory: str) -> list[tuple[str, int]]:
    """What a FileSink has made visible, in order of epochs."""
    rows = []
    for listing in sorted(Path(directory).glob("commit-*.json")):
        for path in json.loads(listing.read_text()):
            rows += [(row["key"], row["count"]) for row in json.loads(Path(path).read_text())]
    return rows


class MemorySink:
    """Results in a list of the process that commits; the list does not travel with the pickle."""

    name = "memory"
    distributed = False

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []
        self.epochs: list[int] = []
        self.finished = False

    def __reduce__(self) -> Any:
        return MemorySink, ()

    def check(self, schema: pa.Schema) -> None: ...

    def writer(self, schema: pa.Schema, part: str, epoch: int | None) -> MemoryWriter:
        return MemoryWriter()

    def commit(self, epoch: int, parts: Iterable[Part]) -> None:
        if epoch not in self.epochs:
            self.epochs.append(epoch)
            for part in parts:
                self.rows += [(row["key"], row["count"]) for row in part.detail["rows"]]

    def finish(self) -> None:
        self.finished = True


class MemoryWriter:
    def __init__(self) -> None:
        self.rows: list[Mapping[str, Any]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.to_pylist()

    def flush(self) -> None: ...

    def close(self) -> Part:
        return Part("memory", {"rows": self.rows})

    def abort(self) -> None: ...


class NoRoom:
    """A state that finds no room on the shelf."""

    def __reduce__(self) -> Any:
        raise OSError(errno.ENOSPC, "no room")


class CountStage:
    """Counts per key; at the end of all streams, gives the counts: to the next stage or to the sink."""

    def __init__(self, program: ToyProgram, index: int, bucket: int) -> None:
        self.program, self.index, self.bucket = program, index, bucket
        self.counts: Counter[str] = Counter()
        self.fresh: Counter[str] = Counter()
        self.ends: set[int] = set()
        self.restored = 0
        self.age = 0

    @property
    def expected(self) -> set[int]:
        return set(range(len(self.program.sources) if self.index == 0 else self.program.buckets))

    def run(self, packets: Sequence[Packet]) -> Outcome:
        order = [(packet.port, packet.order) for packet in packets]
        assert order == sorted(order) and all(packet.bucket == self.bucket for packet in packets)
        self.age += 1
        letters = []
        for packet in packets:
            block = json.loads(packet.block)
            if "end" in block:
                self.ends.add(block["end"])
            for key, count in block.get("counts", []):
                if key == "boom":
                    raise DataProblem("boom", hint="use another word")
                if key == "crash":
                    raise RuntimeError("crashed in a stage")
                if key.startswith("bad"):
                    letters.append(DeadLetter("words", "broken", "a bad word", content=key))
                    continue
                self.fresh[key] += count
                self.counts[key] += count
        self._waste()
        if self.ends != self.expected:
            return Outcome(letters=tuple(letters))
        if self.index + 1 < self.program.stages:
            return Outcome(packets=tuple(self._onward()), letters=tuple(letters))
        return Outcome(results=((0, pack(sorted(self.counts.items()))),), letters=tuple(letters))

    def _waste(self) -> None:
        if self.program.forgetful:  # as if every worker were a new one
            from millstream.runtime.spark import stage

            stage._kept.clear()

    def _onward(self) -> Iterator[Packet]:
        for bucket in range(self.program.buckets):
            mine = [(key, count) for key, count in self.counts.items() if home(key[0], self.program.buckets) == bucket]
            summed = Counter[str]()
            for key, count in mine:
                summed[key[0]] += count
            yield Packet(bucket, 0, (self.bucket, 0, 0), pack({"counts": sorted(summed.items()), "end": self.bucket}))

    def changes(self, number: int) -> Changes | None:
        if not self.fresh and not self.ends:
            return None
        whole = bool(self.program.padding) and number > 1 and number % 10 == 1  # everything again, so that nothing before is needed
        counts = self.counts if whole else self.fresh
        data = pack({"counts": list(counts.items()), "ends": sorted(self.ends), "pad": "x" * self.program.padding})
        self.fresh = Counter()
        return Changes(data, number if whole else 0)

    def restore(self, segments: Iterable[tuple[int, bytes]]) -> None:
        self.counts, self.ends = Counter(), set()
        for _, segment in segments:
            self.restored += 1
            state = json.loads(segment)
            self.ends |= set(state["ends"])
            for key, count in state["counts"]:
                self.counts[key] += count

    def contents(self) -> object:
        return NoRoom() if self.program.forgetful else (dict(self.counts), set(self.ends))

    def adopt(self, contents: Any) -> None:
        self.counts, self.ends = Counter(contents[0]), contents[1]


def home(key: str, buckets: int) -> int:
    return sum(key.encode()) % buckets


@dataclass
class ToyProgram:
    """One stage: counts of words. Two stages: counts of first letters, summed from the counts of words."""

    sources: tuple[tuple[str, Any], ...]
    sinks: tuple[Any, ...]
    stages: int = 1
    buckets: int = 1
    partitions: int = 0
    forgetful: bool = False
    padding: int = 0
    slow: float = 0.0
    ets_every: int | None = None
    fingerprint: str = ""
    seen: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.partitions = self.partitions or self.buckets

    def ingest(self, stream: int, unit: Unit, entered: int = 0) -> Iterator[Outcome]:
        for reading in self.sources[stream][1].read(unit, 1024):
            words = reading.batch.column(0).to_pylist()
            if "unreadable" in words:
                raise DataProblem("an unreadable word")
            time.sleep(self.slow)
            if self.stages == 0:
                yield Outcome(results=((0, pack([(word, 1) for word in words])),))
                continue
            packets = []
            for bucket in range(self.buckets):
                mine = Counter(word for word in words if home(word, self.buckets) == bucket)
                packets.append(Packet(bucket, stream, (unit.number, 0, 0), pack({"counts": sorted(mine.items())})))
            yield Outcome(packets=tuple(packets))

    def noted(self, notes: object) -> None:
        pass

    def reached(self, sink: int) -> dict[str, int | None]:
        return {}

    def enabling(self, streams: object, moving: object, now: int) -> dict[str, int]:
        return {}

    def mark(self, stream: int, unit_number: int, mark: int | None, made: int = 0) -> Iterator[Outcome]:
        if self.stages and mark is None:
            yield Outcome(packets=tuple(Packet(b, stream, (unit_number, 0, 0), pack({"end": stream})) for b in range(self.buckets)))
        elif self.stages:
            block = pack({"counts": [(f"mark{stream}", 1)]})
            yield Outcome(packets=(Packet(0, stream, (unit_number, 0, 0), block),))

    def stage(self, index: int, bucket: int) -> CountStage:
        return CountStage(self, index, bucket)

    def rows(self, sink: int, block: bytes) -> pa.RecordBatch:
        pairs = json.loads(block)
        return pa.record_batch([pa.array([k for k, _ in pairs], pa.string()), pa.array([c for _, c in pairs], pa.int64())], schema=SCHEMA)

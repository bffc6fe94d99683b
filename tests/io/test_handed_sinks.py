"""Sinks in the user's own process: memory and console."""

import pickle

import pyarrow as pa
import pytest

from millstream.errors import SinkProblem
from millstream.io import ConsoleSink, MemorySink, Part, Sink, open_sink
from tests.io.kit import schema

KIND = schema("n BIGINT, s STRING")


def batch(*rows: tuple[int | None, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": n, "s": s} for n, s in rows], KIND)


def part(sink: Sink, epoch: int, *rows: tuple[int | None, str | None]) -> Part:
    writer = pickle.loads(pickle.dumps(sink)).writer(KIND, "0", epoch)
    writer.write(batch(*rows))
    return pickle.loads(pickle.dumps(writer.close()))


def test_memory_keeps_what_is_committed_once() -> None:
    sink = open_sink("M", {"connector": "memory"}, None)
    assert isinstance(sink, MemorySink) and not sink.distributed
    sink.check(KIND)
    assert sink.to_arrow().schema.equals(KIND) and sink.to_arrow().num_rows == 0
    parts = [part(sink, 0, (1, "a")), part(sink, 0), part(sink, 0, (2, None))]
    sink.commit(0, parts)
    sink.commit(0, parts)
    sink.commit(1, [part(sink, 1, (3, "c"))])
    sink.finish()
    assert sink.to_arrow().to_pylist() == [{"n": 1, "s": "a"}, {"n": 2, "s": None}, {"n": 3, "s": "c"}]
    with pytest.raises(SinkProblem, match="different columns"):
        sink.check(schema("x BIGINT"))


def test_memory_without_epochs_shows_what_is_flushed() -> None:
    sink = MemorySink("M")
    writer = sink.writer(KIND, "0", None)
    writer.write(batch((1, "a")))
    assert sink.to_arrow().num_rows == 0
    writer.flush()
    assert sink.to_arrow().num_rows == 1
    writer.write(batch((2, "b")))
    writer.close()
    assert sink.to_arrow()["n"].to_pylist() == [1, 2]


def test_console_prints_aligned_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("C", {"connector": "console"}, None)
    writer = sink.writer(KIND, "0", None)
    writer.write(batch((1, "left"), (200, None), (3, "日本\n")))
    writer.flush()
    assert capsys.readouterr().out == "  n  s\n---  ------\n  1  left\n200  null\n  3  日本\\n\n"
    writer.write(batch((4, "x")))
    writer.close()
    assert capsys.readouterr().out == "  4  x\n"
    writer = sink.writer(KIND, "0", None)
    writer.write(batch((5, "wider than before")))
    writer.close()
    assert capsys.readouterr().out.splitlines() == ["  n  s", "---  -----------------", "  5  wider than before"]


def test_console_limit_and_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("C", {"connector": "console", "limit": "2"}, None)
    assert isinstance(sink, ConsoleSink) and not sink.distributed
    parts = [part(sink, 0, (1, "a"), (2, "b"), (3, "c"))]
    sink.commit(0, parts)
    sink.commit(0, parts)
    sink.finish()
    assert capsys.readouterr().out == "n  s\n-  -\n1  a\n2  b\n... and 1 more\n"

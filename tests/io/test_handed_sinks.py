"""Sinks in the user's own process: memory and console."""

import pickle
from contextlib import nullcontext

import pyarrow as pa
import pytest

from millstream.errors import MillstreamWarning, SinkProblem
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


def numbers(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})


def kept(sink: MemorySink) -> list[int]:
    found: list[int] = sink.to_arrow()["n"].to_pylist()
    return found


@pytest.mark.parametrize("size", [1, 7, 4095, 5000])
def test_memory_with_a_limit_keeps_the_last_rows_and_says_how_many_are_gone(size: int) -> None:
    sink = MemorySink("M", limit=10_000)
    writer = sink.writer(numbers(0, 1).schema, "0", None)
    total = 0
    while total < 30_000:
        writer.write(numbers(total, size))
        writer.flush()
        total += size
        if total == 2 * size:
            assert kept(sink) == list(range(total))
    with pytest.warns(MillstreamWarning) as told:
        assert kept(sink) == list(range(total - 10_000, total))
    assert sink.gone == total - 10_000
    said = f"sink M keeps the last 10,000 rows, {total - 10_000:,} older ones are gone"
    said += "; `limit` sets how many it keeps, 0 keeps all"
    assert [str(warning.message) for warning in told] == [said]
    assert told[0].filename == __file__


def test_memory_with_a_limit_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large batches, small ones that are put together, and slices of what would stay with them."""
    copied = 0
    together = pa.concat_batches

    def counted(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        nonlocal copied
        copied += sum(batch.num_rows for batch in batches)
        return together(batches)

    monkeypatch.setattr(pa, "concat_batches", counted)
    for made in (
        lambda at: numbers(at, 5000),
        lambda at: numbers(at, 50),
        lambda at: numbers(at, 100_000).slice(0, 5000),
    ):
        sink = MemorySink("M", limit=20_000)
        before, copied, written = pa.total_allocated_bytes(), 0, 0
        writer = sink.writer(numbers(0, 1).schema, "0", None)
        for at in range(400):
            batch = made(at)
            written += batch.num_rows
            writer.write(batch)
            writer.flush()
        del batch
        assert pa.total_allocated_bytes() - before < 8 * 30_000
        assert copied <= written
        with pytest.warns(MillstreamWarning) if written > 20_000 else nullcontext():
            assert sink.to_arrow().column("n").num_chunks < 100
        sink.clear()
        assert sink.to_arrow().num_rows == sink.gone == 0


def test_memory_with_a_limit_in_sql_and_without_one() -> None:
    assert open_sink("M", {"connector": "memory", "limit": "5"}, None).most == 5  # type: ignore[attr-defined]
    sink = MemorySink("M")
    assert sink.most == 0
    sink.endless = True
    assert sink.most == 1_000_000
    assert pickle.loads(pickle.dumps(MemorySink("M", limit=0))).limit == 0
    for wrong in (-1, 2.5, "many", True):
        with pytest.raises(
            SinkProblem, match=r"sink M: `limit` is .*; give a number of rows, or 0 to keep all"
        ):
            MemorySink("M", wrong)  # type: ignore[arg-type]


def test_memory_with_a_limit_takes_each_epoch_of_spark_once() -> None:
    sink = MemorySink("M", limit=2)
    for epoch in range(3):
        for _ in range(2):
            sink.commit(epoch, [part(sink, epoch, (2 * epoch, "a")), part(sink, epoch, (2 * epoch + 1, "b"))])
    with pytest.warns(MillstreamWarning, match="sink M keeps the last 2 rows, 4 older ones are gone"):
        assert sink.to_arrow()["n"].to_pylist() == [4, 5]

"""The lines of a run: with the time in a log, from where a run goes on, and which streams are silent."""

from __future__ import annotations

import io
import re
import signal
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from millstream.cli import log
from millstream.cli.progress import Reporter
from millstream.core.types import MAX_TIME, MIN_TIME
from millstream.errors import SourceProblem
from millstream.io import FileSource
from millstream.io.contract import Limits
from millstream.io.options import Options
from millstream.io.readers import file_reader
from millstream.runtime.runs import Resumed
from millstream.runtime.status import Status
from tests.cli.kit import BIDS, QUERY, SINK, STAMP, STREAM, Command, plain


def test_every_line_of_a_run_has_the_time(command: Command) -> None:
    done = command.local(STREAM + SINK + QUERY)
    (line,) = done.raw.splitlines()
    stamp = datetime.strptime(line.split()[0], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - stamp) < timedelta(minutes=1)
    assert STAMP.sub("", line).startswith("read 5 tuples from Bid")
    done = command.local(
        STREAM + SINK.replace("'out'", "'more'") + QUERY.replace("price", "1 / (price - price)")
    )
    assert all(STAMP.match(line) for line in done.raw.splitlines())


def test_an_error_of_a_run_has_the_time_and_one_before_it_has_not(command: Command) -> None:
    socket = STREAM.replace("'file', format = 'csv', path = 'bids'", "'socket', port = 1")
    assert STAMP.match(command.local(socket + SINK + QUERY).raw.splitlines()[-1])
    assert not STAMP.match(command.local(STREAM + SINK + "INSERT INTO Out SELECT pric FROM Bid;").raw)


def test_a_terminal_needs_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, stamped in ((Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        log.begin()
        log.say("a line")
        log.begin(False)
        assert (STAMP.match(stream.getvalue()) is not None) is stamped
        assert plain(stream.getvalue()) == "a line\n"


def test_streams_of_which_nothing_has_come_are_named() -> None:
    marks = {"Ask": MIN_TIME, "Bid": 0, "Gone": MAX_TIME, "Old": MIN_TIME}
    status = Status(tuples_in={"Ask": 0, "Bid": 5, "Gone": 0, "Old": 0}, marks=marks, seconds=3.0)
    reporter = Reporter()
    assert (
        "out 0 (0/s), waiting for the first tuple of Ask and Old, Bid 1970-01-01 00:00:00, "
        in reporter.describe(status)
    )
    reporter.known = frozenset({"Old"})
    assert "waiting for the first tuple of Ask, Bid 1970-01-01 00:00:00, Old -, " in reporter.describe(status)
    status.tuples_in["Ask"] = 1
    assert "waiting" not in reporter.describe(status)


def test_a_silent_stream_is_named_while_the_run_waits(command: Command) -> None:
    (command.directory / "bids").mkdir()
    text = STREAM.replace("path = 'bids'", "path = 'bids', watch = true") + SINK + QUERY
    process = command.start("run", command.pipeline(text, bids=None), "--runtime", "local")
    assert process.stderr is not None
    line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert re.match(
        r"\d\.\d s: in 0 \(0/s\), out 0 \(0/s\), waiting for the first tuple of Bid, ", plain(line)
    )


@pytest.mark.parametrize(
    ("whole", "unread", "said"),
    [
        (
            True,
            {"Ask": (0, 0), "Bid": (2, 4096)},
            "after micro-batch 41, which ended at {}; unread: 2 files of Bid (4.1 kB)",
        ),
        (True, {}, "after micro-batch 41, which ended at {}"),
        (
            False,
            {"Ask": (1, 7), "Bid": (1000, 2_000_000)},
            "with micro-batch 41, which began at {} and was cut off; "
            "unread: 1 file of Ask (7 B) and 1,000 files of Bid (2 MB)",
        ),
    ],
)
def test_a_run_that_goes_on_tells_from_where(
    capfd: pytest.CaptureFixture[str], whole: bool, unread: dict[str, tuple[int, int]], said: str
) -> None:
    reporter = Reporter()
    reporter.goes_on(Resumed(41, whole, 1_767_268_985.5, frozenset({"Bid"}), unread))
    assert capfd.readouterr().err == f"goes on {said.format('2026-01-01T12:03:05Z')}\n"
    assert reporter.known == {"Bid"}


def test_a_stream_of_files_tells_what_is_unread(command: Command) -> None:
    """Of a file that was begun, the rest."""
    for number in range(3):
        command.write(f"bids/{number}.csv", BIDS)
    import pyarrow as pa

    schema = pa.schema([("auction", pa.int64()), ("price", pa.float64()), ("ts", pa.string())])
    path = str(command.directory / "bids")
    options = Options("stream Bid", {"format": "csv"}, None, SourceProblem)
    source = FileSource("Bid", path, file_reader("Bid", schema, options, path)).hosted(None, Limits(bytes=60))
    at = source.initial()
    assert source.unread(at) == (3, 3 * len(BIDS))
    left = []
    while not source.finished(at):
        at = source.latest(at, 1)
        left.append(source.unread(at))
    assert left[-1] == (0, 0) and left == sorted(left, reverse=True)
    assert any(size % len(BIDS) > 0 for _, size in left)


def test_the_outcome_of_a_change_lies_beside_its_file(command: Command) -> None:
    (command.directory / "bids").mkdir()
    command.write(
        "changes/1.sql", "CREATE SINK More WITH (path = 'more'); INSERT INTO More SELECT auction FROM Bid;"
    )
    command.write("changes/2.sql", "INSERT INTO Nowhere SELECT auction FROM Bid;")
    command.write("changes/2.sql.ok", "")
    command.write("changes/3.sql", "").write_bytes(b"\xff")
    text = STREAM.replace("path = 'bids'", "path = 'bids', watch = true") + SINK + QUERY
    process = command.start(
        "run", command.pipeline(text, bids=None), "--runtime", "local", "--control", "changes"
    )
    changes = command.directory / "changes"
    until = time.monotonic() + 30
    while (
        not (changes / "2.sql.err").exists()
        or not (changes / "3.sql.err").exists()
        or (changes / "2.sql.ok").exists()
    ):
        assert time.monotonic() < until
        time.sleep(0.05)
    command.write("changes/1.sql", "DROP QUERY More;")
    while not (changes / "1.sql.err").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "changed by changes/1.sql" in err
    assert (
        (changes / "2.sql.err")
        .read_text()
        .startswith("changes/2.sql: statement 1, line 1, column 13: no sink `Nowhere`")
    )
    assert "it can not be read" in (changes / "3.sql.err").read_text()
    assert "give it a new name" in (changes / "1.sql.err").read_text()
    assert sorted(path.name for path in changes.iterdir() if path.suffix != ".sql") == [
        "1.sql.err",
        "2.sql.err",
        "3.sql.err",
    ]

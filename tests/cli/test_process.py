"""The command as a process: it starts quickly, tells how it goes, and stops when it is asked to."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream import __version__
from tests.cli.kit import BIDS, QUERY, SINK, SOURCE, STREAM, Command, plain

WATCHED = STREAM.replace("path = 'bids'", "path = 'bids', watch = true")


def test_version_and_help(command: Command) -> None:
    done = command("--version")
    assert (done.code, done.out) == (0, f"millstream {__version__}\n")
    done = command("--help")
    assert done.code == 0
    for name in ("run", "explain"):
        assert re.search(rf"^  {name} ", done.out, re.MULTILINE)
    assert command("run", "--help").code == 0


def test_an_interrupt_finds_next_to_nothing_imported() -> None:
    """Python's own handler shows a traceback, so it is put aside before anything that takes time."""
    code = "import sys; before = set(sys.modules)\nimport millstream.__main__\nprint(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['__future__', 'millstream', 'millstream.__main__']\n"


@pytest.mark.parametrize("module", ["millstream", "millstream.cli"])
def test_nothing_heavy_is_imported_at_the_top(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('pyspark', 'numba', 'pyarrow', 'sqlglot', 'matplotlib') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_an_interrupt_where_python_ignores_exceptions_ends_a_run(command: Command) -> None:
    """Imports have such callbacks. An exception in one is lost, and the run would go on for ever."""
    code = """if True:
        import os, signal, sys, weakref

        class Interrupting:
            def find_spec(self, name, path=None, target=None):
                if name == "millstream.cli.run":
                    thing = type("Thing", (), {})()
                    gone = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
                    del thing

        sys.meta_path.insert(0, Interrupting())
        from millstream.__main__ import main
        main()
    """
    process = command.start("run", command.pipeline(WATCHED + SINK + QUERY), "--runtime", "local", code=code)
    try:
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, err) == (-signal.SIGINT, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_stops_a_run_that_has_no_end(command: Command, number: signal.Signals) -> None:
    command.pipeline(WATCHED + SINK + QUERY)
    process = command.start("run", "pipeline.sql", "--runtime", "local")
    wait_for(command.directory / "out" / "_millstream")
    time.sleep(1.5)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    err = plain(err)
    lines = err.splitlines()
    assert (process.returncode, out) == (0, ""), err
    assert lines[-2] == "stopping ..."
    assert re.fullmatch(r"stopped: read 5 tuples from Bid, wrote \d+ to Out \(out/\), \d+\.\d s", lines[-1])


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.8, 1.6])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_at_any_time_shows_no_traceback(command: Command, number: signal.Signals, delay: float) -> None:
    """From the moment on when Python has started: what is before is its own."""
    command.pipeline(WATCHED + SINK + QUERY)
    code = "print('up', flush=True); from millstream.__main__ import main; main()"
    process = command.start("run", "pipeline.sql", "--runtime", "local", code=code)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    time.sleep(delay)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    err = plain(err)
    assert "Traceback" not in err
    if process.returncode:
        assert process.returncode in (-number, 128 + number) and err == ""  # nothing was in hand
    else:
        assert err.splitlines()[-1].startswith("stopped")


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_signals_while_spark_starts(command: Command, signals: int) -> None:
    command.pipeline(WATCHED + SINK + QUERY)
    process = command.start("run", "pipeline.sql", "--master", "local[2]")
    assert process.stderr is not None
    assert plain(process.stderr.readline()) == "starting Spark ...\n"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    if signals == 2:
        assert plain(process.stderr.readline()) == "stopping ...\n"
        os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    err = plain(err)
    assert "Traceback" not in err
    if signals == 1:
        assert process.returncode == 0 and err.splitlines()[-1].startswith("stopped: read nothing, wrote nothing"), err
    else:
        assert (process.returncode, err) == (-signal.SIGINT, "")


@pytest.mark.slow
def test_ctrl_c_stops_a_run_on_spark(command: Command) -> None:
    command.pipeline(WATCHED + SINK + QUERY)
    process = command.start("run", "pipeline.sql", "--master", "local[2]")
    wait_for(command.directory / "out" / "_millstream", 120)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to everyone
    out, err = process.communicate(timeout=60)
    err = plain(err)
    assert (process.returncode, out) == (0, ""), err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("stopped: read 5 tuples from Bid")


@pytest.mark.slow
def test_a_signal_to_every_process_stops_a_run_on_spark(command: Command) -> None:
    """As service managers do it: the JVM is told to end at the same time, and what was in hand is replayed by the next run."""
    command.pipeline(WATCHED + SINK + QUERY)
    process = command.start("run", "pipeline.sql", "--master", "local[2]", "--checkpoint", "kept")
    wait_for(command.directory / "kept" / "commits" / "0", 120)
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    err = plain(err)
    assert process.returncode == 0 and "Traceback" not in err, err
    assert err.splitlines()[-1].startswith("stopped: read "), err


def test_plain_lines_come_every_two_seconds_at_most_and_only_with_news(command: Command) -> None:
    command.pipeline(WATCHED + SINK + QUERY)
    process = command.start("run", "pipeline.sql", "--runtime", "local")
    wait_for(command.directory / "out" / "_millstream")
    began = time.monotonic()
    for number in range(2, 8):
        time.sleep(0.5)
        command.write(f"bids/.{number}.csv.part", BIDS.replace("-01 ", f"-{number:02d} ")).rename(
            command.directory / "bids" / f"{number}.csv"
        )
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    err = plain(err)
    lines = err.splitlines()[:-2]
    assert process.returncode == 0, err
    assert 1 <= len(lines) <= (time.monotonic() - began) / 2 + 2, err
    said = r"\d+\.\d s: in \d+ \([\d.]+/s\), out \d+ \([\d.]+/s\), Bid [\d :-]+ \(\d+ d behind\), state \d+ \([\d.]+ k?B\)"
    for line in lines:
        assert re.fullmatch(said, line), line
    assert "\x1b" not in err and "\r" not in err


def wait_for(path: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.05)

"""The exit status: 1 for an error of the user, 2 for wrong usage, 3 for a fault that may pass."""

from __future__ import annotations

import errno
import pickle
import socket
import threading
import time
from pathlib import Path

import pytest

import millstream.pipeline
from millstream.errors import SetupProblem, SourceProblem
from millstream.io.hold import Hold
from millstream.runtime.checkpoint import Checkpoint
from millstream.runtime.spark.failures import unseal
from tests.cli.kit import QUERY, SINK, STREAM, Command

SOCKET = STREAM.replace("'file', format = 'csv', path = 'bids'", "'socket', format = 'csv', port = {port}")


def test_a_sink_that_another_run_holds(command: Command) -> None:
    hold = Hold("another", str(command.directory / "out"), shared=False)
    done = command.local(STREAM + SINK + QUERY)
    assert (done.code, len(done.lines)) == (3, 1) and "another run is writing" in done.err
    hold.release()
    assert command.local(STREAM + SINK + QUERY).code == 0


def test_a_checkpoint_that_another_run_holds(command: Command) -> None:
    held = Checkpoint.open(str(command.directory / "kept"))
    done = command("run", command.pipeline(STREAM + SINK + QUERY), "--checkpoint", "kept")
    assert (done.code, len(done.lines)) == (3, 1) and "is in use by process" in done.err
    held.close()


def test_a_peer_that_does_not_answer(command: Command) -> None:
    done = command.local(SOCKET.format(port=1) + SINK + QUERY)
    assert done.code == 3 and done.lines[-1].startswith("stream Bid: can not connect to 127.0.0.1:1")


def test_a_peer_that_is_lost(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.sendall(b"1,1.0,2026-01-01 12:00:00\n")
            time.sleep(0.5)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()  # a reset, not an end

        threading.Thread(target=serve, daemon=True).start()
        done = command.local(SOCKET.format(port=server.getsockname()[1]) + SINK + QUERY)
    assert done.code == 3 and "broke: Connection reset by peer; run again" in done.lines[-1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(command: Command, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Met by a sink, or anywhere else."""

    def full(*arguments: object, **named: object) -> None:
        raise OSError(number, "No room", "/data/x")

    with monkeypatch.context() as patch:
        patch.setattr("millstream.io.write.jsonl.JsonlEncoder.write", full)
        done = command.local(STREAM + SINK + QUERY)
    said = "sink Out: can not write /data/x: No room; make room, and run it again"
    assert (done.code, done.lines[-1]) == (3, said)
    monkeypatch.setattr(millstream.pipeline.Pipeline, "add_text", full)
    done = command.local(STREAM + SINK + QUERY)
    assert done.code == 3 and done.lines[-1].startswith("a disk is full: ") and "/data/x" in done.err


@pytest.mark.usefixtures("without_java")
def test_a_missing_java_or_library_is_an_error_of_the_user(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = command("run", command.pipeline(STREAM + SINK + QUERY))
    assert done.code == 1 and done.lines[-1].startswith("Spark needs Java, and ")

    def missing(*arguments: object, **named: object) -> None:
        raise ModuleNotFoundError("No module named 'numba.core'", name="numba.core")

    monkeypatch.setattr(millstream.pipeline.Pipeline, "add_text", missing)
    done = command.local(STREAM + SINK + QUERY)
    said = "the Python library `numba.core` is not there; install Millstream with what it depends on\n"
    assert (done.code, done.err) == (1, said)


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat x", True),
        ("Job aborted: ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", True),
        ("java.io.IOException: No space left on device", True),
        ("ModuleNotFoundError: No module named 'numba'", False),
        ("java.lang.IllegalStateException: something else", False),
    ],
)
def test_faults_of_spark(text: str, passing: bool) -> None:
    problem = unseal(text)
    assert problem.passing is passing and "\n" not in str(problem)


def test_a_fault_that_may_pass_is_one_in_another_process_too() -> None:
    for problem in (SetupProblem("a", hint="b", passing=True), SourceProblem("a")):
        again = pickle.loads(pickle.dumps(problem))
        assert (str(again), again.passing, type(again)) == (str(problem), problem.passing, type(problem))


def test_a_hold_that_is_let_go_is_free_again(tmp_path: Path) -> None:
    first = Hold("a", str(tmp_path / "x" / "y"), shared=False)
    first.release()
    assert not (tmp_path / "x").exists()
    Hold("a", str(tmp_path / "x" / "y"), shared=False).release()

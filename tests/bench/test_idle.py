"""How the idle-partner benchmark judges a side, and its processor time."""

# ruff: noqa: E501 - a program reads best on one line

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from millstream.bench import tree
from millstream.bench.idle import Outcome, _judge, plot
from millstream.cli.idle import show

BEGIN = 1_700_000_000


def judged() -> Outcome:
    fast = np.arange(BEGIN * 1_000_000, (BEGIN + 3) * 1_000_000, 500_000)  # two in each of three windows
    slow = np.array([BEGIN * 1_000_000 + 999_000])
    result = {
        "windows": [(BEGIN + 1.0, 2, BEGIN + 1.5), (BEGIN + 2.0, 2, BEGIN + 4.0)],  # one tuple is missing, and the third window
        "batches": [BEGIN + 0.9, BEGIN + 1.2, BEGIN + 1.4, BEGIN + 3.8],  # when they began,
    }
    return _judge("a side", result, fast, slow, BEGIN, 3, 0.02, 0)


def test_delays_micro_batches_and_losses() -> None:
    outcome = judged()
    assert outcome.delays == ((1.0, 0.5, 2), (2.0, 2.0, 1))
    assert outcome.seconds == (1.25, 2.0)
    assert outcome.batches == (1.5, 2)
    assert (outcome.lost, outcome.tuples) == (3, 7)


def test_a_table_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show([judged()], as_json=False)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("a side", "1.250 s", "2.000 s", "1.5 to 2", "2.0%"))
    plot([judged()], str(tmp_path / "delays.png"))
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")


def test_processor_time_is_that_of_a_process_and_all_below() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", above], stdin=subprocess.PIPE) as process:
        used = tree.cpu_during(process.pid, 1.5)
        process.communicate(b"\n")
    assert 0.2 < used < 0.8


def test_processor_time_of_what_ends_is_not_taken_back() -> None:
    """As when Spark lets its idle workers go: their time so far is not negative time."""
    busy = "import time\nwhile time.process_time() < 0.3: pass\ntime.sleep(0.4)"
    above = f"import os, signal, subprocess, sys, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN); subprocess.Popen([sys.executable, '-c', {busy!r}]); time.sleep(4)"
    with subprocess.Popen([sys.executable, "-c", above]) as process:
        time.sleep(0.3)
        used = tree.cpu_during(process.pid, 1.2)
        process.kill()
    assert 0 <= used < 0.8

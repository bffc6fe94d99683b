"""How the idle-partner benchmark judges a side, and its processor time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from millstream.bench.idle import Outcome, _judge, cpu_seconds, plot
from millstream.cli.idle import show

BEGIN = 1_700_000_000


def judged() -> Outcome:
    fast = np.arange(BEGIN * 1_000_000, (BEGIN + 3) * 1_000_000, 500_000)  # two in each of three windows
    slow = np.array([BEGIN * 1_000_000 + 999_000])
    result = {
        "windows": [(BEGIN + 1.0, 2, BEGIN + 1.5), (BEGIN + 2.0, 2, BEGIN + 4.0)],  # one tuple is missing, and the third window
        "batches": [BEGIN + 0.9, BEGIN + 1.2, BEGIN + 1.5, BEGIN + 4.0],
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
    assert all(text in shown for text in ("a side", "1.25 s", "2 s", "1.5 to 2", "2.0%, 0"))
    plot([judged()], str(tmp_path / "delays.png"))
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")


def test_processor_time_is_that_of_a_process_and_all_below() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\ninput()"
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", above], stdin=subprocess.PIPE) as process:
        before = 0.0
        while cpu_seconds(process.pid) < 0.3:
            assert process.poll() is None and cpu_seconds(process.pid) >= before
            before = cpu_seconds(process.pid)
        process.communicate(b"\n")
    assert cpu_seconds(process.pid) == 0

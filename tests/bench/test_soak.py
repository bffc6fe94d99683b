"""The soak: what it measures, and a short one whose answers are DuckDB's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.bench.soak import Metrics, Sample, Verdict, report, soak
from millstream.bench.tree import family, memory


def sample(seconds: float, mb: float) -> Sample:
    return Sample(seconds, mb, 0.0, 0.0, 0, 0.0, 0, 0.0, 0, 0, 0, 0, 0.0)


def test_growth_is_that_of_the_line_after_the_warm_up() -> None:
    warm = [sample(t, 10.0 * t) for t in range(10)]
    steady = Verdict([*warm, *(sample(t, 1000 + t % 2) for t in range(10, 30))], {}, 0)
    assert steady.steady and abs(steady.growth(lambda s: s.memory_mb)) < 0.001
    leaking = Verdict([*warm, *(sample(t, 1000 + 10 * t) for t in range(10, 30))], {}, 0)
    assert not leaking.steady
    assert report(leaking, False).endswith("memory is NOT steady (less than 5% is steady)")
    assert json.loads(report(steady, True))["steady"] is True
    assert leaking.growth(lambda s: s.memory_mb) == pytest.approx(190 / 1195, rel=0.01)


def test_memory_is_that_of_all_that_a_process_has_started() -> None:
    code = "import os, time, sys; pid = os.fork(); x = bytearray(80 << 20) if pid == 0 else None; print('up', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for _ in range(2):
            assert process.stdout.readline() == "up\n"
        found = memory(process.pid)
        assert found["driver"] < 40 << 20 and found["workers"] > 79 << 20 and found["jvm"] == 0
    finally:
        for pid in family(process.pid):
            os.kill(pid, 9)
        process.wait()
        process.stdout.close()


def test_a_run_without_a_micro_batch_has_no_metrics_yet(tmp_path: Path) -> None:
    metrics = Metrics(str(tmp_path / "metrics.jsonl"))
    assert metrics.last()["batches"] == 0
    (tmp_path / "metrics.jsonl").write_text('{"batches": 1}\n{"batches": 2}\n{"batch')
    assert metrics.last() == {"batches": 2}


@pytest.mark.slow
def test_a_short_soak(tmp_path: Path) -> None:
    verdict = soak(0.25, str(tmp_path / "soak"), master="local[2]")
    assert verdict.checked["pairs"] > 10_000 and verdict.checked["counts"] >= 1000 and verdict.late > 0
    assert verdict.samples[-1].workers_mb > 0 and verdict.samples[-1].checkpoint_files > 0
    assert (tmp_path / "soak" / "soak.png").stat().st_size > 10_000

"""Nothing lost and nothing twice, whoever is killed: a short form for every day, and at least thirty kills for `make test-all`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.kit import prepare, run
from tests.crash.harness import Trial
from tests.crash.processes import below, kill

# (scenario, seed, kills, on a cluster); chosen so that all victims and moments occur in each half.
TRIALS = [
    ("join", 101, 6, False),
    ("windows", 102, 6, False),
    ("stages", 103, 6, False),
    ("letters", 104, 6, False),
    ("left", 105, 6, False),
    ("watched", 106, 6, False),
    ("closing", 109, 6, False),
    ("many", 110, 6, False),
    ("at once", 111, 6, False),
    ("stages", 107, 4, True),
    ("left", 108, 4, True),
]


@pytest.mark.timeout(600)
def test_a_run_that_is_killed(tmp_path: Path) -> None:
    trial = Trial(2, tmp_path / "trial", kills=1, scenario="stages")
    trial.run()
    assert len(trial.done) == 1


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("scenario", "seed", "kills", "cluster"), TRIALS, ids=[f"{name}-{seed}" for name, seed, _, _ in TRIALS])
def test_kills_at_random_points(tmp_path: Path, scenario: str, seed: int, kills: int, cluster: bool) -> None:
    """A run may end before its last kill, hence a few more than thirty; most of them must find it alive."""
    trial = Trial(seed, tmp_path / "trial", kills=kills, scenario=scenario, cluster=cluster)
    trial.run()
    assert len(trial.done) >= kills - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "said"),
    [
        ("jvm", "Spark's Java process has ended (signal 9); run again with the same checkpoint to go on"),
        ("source", "the Python process that Spark asks for news of the sources has ended; run again with the same checkpoint to go on"),
    ],
)
def test_a_lost_process_is_one_line(tmp_path: Path, victim: str, said: str) -> None:
    prepare(tmp_path)

    def lose(pid: int) -> None:
        kill([process.pid for process in below(pid) if process.kind == victim])

    done = run(tmp_path, "--master", "local[2]", "--checkpoint", "checkpoint", stop_after=2, stop=lose)
    assert done.code == 3 and "Traceback" not in done.err
    assert done.err.splitlines()[-1] == said


@pytest.mark.slow
def test_a_lost_worker_costs_a_moment(tmp_path: Path) -> None:
    prepare(tmp_path)
    killed = []

    def lose(pid: int) -> None:
        family = below(pid)
        ours = {process.pid for process in family if "millstream.runtime.spark.daemon" in process.command}
        killed.extend(process.pid for process in family if process.pid in ours and process.parent in ours)  # workers, not their daemon
        kill(killed)

    done = run(tmp_path, "--master", "local[2]", "--checkpoint", "checkpoint", stop_after=2, stop=lose)
    assert killed and done.code == 0, done.err

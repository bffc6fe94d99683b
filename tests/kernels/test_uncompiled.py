"""A part of the tests once more without the compiler, where an index out of range is an error and not a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = (
    "tests/kernels/test_arrivals.py",
    "tests/kernels/test_hashing.py",
    "tests/kernels/test_partition.py",
    "tests/kernels/test_windows.py",
    "tests/state/test_calendar.py::test_pop_gives_what_is_due",
    "tests/state/test_accumulators.py::test_decimal_totals_are_exact_to_the_last_digit",
    "tests/state/test_accumulators.py::test_sums_pass_through_what_does_not_fit",
    "tests/state/test_row_window.py::test_random_operations",
    "tests/state/test_group_table.py::test_random_operations",
    "tests/state/test_group_table.py::test_random_operations_with_a_terrible_hash",
)


@pytest.mark.slow
def test_the_same_answers_without_the_compiler() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "fast", "PYTHONPATH": str(ROOT / "src"), "CI": "1"}
    # Words wrap round in hashes and carries; numpy's scalars warn of it, compiled code does not.
    arguments = ["-q", "-W", "ignore::RuntimeWarning", "-p", "no:cacheprovider", *PARTS]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]

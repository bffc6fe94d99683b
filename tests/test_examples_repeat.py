"""Random examples: the same on each machine by default, new ones with a seed in the thorough profile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

RANDOM_TEST = """
from hypothesis import given, strategies as st

@given(number=st.integers(0, 2**60))
def test_that_fails(number):
    print("drawn", number)
    assert number < 0
"""


def run_pytest(directory: Path, profile: str, *options: str) -> tuple[list[str], str]:
    """The numbers that are drawn, and all that is printed."""
    shutil.copy(Path(__file__).parent / "conftest.py", directory)
    (directory / "test_random.py").write_text(RANDOM_TEST)
    environment = {**os.environ, "HYPOTHESIS_PROFILE": profile, "CI": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return re.findall(r"^drawn (\d+)$", done.stdout, re.MULTILINE), done.stdout


def test_the_same_by_default_and_new_ones_with_a_seed_in_the_thorough_profile(tmp_path: Path) -> None:
    usual, _ = run_pytest(tmp_path, "fast")
    assert run_pytest(tmp_path, "fast")[0] == usual
    new, printed = run_pytest(tmp_path, "thorough")
    assert new != usual
    repeat = r"repeat: HYPOTHESIS_PROFILE=thorough python -m pytest '.*' (--hypothesis-seed=\d+)"
    seed = re.search(repeat, printed)
    assert seed is not None
    assert run_pytest(tmp_path, "thorough", seed[1])[0] == new

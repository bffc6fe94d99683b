"""Two processes of pytest together run each test once, and print one closing line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import side_by_side

TESTS = Path(__file__).parent


def test_each_test_file_is_in_one_half() -> None:
    halves = [[Path(path) for path in half] for half in side_by_side.halves(TESTS)]
    for file in TESTS.glob("**/test_*.py"):
        assert sum(file == path or path in file.parents for half in halves for path in half) == 1, file
    assert {path.name for path in halves[0]} == set(side_by_side.ON_SPARK)


@pytest.mark.parametrize(
    ("spark", "status", "line"),
    [
        ("def test_a(): pass", 0, "2 passed in "),
        ("def test_a(): raise ValueError", 1, "1 failed, 1 passed in "),
        ("raise ValueError", 2, "1 passed, 1 error in "),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 9, "1 passed in "),
        ("", 0, "1 passed in "),
    ],
)
def test_the_worse_half_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: str, status: int, line: str
) -> None:
    for directory, text in (("spark", spark), ("other", "def test_b(): pass")):
        (tmp_path / "tests" / directory).mkdir(parents=True)
        (tmp_path / "tests" / directory / f"test_{directory}.py").write_text(text)
    assert side_by_side.main(["-q", "-p", "no:hypothesispytest"], tmp_path) == status
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith(line)
    assert [bool(side_by_side.CLOSING.match(each)) for each in printed].count(True) == 1


def test_long_runs_have_minutes() -> None:
    counts = side_by_side.Counter({"passed": 4145, "skipped": 2, "deselected": 508})
    assert (
        side_by_side.closing(counts, 316.98) == "4145 passed, 2 skipped, 508 deselected in 316.98s (0:05:16)"
    )

"""`millstream figures`: claims on standard output, pictures and data in a directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.kit import Command


def test_claims_pictures_and_data(command: Command, tmp_path: Path) -> None:
    done = command("figures", "ets", "--seconds", "2", "--out", "drawn")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 100
    assert "C is within 2 times D" in " ".join(done.out.split())
    assert "virtual time" in done.err
    names = {path.name for path in (tmp_path / "drawn").iterdir()}
    assert names == {"000-7a.png", "000-7b.png", "000-8.png", "ets.json"}
    data = json.loads((tmp_path / "drawn" / "ets.json").read_text())
    assert data["runs"]["C: on demand"]["latency_ms"] == pytest.approx(0.02, rel=0.05)
    assert {claim["figure"] for claim in data["claims"]} == {"7a", "7b", "text", "8"}


@pytest.mark.slow
def test_the_other_paper(command: Command, tmp_path: Path) -> None:
    done = command("figures", "query-graph", "--seconds", "1", "--out", "drawn")
    assert done.code == 0
    names = {path.name for path in (tmp_path / "drawn").iterdir()}
    assert names == {f"001-{figure}.png" for figure in ("14a", "14b", "15a", "15b", "16")} | {"query-graph.json"}


def test_an_unknown_name_is_told_in_one_line(command: Command) -> None:
    done = command("figures", "est")
    assert done.code == 1
    assert len(done.lines) == 1 and "did you mean `ets`" in done.lines[0]

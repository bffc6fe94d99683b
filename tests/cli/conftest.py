"""The command in a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kit import Command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capfd)

"""The command in a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kit import Command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, monkeypatch, capfd)


@pytest.fixture
def without_java(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java is found, and the session that earlier tests may have started is hidden."""
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.setenv("JAVA_HOME", str(command.directory / "nowhere"))

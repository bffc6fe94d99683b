"""Runs the `millstream` command, in this process or as one of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from millstream.cli import main

SOURCE = Path(__file__).parents[2] / "src"

BIDS = """\
auction,price,ts
1,10.0,2026-01-01 12:00:05
2,7.5,2026-01-01 12:00:40
1,12.0,2026-01-01 12:01:02
1,11.0,2026-01-01 12:00:50
2,9.0,2026-01-01 12:01:30
"""

STREAM = """\
CREATE STREAM Bid (auction BIGINT, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 30 SECONDS
  WITH (connector = 'file', format = 'csv', path = 'bids');
"""
SINK = "CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = 'out');\n"
QUERY = "INSERT INTO Out SELECT auction, count(*) AS n, max(price) AS best FROM Bid [RANGE 1 MINUTE] GROUP BY auction;\n"


STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", re.MULTILINE)


def plain(err: str) -> str:
    """The lines of a run without their times."""
    return STAMP.sub("", err)


@dataclass
class Done:
    code: int
    out: str
    raw: str

    @property
    def err(self) -> str:
        return plain(self.raw)

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


class Command:
    """`command("run", "x.sql")` in this process: quick, and everything but signals and terminals is as in a process of its own."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.directory, self.monkeypatch, self.capfd = directory, monkeypatch, capfd
        monkeypatch.chdir(directory)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def pipeline(self, text: str, bids: str | None = BIDS) -> str:
        if bids is not None:
            self.write("bids/1.csv", bids)
        self.write("pipeline.sql", text)
        return "pipeline.sql"

    def __call__(self, *arguments: str) -> Done:
        self.monkeypatch.setattr(sys, "argv", ["millstream", *arguments])
        self.capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capfd.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    def local(self, text: str, *arguments: str, bids: str | None = BIDS) -> Done:
        """Write a pipeline and run it in one process."""
        return self("run", self.pipeline(text, bids), "--runtime", "local", *arguments)

    def start(self, *arguments: str, code: str | None = None) -> subprocess.Popen[str]:
        """As a process of its own, the first of its group; by `code` where it should do something before."""
        command = [sys.executable, *(["-m", "millstream"] if code is None else ["-c", code]), *arguments]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.directory, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

"""Temporary files of processes that were killed are removed by the next one."""

import os
import subprocess
import sys
from pathlib import Path

MAKE = "from millstream.runtime import scratch; print(scratch.directory('run'), flush=True)"


def make(tmp_path: Path, then: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"{MAKE}; {then}"]
    return subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True)


def made(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_only_the_dead_are_swept(tmp_path: Path) -> None:
    wait = "import time; time.sleep(600)"
    with make(tmp_path, wait) as one, make(tmp_path, wait) as two:
        killed, living = made(one), made(two)
        assert killed.is_dir() and living.is_dir() and killed.parent != living.parent
        one.kill()
        one.wait()
        assert killed.is_dir()
        with make(tmp_path, "import os; os.fork() or os._exit(0); os.wait()") as three:
            done = made(three)
        assert living.is_dir() and not killed.parent.exists() and not done.parent.exists()
        two.kill()

"""Runs pytest in two processes side by side, as Spark leaves one of two cores idle: `python -m tests.side_by_side -q`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO

ON_SPARK = ("api", "bench", "changes", "cli", "cluster", "crash", "examples", "runtimes", "spark")
"""The directories whose tests start Spark or other processes; all others are the second half."""
CLOSING = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [\d.]+s.*$")
NO_TESTS = 5


def halves(tests: Path) -> tuple[list[str], list[str]]:
    """All directories and files of tests, those on Spark first."""
    found = sorted(
        path
        for path in tests.iterdir()
        if (path.is_dir() and any(path.glob("**/test_*.py"))) or path.match("test_*.py")
    )
    one, other = (
        [str(path) for path in found if (path.name in ON_SPARK) is spark] for spark in (True, False)
    )
    return one, other


def names_a_path(arguments: Sequence[str]) -> bool:
    return any(not each.startswith("-") and Path(each.split("::")[0]).exists() for each in arguments)


def lines(process: subprocess.Popen[bytes], file: IO[bytes]) -> Iterator[str]:
    """What the process prints into the file, as it comes."""
    rest = b""
    while True:
        ended = process.poll() is not None
        if new := file.read():
            *whole, rest = (rest + new).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
        elif ended:
            break
        else:
            time.sleep(0.1)
    if rest:
        yield rest.decode(errors="replace")


def closing(counts: Counter[str], seconds: float) -> str:
    """One line for both halves, in the form of pytest."""
    order = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors")
    parts = [
        f"{counts[name]} {name.rstrip('s') if counts[name] == 1 else name}" for name in order if counts[name]
    ]
    whole = f" ({timedelta(seconds=int(seconds))})" if seconds >= 60 else ""
    return f"{', '.join(parts) or 'no tests ran'} in {seconds:.2f}s{whole}"


def main(arguments: Sequence[str], root: Path) -> int:
    pytest = [sys.executable, "-m", "pytest"]
    if names_a_path(arguments):
        return subprocess.call([*pytest, *arguments], cwd=root)
    began, counts = time.monotonic(), Counter[str]()
    with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as two:
        running = [
            subprocess.Popen(
                [*pytest, *arguments, *more, *paths], cwd=root, stdout=file, stderr=subprocess.STDOUT
            )
            for paths, file, more in zip(
                halves(root / "tests"), (one, two), (["-o", "cache_dir=.pytest_cache/spark"], []), strict=True
            )
        ]
        try:
            # The second half is done sooner, so it is shown first.
            for process, file in ((running[1], two), (running[0], one)):
                with open(file.name, "rb") as printed:
                    for line in lines(process, printed):
                        if (found := CLOSING.match(line)) is None:
                            print(line, flush=True)
                            continue
                        for number, name in re.findall(r"(\d+) ([a-z]+)", found[1]):
                            counts[{"warning": "warnings", "error": "errors"}.get(name, name)] += int(number)
        except KeyboardInterrupt:
            for process in running:
                process.wait()
            return 130
    codes = {process.returncode for process in running}
    for code in codes:
        if code < 0:
            print(f"one half of the tests was ended by signal {-code}")
    print(closing(counts, time.monotonic() - began))
    return max(map(abs, codes - {NO_TESTS} or codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent.parent))

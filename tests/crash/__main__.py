"""`python -m tests.crash --seed N` replays a trial; `--soak N` goes on with new seeds until N kills are done."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.harness import Trial
from tests.crash.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=5, help="in one trial")
    parser.add_argument("--soak", type=int, default=0, help="go on with the seeds that follow until so many kills are done")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--cluster", action="store_true", help="on local-cluster, where executors can be killed, too")
    given = parser.parse_args()
    began, killed, seed = time.monotonic(), 0, given.seed
    while True:
        place = Path(tempfile.mkdtemp(prefix=f"millstream-crash-{seed}-"))
        trial = Trial(seed, place, given.kills, given.scenario, given.cluster)
        try:
            trial.run()
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
        shutil.rmtree(place, ignore_errors=True)
        killed += len(trial.done)
        print(f"  exact; {killed} kills in {time.monotonic() - began:.0f} s", flush=True)
        seed += 1
        if killed >= given.soak:
            return 0


if __name__ == "__main__":
    sys.exit(main())

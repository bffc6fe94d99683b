"""Runs new random queries of all families for some minutes: `python -m tests.oracle.fuzz --minutes 30`."""

from __future__ import annotations

import argparse
import random
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle, product
from typing import Any

from tests.oracle import liveness
from tests.oracle.cases import ALL, make_case

HOSTS = ("process", "hosted")
"""In one process, and over several buckets as Spark would host it."""
LIMIT = 120
"""Seconds after which a case counts as one that never ends."""


def answer(family: str, host: str, seed: int) -> None:
    """The answer after the end of the streams."""
    chance = random.Random(seed)
    case = make_case(chance, family)
    case.check(case.host(chance.choice([1, 2, 3, 5]), chance) if host == "hosted" else case.run())


def live(family: str, host: str, seed: int) -> None:
    """The answer while the streams run."""
    chance = random.Random(seed)
    case = liveness.make_live(chance, family)
    buckets = chance.choice([1, 2, 3, 5]) if host == "hosted" else 0
    liveness.check(case, liveness.live(case, buckets=buckets, chance=chance))


KINDS: dict[str, Callable[[str, str, int], None]] = {"answer": answer, "live": live}


def failure(kind: str, family: str, host: str, seed: int) -> BaseException | None:
    """The error that one case ends with."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    try:
        KINDS[kind](family, host, seed)
    except Exception as error:
        return error
    finally:
        signal.alarm(0)
    return None


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"the case runs for more than {LIMIT} s")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--family", choices=list(ALL), help="this family alone")
    parser.add_argument(
        "--kind", choices=list(KINDS), help="answers after the end of the streams, or while they run"
    )
    parser.add_argument("--host", choices=HOSTS, help="this host alone")
    parser.add_argument("--seed", type=int, help="run one case again, with its family, kind and host")
    options = parser.parse_args(arguments)
    families = [options.family] if options.family else list(ALL)
    kinds = [options.kind] if options.kind else list(KINDS)
    hosts = [options.host] if options.host else list(HOSTS)
    if options.seed is not None:
        if not (options.family and options.kind and options.host):
            parser.error("--seed goes with --family, --kind and --host")
        error = failure(options.kind, options.family, options.host, options.seed)
        print("holds" if error is None else f"{type(error).__name__}: {error}")
        return error is not None
    return fuzz(options.minutes, families, kinds, hosts)


def fuzz(minutes: float, families: Sequence[str], kinds: Sequence[str], hosts: Sequence[str]) -> int:
    """Go round robin until the time is up, and print the failures and the number of cases; 1 after a failure."""
    began, cases, failures = time.monotonic(), Counter[tuple[str, str, str]](), 0
    for family, kind, host in cycle(product(families, kinds, hosts)):
        if time.monotonic() - began > 60 * minutes:
            break
        seed = secrets.randbits(48)
        cases[family, kind, host] += 1
        error = failure(kind, family, host, seed)
        if error is not None:
            failures += 1
            print(f"FAILED: {type(error).__name__}: {error}")
            again = f"--family {family} --kind {kind} --host {host} --seed {seed}"
            print(f"repeat: python -m tests.oracle.fuzz {again}", flush=True)
    columns = list(product(kinds, hosts))
    print(f"{'family':<18}" + "".join(f"{f'{kind}, {host}':>18}" for kind, host in columns))
    for family in families:
        print(f"{family:<18}" + "".join(f"{cases[family, kind, host]:>18,}" for kind, host in columns))
    passed = (time.monotonic() - began) / 60
    print(f"{cases.total():,} cases in {passed:.1f} minutes, {failures} failed")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

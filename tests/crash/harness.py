"""One trial of the crash harness: a pipeline is run, killed, restarted until its end, and compared with the oracle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.processes import Process, below, kill, wait_gone
from tests.crash.scenarios import SCENARIOS, Data, Scenario, found, found_letters, make
from tests.runtimes.compare import assert_same

SOURCE = Path(__file__).parents[2] / "src"
LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
PATIENCE = 180.0
"""Seconds without an end after which a run hangs."""
FILES_A_KILL, FILES_MORE = 5, 4

# After which news a kill comes, how long after it at most (seconds). "state" and "sink" aim between two steps of one commit.
MOMENTS = {"start": 9.0, "offsets": 0.5, "state": 0.05, "sink": 0.05, "commits": 0.3}
VICTIMS = ("machine", "driver", "jvm", "worker", "source")
CLUSTER_VICTIMS = ("executor", "executor", "worker", "machine", "jvm", "source")


@dataclass(frozen=True)
class Blow:
    """One kill: whom, after which news, how long after."""

    victim: str
    moment: str
    skip: int
    """How many such news to let pass."""
    delay: float

    def __str__(self) -> str:
        return f"{self.victim} {self.delay * 1000:.0f} ms after {self.moment}" + (f" (+{self.skip})" if self.skip else "")


@dataclass
class Trial:
    """Everything follows from the seed but the machine's own timing."""

    seed: int
    place: Path
    kills: int = 5
    scenario: str | None = None
    cluster: bool = False
    say: Callable[[str], None] = print
    done: list[Blow] = field(default_factory=list)
    lives: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        chosen = self.rng.choice(sorted(SCENARIOS))
        self.what: Scenario = SCENARIOS[self.scenario or chosen]
        self.files = FILES_A_KILL * self.kills + FILES_MORE
        self.data: Data = make(self.what, self.rng, self.files)
        self.blows = [self._blow() for _ in range(self.kills)]
        self.fed = 0
        self.last_fed = 0.0
        self.family: list[Process] = []
        self.orphans: list[int] = []

    def _blow(self) -> Blow:
        moment = self.rng.choice(list(MOMENTS))
        victim = self.rng.choice(CLUSTER_VICTIMS if self.cluster else VICTIMS)
        return Blow(victim, moment, self.rng.randrange(3), self.rng.uniform(0, MOMENTS[moment]))

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.what.name} on {'a cluster' if self.cluster else 'one machine'}, {self.kills} kills"

    def run(self) -> None:
        """To the end; an AssertionError names the seed."""
        self.say(str(self))
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "pipeline.sql").write_text(self.what.sql)
        for stream in self.what.streams:
            (self.place / "in" / stream).mkdir(parents=True)
        if not self.what.watched:
            self._feed(self.files)
        try:
            self._live()
            self._compare()
        except AssertionError as error:
            again = f"python -m tests.crash --seed {self.seed} --kills {self.kills}" + (" --cluster" if self.cluster else "")
            again += f" --scenario {self.scenario}" if self.scenario else ""
            raise AssertionError(f"{error}\nkilled: {'; '.join(map(str, self.done))}\nlogs: {self.place}\nagain: {again}") from None

    def _live(self) -> None:
        left = list(self.blows)
        while True:
            process, log = self._start(watch=self.what.watched and (bool(left) or self.fed < self.files))
            struck = False
            try:
                while left and self._reached(process, left[0], not struck):
                    self._strike(process, left.pop(0))
                    struck = True
                    if self.done[-1].victim in ("machine", "driver", "jvm", "source"):
                        break
                code = self._end(process)
            finally:
                self._raze(process)
            if self.watching and self.fed >= self.files:
                left.clear()
            said = log.read_text()
            assert "Traceback" not in said, f"life {self.lives} ended with a traceback:\n{said[-3000:]}"
            if code == 0 and not (self.what.watched and (left or self.fed < self.files or self.watching)):
                assert not (still := wait_gone(self.orphans, 30)), f"processes {still} outlived the driver that was killed"
                return
            assert struck or code == 0, f"life {self.lives} failed by itself ({code}):\n{said[-3000:]}"

    def _start(self, watch: bool) -> tuple[subprocess.Popen[bytes], Path]:
        self.lives += 1
        self.watching = watch
        log = self.place / f"life-{self.lives}.log"
        temporary = self.place / "tmp"
        temporary.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "millstream.cli", "run", "pipeline.sql", "--master", CLUSTER if self.cluster else LOCAL]
        command += ["--checkpoint", "checkpoint", "--set", "in=in", "--set", "out=out", "--set", f"watch={str(watch).lower()}"]
        # Spark's own snapshots of the state, too, are to come within seconds.
        for conf in ("minDeltasForSnapshot=3", "maintenanceInterval=1s"):
            command += ["--conf", f"spark.sql.streaming.stateStore.{conf}"]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=self.place, env=environment, stdout=out, stderr=out, start_new_session=True)
        return process, log

    def _reached(self, process: subprocess.Popen[bytes], blow: Blow, fresh_start: bool) -> bool:
        """Wait for the moment of a kill; False when the run ends before."""
        until = time.monotonic() + PATIENCE
        seen = self._news(blow.moment)
        skip = blow.skip
        while blow.moment != "start":
            self._feed_a_little()
            over = self.watching and self.fed >= self.files and time.monotonic() > self.last_fed + 15  # no more news will come
            if process.poll() is not None or over:
                return False
            assert time.monotonic() < until, f"life {self.lives}: no news of {blow.moment} within {PATIENCE} s"
            if fresh := self._news(blow.moment) - seen:
                if skip <= 0:
                    break
                skip -= len(fresh)
                seen |= fresh
            time.sleep(0.002)
        time.sleep(blow.delay if blow.moment != "start" or fresh_start else min(blow.delay, 0.5))
        return process.poll() is None

    def _news(self, moment: str) -> set[str]:
        checkpoint = self.place / "checkpoint"
        if moment == "sink":
            return {str(path) for path in self.place.glob("out/*/_millstream/*/[0-9]*.json")}
        if moment == "state":
            return {os.path.join(root, name) for root, _, names in os.walk(checkpoint / "state") for name in names}
        return {path.name for path in (checkpoint / moment).glob("*")} if moment != "start" else set()

    def _strike(self, process: subprocess.Popen[bytes], blow: Blow) -> None:
        family = self.family = below(process.pid)
        if blow.victim == "machine":
            pids = [process.pid, *(p.pid for p in family)]
        elif blow.victim == "driver":
            pids = [process.pid]
        else:
            candidates = [p.pid for p in family if p.kind == blow.victim]
            if not candidates:  # still starting: it is the machine then
                candidates, blow = [process.pid, *(p.pid for p in family)], Blow("machine", blow.moment, blow.skip, blow.delay)
            pids = candidates if blow.victim == "machine" else [self.rng.choice(candidates)]
        kill(pids)
        self.done.append(blow)
        self.say(f"  life {self.lives}: killed {blow}")

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the end of a run that was left alone; a watched one is asked to stop once it has everything."""
        until = time.monotonic() + PATIENCE
        while process.poll() is None:
            self._feed_a_little()
            if self.watching and self.fed >= self.files and time.monotonic() > self.last_fed + 1.0:
                process.send_signal(signal.SIGTERM)
                self.last_fed = float("inf")
            assert time.monotonic() < until, f"life {self.lives}: no end within {PATIENCE} s"
            time.sleep(0.02)
        return process.returncode

    def _raze(self, process: subprocess.Popen[bytes]) -> None:
        """Nothing of a life outlives it, but for a driver killed alone: its JVM must see to that, and the next life may begin before."""
        family = {p.pid for p in (*self.family, *below(process.pid))}
        if self.done and self.done[-1].victim == "driver" and process.poll() is not None:
            self.orphans += family
            if self.rng.random() < 0.5:
                wait_gone(self.orphans, 30)
        else:
            kill([process.pid, *family])
        process.wait()
        self.family = []

    def _feed(self, count: int) -> None:
        for number in range(self.fed, min(self.fed + count, self.files)):
            for stream in self.what.streams:
                self.data.write(self.place / "in", stream, number)
        self.fed = min(self.fed + count, self.files)
        self.last_fed = time.monotonic()

    def _feed_a_little(self) -> None:
        """A few files ahead of what the run has done, so that there is news in each life."""
        if self.what.watched and self.fed < self.files and self.fed < len(self._news("commits")) + 3:
            self._feed(1)

    def _compare(self) -> None:
        for sink, rows in self.data.answer(self.what).items():
            assert_same(found(self.place / "out" / sink), rows, sink)
        letters = found_letters(self.place / "out" / "letters")
        assert sorted(letters) == sorted(self.data.letters), f"letters: {len(letters)}, expected {len(self.data.letters)}"

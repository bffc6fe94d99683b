"""Runs the demo: starts the pipeline, lets the auction begin, and says in plain words what happens."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from importlib.resources import files
from statistics import median

from millstream.demo.halls import Auction
from millstream.demo.picture import draw
from millstream.demo.watch import Result, Watcher
from millstream.errors import DataProblem
from millstream.pipeline import Pipeline
from millstream.runtime.launch import Launch
from millstream.runtime.runs import run_local, run_spark
from millstream.runtime.status import Status

SECONDS, SILENT_AFTER = 20.0, 7.0

Say = Callable[[str], None]


def tell(directory: str, say: Say, *, runtime: str = "spark", seconds: float = SECONDS, silent_after: float = SILENT_AFTER) -> str:
    """The whole story; returns the path of the picture."""
    directory = os.path.abspath(directory)
    shutil.rmtree(os.path.join(directory, "in"), ignore_errors=True)
    shutil.rmtree(os.path.join(directory, "out"), ignore_errors=True)
    auction = Auction(os.path.join(directory, "in"), seconds, silent_after)
    auction.prepare()
    text = files("millstream.demo").joinpath("auction.sql").read_text()
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "auction.sql"), "w") as file:
        file.write(text)
    pipeline = Pipeline()
    folders = {"in": os.path.join(directory, "in"), "out": os.path.join(directory, "out")}
    pipeline.add_text(text, variables=folders, file="auction.sql")
    running = _Running(pipeline, runtime)
    where = "on Spark (a few seconds)" if runtime == "spark" else "in this process"
    say(f"Starting the pipeline {os.path.join(directory, 'auction.sql')} {where}.")
    running.start()
    running.wait_for_first()
    say("Two auction halls, London and Boston, send bids. Every 2 s the turnover of both; for each item its price when the hammer falls.")
    watcher = Watcher(folders["out"], auction)
    auction.start()
    _follow(auction, watcher, running, say)
    running.stop.set()
    running.join()
    _raise(running)
    watcher.look()
    picture = draw(auction, watcher.results, os.path.join(directory, "demo.png"))
    for line in summary(auction, watcher.results, directory, picture):
        say(line)
    return picture


class _Running(threading.Thread):
    """The pipeline in a thread of its own."""

    def __init__(self, pipeline: Pipeline, runtime: str) -> None:
        super().__init__(daemon=True)
        self.launch = Launch.prepare(pipeline)
        self.runtime = runtime
        self.stop = threading.Event()
        self.first = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            run = run_spark if self.runtime == "spark" else run_local
            run(self.launch, stop=self.stop, on_status=self._status)
        except BaseException as failure:
            self.failure = failure
        finally:
            self.first.set()

    def _status(self, status: Status) -> None:
        if sum(status.tuples_in.values()):
            self.first.set()

    def wait_for_first(self) -> None:
        self.first.wait()
        _raise(self)


def _raise(running: _Running) -> None:
    if running.failure is not None:
        raise running.failure


def _follow(auction: Auction, watcher: Watcher, running: _Running, say: Say) -> None:
    silent = False
    until = None
    while until is None or time.time() < until:
        _raise(running)
        if not silent and auction.is_silent():
            silent = True
            say(f"{_clock(auction, time.time())}  >>> Boston has fallen silent. London goes on.")
        for result in watcher.look():
            if result.due > auction.began:
                say(_line(auction, result, silent))
        if until is None and auction.over.is_set():
            until = time.time() + 3.5  # the last windows close although nobody says anything any more
            say(f"{_clock(auction, time.time())}  >>> London is done for today, too.")
        time.sleep(0.05)


def _line(auction: Auction, result: Result, silent: bool) -> str:
    row = result.row
    when = f"{_clock(auction, result.seen)}  "
    if result.sink == "sold":
        return f"{when}item {row['item']} sold for {row['price']:.2f} after {row['bids']} bids, {result.delay:.1f} s after the hammer"
    begin, end = result.due - 2 - auction.began, result.due - auction.began
    note = "  (without a word from Boston)" if silent and result.due > auction.boston.last else ""
    said = f"{row['bids']} bids, highest {row['highest']:.2f}, out {result.delay:.1f} s after its end{note}"
    return f"{when}window {begin:4.1f} to {end:4.1f} s: {said}"


def _clock(auction: Auction, now: float) -> str:
    return f"[{now - auction.began:5.1f} s]"


def summary(auction: Auction, results: list[Result], directory: str, picture: str) -> list[str]:
    """What just happened, in plain words."""
    windows = [r for r in results if r.sink == "turnover" and r.due > auction.boston.last]
    items = [r for r in results if r.sink == "sold" and r.due > auction.began]
    if not windows or not items:
        raise DataProblem("the demo saw no results", hint="the machine may be very busy; try again")
    silence = auction.london.last - auction.boston.last
    return [
        "",
        "What just happened",
        f"  Boston was silent for {silence:.0f} s. A query over both halls could not know whether it was late or had nothing to say.",
        f"  Millstream asked it for an enabling timestamp whenever a window waited: {len(windows)} windows that end after its last bid",
        f"  came out {median(r.delay for r in windows):.1f} s after their end (median; the slowest {max(r.delay for r in windows):.1f} s). "
        "Had they waited for Boston, none of them would be there yet.",
        f"  {len(items)} items were reported {median(r.delay for r in items):.1f} s after their hammer fell, without any window: the",
        "  hammer is a punctuation, which says that no more bids for this item will come, so its group closes and its state is let go.",
        "",
        f"  results:  {os.path.join(directory, 'out', 'turnover')}  and  {os.path.join(directory, 'out', 'sold')}",
        f"  pipeline: {os.path.join(directory, 'auction.sql')}",
        f"  picture:  {picture}",
    ]

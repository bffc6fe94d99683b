"""Spark's worker daemon with our imports done before it forks, so that every Python worker starts warm."""

from __future__ import annotations

import gc
import os
import resource
from contextlib import suppress
from importlib import import_module

from millstream.runtime.spark.shelf import sweep

WARM = (
    "numpy",
    "numba",
    "pyarrow",
    "pyarrow.compute",
    "pandas",
    "google.protobuf",
    "pyspark.worker",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "millstream.runtime.spark.stage",
    "millstream.runtime.spark.source",
    "millstream.runtime.hosted",
)


def open_many() -> None:
    """Let workers keep as many files open as they may: every large array on the shelf is one, and some systems begin with 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def warm_up() -> None:
    """Import what workers will need; none of it starts a thread that a fork would lose."""
    for name in WARM:
        with suppress(ImportError):  # the worker itself will say what is missing
            import_module(name)
    # A worker collects garbage after every task: 50 ms over the modules above, nothing once they are set aside.
    gc.collect()
    gc.freeze()


class SeldomGarbage:
    """Stands for the module `gc` in PySpark's daemon, whose workers collect garbage after every task.

    Python's own thresholds go on, so that little is left for a full collection.
    """

    def __init__(self, tasks: int = 100) -> None:
        self.tasks, self.left = tasks, tasks

    def collect(self) -> None:
        self.left -= 1
        if self.left == 0:
            gc.collect()
            self.left = self.tasks


if __name__ == "__main__":
    from pyspark import daemon

    daemon.gc = SeldomGarbage()
    warm_up()
    open_many()
    sweep()
    try:
        daemon.manager()
    finally:
        sweep(leaving=os.getpid())

"""Spark's worker daemon with our imports done before it forks, so that every Python worker starts warm."""

from __future__ import annotations

from importlib import import_module

WARM = ("numpy", "pyarrow", "pyarrow.compute", "pandas", "google.protobuf", "pyspark.worker", "millstream.runtime.spark.stage")


def warm_up() -> None:
    """Import what workers will need; none of it starts a thread that a fork would lose."""
    for name in WARM:
        try:
            import_module(name)
        except ImportError:  # the worker itself will say what is missing
            pass


if __name__ == "__main__":
    from pyspark import daemon

    warm_up()
    daemon.manager()

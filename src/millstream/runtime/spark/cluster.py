"""What a cluster needs that one machine does not: a master that answers, executors, and our package on each of them."""

from __future__ import annotations

import os
import re
import socket
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from millstream import errors
from millstream.errors import SetupProblem
from millstream.runtime import scratch

PACKAGE = "millstream_package"
"""The directory, in the working directory of each executor, that our package is unpacked in."""

ANSWER_SECONDS = 10.0
WAIT = "spark.scheduler.maxRegisteredResourcesWaitingTime"
WAIT_DEFAULT = "120s"


def is_local(master: str) -> bool:
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def settings(config: Mapping[str, str], java: str) -> dict[str, str]:
    """The package is imported by the worker daemon itself, before Spark would make files added to a job importable: so by PYTHONPATH."""
    key = "spark.executorEnv.PYTHONPATH"
    paths = [PACKAGE, config[key]] if config.get(key) else [PACKAGE]
    return {key: os.pathsep.join(paths), "spark.executor.extraJavaOptions": config.get("spark.executor.extraJavaOptions", java)}


ATTEMPTS = 3
"""How often a task is tried on one machine (Spark's default is once): a worker that was killed costs a moment, not the run."""


def with_retries(master: str) -> str:
    """`local[2]` as `local[2,3]`; how often a cluster tries is Spark's own setting."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    found = re.fullmatch(r"local\[([^,\]]+)\]", master)
    return master if found is None else f"local[{found.group(1)},{ATTEMPTS}]"


def reach(master: str) -> None:
    """Spark itself would try for a minute, and then say that a context is stopped."""
    if not master.startswith("spark://"):
        return
    why = ""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), ANSWER_SECONDS):
                return
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
    raise SetupProblem(
        f"no Spark master answers at {master}: {why}",
        hint="check the address, and that the master runs",
        passing=True,
    )


def give_home(master: str) -> None:
    """A SPARK_HOME for `local-cluster`, whose workers write their logs below it: links to PySpark's own, which may be read-only."""
    if not master.startswith("local-cluster") or "SPARK_HOME" in os.environ:
        return
    home = scratch.directory("spark-home")
    for entry in Path(_find_spark_home()).iterdir():
        os.symlink(entry, os.path.join(home, entry.name))
    os.environ["SPARK_HOME"] = home


def ship(session: SparkSession) -> None:
    """Send our package to every executor, with what numba has compiled of it. Other libraries must be there."""
    archive = os.path.join(scratch.directory("ship"), "millstream.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(Path(errors.__file__).parent, "millstream", filter=lambda entry: None if entry.name.endswith(".pyc") else entry)
    session.sparkContext.addArchive(f"{archive}#{PACKAGE}")


def wait_for_executors(session: SparkSession, master: str) -> None:
    """Until there is one and no more are coming: how many there are decides the number of buckets."""
    context: Any = session.sparkContext
    seconds = context._jsc.sc().conf().getTimeAsSeconds(WAIT, WAIT_DEFAULT)
    until = time.monotonic() + seconds
    count, since = 0, time.monotonic()
    while not count or time.monotonic() < since + 1.0:
        now = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is among them
        if now != count:
            count, since = now, time.monotonic()
        if not count and time.monotonic() > until:
            session.stop()
            hint = f"has it workers with a free core and the memory that spark.executor.memory asks for? {WAIT} sets how long to wait"
            raise SetupProblem(f"{master} gave no executor within {seconds} s", hint=hint, passing=True)
        time.sleep(0.1)

"""Brings a user-facing error raised in a Python worker back to the user as the same error, without tracebacks."""

from __future__ import annotations

import base64
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from millstream.errors import DataProblem, MillstreamError, PlanProblem, SetupProblem, counted

# Spark turns an exception of a worker into text and nests that text in texts of its own; a marked
# pickle is the one thing that survives every wrapping.
_MARKED = re.compile(r"millstream-error<([A-Za-z0-9+/=]+)>")
_PYTHON_LINE = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*(?:Error|Exception|Problem|Interrupt)): (.+)$", re.MULTILINE)
_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"')
_JAVA_NAME = re.compile(r"^: (?:[a-z]\w*\.)+\w+: ")
_OTHER_STAGES = re.compile(
    r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA.*?in the metadata: \[(.*?)\];.*?in current batch: \[(.*?)\]",
    re.DOTALL,
)
_SOURCE_GONE = re.compile(r"^Caused by: java\.\S+(?:: .*)?\n(?:\tat java\..*\n)+\tat \S+\.PythonStreamingSourceRunner\.", re.MULTILINE)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_WORKER_GONE = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure")
_STATE_GONE = re.compile(
    r"\[(?:CANNOT_LOAD_STATE_STORE|STATE_STORE_|STREAMING_STATEFUL_OPERATOR_MISSING_STATE|STDS_FAILED_TO_READ)"
    r"|\.state\.(?:SchemaHelper|StateSchema|OperatorStateMetadata)|/_stateSchema/|/_metadata/"
)


class WorkerFailure(Exception):
    """A MillstreamError in transit through Spark."""


@contextmanager
def sealed() -> Iterator[None]:
    """Around everything that runs in a worker: a MillstreamError leaves marked, so that `unseal` finds it."""
    try:
        yield
    except MillstreamError as error:
        packed = base64.b64encode(pickle.dumps(error)).decode("ascii")
        raise WorkerFailure(f"millstream-error<{packed}>") from None


def is_sealed(text: str) -> bool:
    """True when a user-facing error is behind Spark's text."""
    return _MARKED.search(text) is not None


def unseal(text: str, python: str = "python3") -> MillstreamError:
    """The error behind Spark's text: the marked one, or else the last line of Python. Workers run `python`."""
    marked = _MARKED.search(text)
    if marked is not None:
        error = pickle.loads(base64.b64decode(marked.group(1)))
        assert isinstance(error, MillstreamError)
        return error
    if missing := _NO_MODULE.search(text):
        hint = f"workers run {python} and this process runs {sys.executable}: set PYSPARK_PYTHON to a Python that has the libraries"
        hint += ", before Spark starts, and on each machine of a cluster (docs/cluster.md)"
        return SetupProblem(f"a Python worker lacks the library `{missing.group(1)}`", hint=hint)
    if missing := _NO_PYTHON.search(text):
        hint = "PYSPARK_PYTHON names the Python that each machine has: docs/cluster.md"
        return SetupProblem(f"an executor can not run {missing.group(1)}", hint=hint)
    if _DISK_FULL.search(text):
        return SetupProblem(
            "a disk that Spark writes to is full", hint="make room, and run again", passing=True
        )
    if _WORKER_GONE.search(text):
        return SetupProblem("Spark has lost a Python worker or an executor", hint="run again", passing=True)
    lines = [(kind, said) for kind, said in _PYTHON_LINE.findall(text) if kind != "PythonException"]
    if lines:
        kind, said = lines[-1]
        return DataProblem(f"the query failed on Spark: {kind}: {said.strip()}")
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("An error occurred while calling")]
    return DataProblem(f"the query failed on Spark: {_JAVA_NAME.sub('', said[0]) if said else 'no reason given'}")


def check_place(session: Any, place: str) -> None:
    """Raise a SetupProblem, with Spark's reason, unless Spark can look into the place of a checkpoint."""
    jvm = session.sparkContext._jvm
    try:
        path = jvm.org.apache.hadoop.fs.Path(place)
        path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).exists(path)
    except (Py4JJavaError, PySparkException) as error:
        said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else None
        why = str(said or error).splitlines()[0]
        hint = "choose a directory, or an address whose file system Spark has (--conf, docs/cluster.md)"
        raise SetupProblem(f"the checkpoint {place} can not be used: {why}", hint=hint) from None


def parts_differ(checkpoint: str, have: Sequence[int], asked: Sequence[int]) -> MillstreamError:
    """A checkpoint and a run with other numbers of stages (and buckets, and partitions)."""
    for noun, number, wanted in zip(("stage", "bucket", "partition"), have, asked, strict=False):
        if number != wanted:
            hint = f"SET execution.{noun}s = {number}, or give a new checkpoint directory"
            return PlanProblem(f"{checkpoint} has {counted(number, noun)}, and this run {wanted}", hint=hint)
    raise AssertionError("nothing differs")


def other_stages(text: str) -> tuple[int, int] | None:
    """Numbers of stages in the checkpoint and in the run, where Spark says that they differ."""
    found = _OTHER_STAGES.search(text)
    return None if found is None else (found.group(1).count("OperatorId"), found.group(2).count("OperatorId"))


def source_is_lost(text: str) -> bool:
    """True when the Python process beside the driver no longer answers, having said nothing."""
    return _SOURCE_GONE.search(text) is not None and not is_sealed(text)


def state_is_lost(text: str) -> bool:
    """True when Spark could not load a bucket's state, or what it notes beside it: a file of the checkpoint is missing or broken."""
    return _STATE_GONE.search(text) is not None

"""A Spark session set up for us: RocksDB state, quiet logs, warm workers, a clear word when Java is missing."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from millstream import errors
from millstream.errors import SetupProblem
from millstream.runtime import scratch
from millstream.runtime.spark import cluster

LEAST_JAVA = 17

# What fails in a task comes back to us as an exception and is told in one line; Spark's own loggers
# would tell it again, each with a screenful of stack.
LOG4J = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex{0}
""" + "".join(
    f"logger.q{number}.name = {name}\nlogger.q{number}.level = off\n"
    for number, name in enumerate(
        [
            "org.apache.spark.executor",
            "org.apache.spark.scheduler",
            "org.apache.spark.api.python",
            "org.apache.spark.util.Utils",
            "org.apache.spark.util.SparkUncaughtExceptionHandler",
            "org.apache.spark.sql.execution.streaming",
            "org.apache.spark.sql.execution.python",
            "org.apache.spark.sql.execution.datasources.v2",
            "org.apache.spark.storage",
            "py4j",
        ]
    )
)

# Spark's default writes its logs through Hadoop's FileContext, which takes twice as long on a local disk
# (writing the offset and commit logs: 107 ms of a micro-batch, against 56 ms).
# Elsewhere it is the one that Spark can rely on.
LOCAL_CHECKPOINT: Mapping[str, str] = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

# The JVM only moves blocks about: its second compiler took a third of the CPU of a short run and gave nothing back.
# Hadoop starts a `chmod` for every file of a checkpoint: VFORK makes that cheap.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Djdk.lang.Process.launchMechanism=VFORK"

STATIC: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "millstream.runtime.spark.daemon",
    "spark.log.structuredLogging.enabled": "false",
    # Blocks are large; with 64 kB a block of some MB is passed on in many small pieces.
    "spark.buffer.size": str(1 << 20),
}

# Blocks of 1 MB cost 10 % more CPU when the shuffle packs them, and in local mode it only goes to the page cache.
LOCAL: Mapping[str, str] = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}

DYNAMIC: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.numRecentProgressUpdates": "32",
}


MOST_OF_A_SOCKET = 100 - len("/.01234567-0123-0123-0123-0123456789ab.sock")
"""Characters of a folder for sockets: some systems allow 104 in the path of one."""


def sockets() -> dict[str, str]:
    """Sockets between Java and its Python processes in a folder of this process.

    Over TCP, Nagle's algorithm meets delayed acknowledgements: twice 40 ms a micro-batch.
    """
    place = scratch.short_directory(MOST_OF_A_SOCKET) if hasattr(socket, "AF_UNIX") else None
    if place is None:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": place,
    }


def get_session(master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, which must be what is asked for, or a new one on `master` (default local[*])."""
    with _one_at_a_time:
        if (running := SparkContext._active_spark_context) is not None:  # whichever thread asks
            _check_given(running, master, config or {})
            return SparkSession.builder.getOrCreate()
        return _new_session(master, config)


_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Started:
    """Values that a session of ours was started with."""

    context: SparkContext
    master: str
    config: Mapping[str, str]


_started: Started | None = None


def given(context: SparkContext) -> Started | None:
    """Values that a running session was started with; None where it is not ours."""
    return _started if _started is not None and _started.context is context else None


def _check_given(context: SparkContext, master: str | None, config: Mapping[str, str]) -> None:
    """Raise a SetupProblem that names each value which a running session would ignore."""
    started = given(context)
    has: dict[str, str] = {
        **dict(context.getConf().getAll()),
        **(started.config if started is not None else {}),
    }
    on = context.master if started is None else started.master
    ignored = []
    if master is not None and cluster.with_retries(master) != cluster.with_retries(on):
        ignored.append(f"master = {master} (it runs on {on})")
    for key, value in config.items():
        if has.get(key) != value:
            ignored.append(f"{key} = {value} ({'it has ' + has[key] if key in has else 'it has none'})")
    if ignored:
        said = f"a Spark session is running, and would ignore {', '.join(ignored)}"
        raise SetupProblem(said, hint="stop it first (`spark.stop()`), or leave these out")


@contextmanager
def own_workers(context: SparkContext) -> Iterator[None]:
    """Make workers run under the Python of this process, where that is on their machine.

    A session that somebody else has started runs the `python3` on the PATH, which may lack our libraries.
    """
    if given(context) is not None or not cluster.is_local(context.master):
        yield
        return
    with _as_ours:
        python, environment = context.pythonExec, dict(context.environment)
        context.pythonExec = sys.executable
        context.environment["PYTHONPATH"] = _import_path(environment.get("PYTHONPATH", ""))
        try:
            yield
        finally:
            context.pythonExec = python
            context.environment.clear()
            context.environment.update(environment)


_as_ours = threading.Lock()


def _new_session(master: str | None, config: Mapping[str, str] | None) -> SparkSession:
    check_java()
    master, config = master or "local[*]", config or {}
    local = cluster.is_local(master)
    cluster.reach(master)
    # The Python of executors may be another one where they are on other machines.
    elsewhere = None if local else config.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = elsewhere or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _share_import_path()
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs what a callback raises, and we raise it again
    cluster.give_home(master)
    conf = SparkConf().setMaster(cluster.with_retries(master)).setAppName("millstream")
    conf.setAll([*STATIC.items(), *DYNAMIC.items(), ("spark.driver.memory", driver_memory())])
    for some in ({**LOCAL, **sockets()}, config) if local else (config, cluster.settings(config, JAVA)):
        conf.setAll(list(some.items()))
    java = conf.get("spark.driver.extraJavaOptions", None) or JAVA
    conf.set("spark.driver.extraJavaOptions", f"{java} -Dlog4j2.configurationFile={_log_settings()}")
    session = _connected(conf, master)
    global _started
    _started = Started(session.sparkContext, master, dict(config))
    if not local:
        cluster.ship(session)
        cluster.wait_for_executors(session, master)
    _spare_checksums(session)
    _hush(session)
    return session


def _connected(conf: SparkConf, master: str) -> SparkSession:
    """A session on the master; one that turns us away, or a JVM that dies meanwhile, is told in one line."""
    try:
        SparkContext(conf=conf, gateway=_gateway(conf))
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        if (end := jvm_ended(2.0)) is not None:
            raise SetupProblem(
                f"Spark's Java process has ended ({end})", hint="run again", passing=True
            ) from None
        said = next(
            (line.strip() for line in str(error).splitlines()[1:] if "Exception" in line),
            str(error).splitlines()[0],
        )
        raise SetupProblem(
            f"Spark could not be started on {master}: {said}", hint="check --master and --conf"
        ) from None


def _hush(session: SparkSession) -> None:
    """A JVM that dies is told in one line by whoever waits for it; PySpark would add screenfuls of its own."""
    server: Any = session.sparkContext
    server._accumulatorServer.handle_error = lambda request, address: None
    logging.getLogger().addFilter(lambda record: not record.pathname.endswith(("java_gateway.py", "clientserver.py")))


def is_stopped(context: SparkContext) -> bool:
    """True when a session was stopped, or is about to be: its queries fail before it is done."""
    java: Any = context._jsc
    try:
        return java is None or bool(java.sc().isStopped())
    except (Py4JError, ConnectionError, EOFError):
        return False  # its process has ended


def jvm_ended(seconds: float = 0.0) -> str | None:
    """How the JVM that we started has ended, or None while it runs; an end may show a moment after the connection is lost."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    code = process.poll()
    return None if code is None else f"signal {-code}" if code < 0 else f"code {code}"


def _spare_checksums(session: SparkSession) -> None:
    """No `.crc` beside each file on a local disk: Spark keeps checksums of its checkpoints itself."""
    context: Any = session.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem
    files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)


def _gateway(conf: SparkConf) -> Any:
    """Start the JVM ourselves, to listen to what it and the Python workers print.

    PySpark's stateful processors print five lines of greetings per stage, and the JVM warns of its
    modules; nothing of that is for the user. Errors are passed on, the rest is kept for `last_words`.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkContext._gateway
    out, into = os.pipe()
    threading.Thread(target=_listen, args=(out,), daemon=True, name="millstream-jvm-stderr").start()
    try:
        return launch_gateway(conf, {"stdout": into, "stderr": into})
    except PySparkException:
        said = next((line for line in last_words if "Error" in line or "Exception" in line), "it gave no reason")
        raise SetupProblem(f"Spark did not start: {said}") from None
    finally:
        os.close(into)


last_words: deque[str] = deque(maxlen=200)
"""What the JVM and the Python workers printed last."""


def _listen(out: int) -> None:
    with os.fdopen(out, errors="replace") as lines:
        for line in lines:
            last_words.append(line.rstrip())
            if line.startswith("ERROR "):
                sys.stderr.write(line)


def check_java() -> None:
    """Raise a SetupProblem unless a Java that Spark can use is at hand."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    way_out = f"install Java {LEAST_JAVA} or later and set JAVA_HOME, or use the local runtime"
    if java is None:
        raise SetupProblem("Spark needs Java, and none was found on the PATH", hint=way_out)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        raise SetupProblem(f"Spark needs Java, and `{java} -version` does not run", hint=way_out) from None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    version = 0 if found is None else int(found.group(2) or 0) if found.group(1) == "1" else int(found.group(1))
    if version < LEAST_JAVA:
        raise SetupProblem(
            f"Spark needs Java {LEAST_JAVA} or later, and `{java}` is Java {version or 'of an unknown version'}", hint=way_out
        )


def driver_memory(share: int = 8) -> str:
    """An eighth of the machine, between 1 and 4 GB: state and blocks are Python's and lie outside of the JVM, which fills what it may."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "2g"
    return f"{min(max(total // share >> 20, 1024), 32768 // share)}m"


def _share_import_path() -> None:
    """Workers must find millstream where this process found it, also when it runs from a source tree."""
    os.environ["PYTHONPATH"] = _import_path(os.environ.get("PYTHONPATH", ""))


def _import_path(known: str) -> str:
    root, paths = str(Path(errors.__file__).parents[1]), known.split(os.pathsep)
    return known if root in paths else os.pathsep.join(path for path in [root, *paths] if path)


def _log_settings() -> str:
    path = Path(scratch.directory("log4j2"), "log4j2.properties")
    path.write_text(LOG4J)
    return str(path)

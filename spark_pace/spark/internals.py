"""All that this package calls of Spark behind its public API. No other module calls any of it.

Each part says why there is no other way. `require_known` looks, at the start of a session, whether what a
job cannot do without is there, and says in one line if it is not. Each part that a job can do without says
what happens then. Nothing here imports PySpark before it is called, for some callers do without Spark.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from spark_pace.errors import SetupError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

GatewayError = Py4JError  # a call to the JVM failed
JavaError = Py4JJavaError  # it failed with an exception of Java

# Values of settings. Each batch writes some fifty small files. For each of them the default manager makes a
# .crc file and forks a process. FILE_MANAGER does not, and is for local checkpoints only: it looks whether a
# file is there, then renames, which is safe if only one process writes (lock.py).
_STREAMING = "org.apache.spark.sql.execution.streaming"
FILE_MANAGER = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
STATE_STORE = f"{_STREAMING}.state.RocksDBStateStoreProvider"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
KAFKA_SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

# The modules that Spark runs as Python processes: `spark_pace.spark.stages.daemon` stands in for the first.
DAEMON = "pyspark.daemon"
WORKER = "pyspark.worker"

_DO = "Use PySpark 4.2 or 4.3."

# A task knows its batch by this property alone: `foreachBatch` tells the driver only. Without it the intake
# refuses to work.
BATCH_ID = "streaming.sql.batchId"


def require_known(spark: SparkSession) -> None:
    """Look whether this Spark has what a job cannot do without.

    Raises:
        SetupError: it has not.
    """
    for name in (FILE_MANAGER, STATE_STORE):
        if not has_class(spark, name):
            must, got = f"must have the class {name}", f"got none in Spark {spark.version}"
            raise SetupError(f"Spark — {must}; {got}. {_DO}")


# --- The start of the JVM


def has_jvm() -> bool:
    """Tell whether this process has a JVM already, which outlives sessions: then no other can be started."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def launch_jvm(settings: Mapping[str, str], errors: int) -> Any:
    """Let PySpark start a JVM with these settings on its command line, and connect to it.

    `SparkSession.builder` would do so too, with all settings, the secret ones included, on the command line,
    which every user of the machine can read. And the JVM would write to this process's standard error from
    its first moment.

    Args:
        settings: for the command line.
        errors: a descriptor, the JVM's standard error. It is closed here.

    Raises:
        PySparkRuntimeError: the JVM has ended.
        SetupError: this PySpark starts no JVM in this way.
    """
    from pyspark import SparkConf

    try:
        from pyspark.java_gateway import launch_gateway
    except ImportError as error:
        raise SetupError(f"PySpark — must have launch_gateway; got: {error}. {_DO}") from error
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        return launch_gateway(conf, {"stderr": errors})  # type: ignore[no-untyped-call]
    finally:
        os.close(errors)


# --- The JVM while Spark runs


def jvm_of(spark: SparkSession) -> Any:
    """The JVM, for classes of Java and of Kafka's client, to which PySpark gives no other way."""
    assert spark._jvm is not None
    return spark._jvm


def has_class(spark: SparkSession, name: str) -> bool:
    """Tell whether a class is on Spark's class path: what needs it would fail later, and with a trace."""
    try:
        jvm_of(spark).java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


def is_ending() -> bool:
    """Tell whether this process's JVM is ending or has ended, as after a signal to all processes of the job.

    A JVM that does not tell counts as ended, for this is asked after a signal and a failure.
    """
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    if jvm is None:
        return True
    try:
        return bool(jvm.org.apache.spark.util.ShutdownHookManager.inShutdown())
    except (Py4JError, OSError, TypeError):
        return True


def end_jvm() -> None:
    """Let this process's JVM end in order, and wait for it. Its sessions are stopped already."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def is_gone(error: BaseException | None) -> bool:
    """Tell whether this error, or one that led to it, says that the JVM does not answer."""
    while error is not None:
        if isinstance(error, Py4JNetworkError):
            return True
        if isinstance(error, ConnectionError) and _raised_in_py4j(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _raised_in_py4j(error: BaseException) -> bool:
    return any("py4j" in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))


def java_trace(error: Exception) -> str:
    """The trace of Java in an error of PySpark, else an empty text: some errors have no other reason."""
    return getattr(error, "_stackTrace", None) or ""


# --- What is said of the JVM's end beside our one line is silenced. Where that fails, more is said.


@contextmanager
def silent_gateway(stays: Callable[[], bool]) -> Iterator[None]:
    """Let Py4J log nothing: it tells of the JVM's end by traces, some of them in the root log.

    Args:
        stays: says at the end whether to stay silent. Python lets go of the JVM's objects later, and each of
            them would send it a message.
    """
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    root.addFilter(_not_of_py4j)
    own.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        if not stays():
            own.setLevel(level)
            root.removeFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def hush_updates(spark: SparkSession) -> None:
    """Let the server for accumulators print nothing if the JVM ends in the middle of a message to it."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, client_address: None


def hush_ends(spark: SparkSession) -> None:
    """Let a thread of the JVM that fails write to Spark's log, which is silent here, not to standard error.

    A signal to all processes of the job ends the JVM while its threads work. What makes a query fail is told
    by the query, and a lack of memory in any thread ends the JVM.
    """
    jvm = jvm_of(spark)
    with suppress(Py4JError, TypeError):
        handler = jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
        jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


# --- Batches


def offsets_in(note: str) -> list[Any]:
    """The offset of each source in Spark's note of a batch: a version, settings, then a line for each source.

    `recentProgress` tells the same, but of the batches of this run alone.

    Raises:
        ValueError: the text is none of Spark's.
    """
    version, _, *offsets = note.splitlines()
    if version != "v1" or not offsets:
        raise ValueError("too few lines")
    return [json.loads(offset) for offset in offsets]


def batch_of(task: TaskContext) -> str | None:
    """The number of the batch that a task works for; None: this Spark does not say."""
    return task.getLocalProperty(BATCH_ID)


def set_limits(query: StreamingQuery, cap: int) -> None:
    """Set the limit of each source that has one. Call it inside the query's `foreachBatch`.

    Spark asks a source for the end of a batch with a limit, which it takes from the query's own table of
    sources and limits. Nothing public changes that table, but it is there to be set between two batches, for
    every source alike. The alternatives were a file that a source of ours reads, which Kafka's does not, and
    another query whenever the limit changes, with processes and a plan of its own. What a batch reads is
    noted by Spark before it is read, so a batch that runs again does not depend on any of this.

    Raises:
        AttributeError, GatewayError, TypeError, ValueError: this Spark does not let us. The last limit stays.
    """
    execution: Any = query._jsq.streamingQuery()
    sources = execution.uniqueSources()
    entries = sources.iterator()
    while entries.hasNext():
        entry = entries.next()
        sources = sources.updated(entry._1(), _limited(entry._2(), cap))
    getattr(execution, "uniqueSources_$eq")(sources)


def _limited(limit: Any, cap: int) -> Any:
    """A limit of the same kind with the number `cap`; `limit` itself if it is none on records or bytes."""
    from pyspark import SparkContext

    spark: Any = SparkContext._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    limits = spark.connector.read.streaming
    kind = limit.getClass().getSimpleName()
    if kind == "ReadMaxRows":
        return limits.ReadLimit.maxRows(cap)
    if kind == "CompositeReadLimit":
        parts = limit.getReadLimits()
        for place, part in enumerate(parts):
            parts[place] = _limited(part, cap)
        return limits.ReadLimit.compositeLimit(parts)
    if kind == "PythonStreamingSourceReadLimit":
        ours = json.loads(limit.json())
        if "max_bytes" in ours:
            text = json.dumps(ours | {"max_bytes": cap})
            return spark.execution.datasources.v2.python.PythonStreamingSourceReadLimit(text)
    return limit


def spark_schema(schema: pa.Schema) -> StructType:
    """A schema of Arrow in Spark's types. The public ways depend on a setting of the user's session."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


# --- Python workers


def fork_workers() -> None:
    """Be the process that Spark's Python workers are forked from.

    Spark has a setting for the module that does this (`spark.python.daemon.module`), but only PySpark's own
    can do it. Here a worker whose connection has gone ends without a word. Else there would be a trace of
    where the write failed, above the one line that a job ends with.
    """
    from pyspark import daemon

    daemon.worker = partial(_quiet, daemon.worker)
    daemon.manager()


def _quiet(work: Callable[..., int], *arguments: Any) -> int:
    try:
        return work(*arguments)
    except (BrokenPipeError, ConnectionResetError):
        return 1

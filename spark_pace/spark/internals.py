"""All that this package calls of Spark behind its public API, and the versions that jobs run on.

No other module calls any of it. Each part says why there is no other way. `require_known` checks, at the
start of a session, what a job cannot do without, and says in one line what is missing. What happens where a
Spark lacks the rest:

- `set_limits`: the job goes on with the last limit, and says so.
- `end_jvm`: `make setup` makes no archive of classes, so starts take longer.
- `spark_schema`: `detect` ends with an ImportError.
- `fork_workers`: PySpark's own daemon forks the workers; they start more slowly.
- `silent_gateway`, `hush_updates`, `hush_ends`, `is_ending`: more is printed when a JVM ends.

Other modules know names of Spark that are not documented, and call nothing: `java/launch.py` has four
settings; `queries.py` finds the cause of a failure in texts of Spark, and shows a text that it does not know
as it is; `Checkpoint` names Spark's files ``offsets/N``, ``commits/N`` and ``metadata``, whose content
`spark_pace/spark/checkpoint/checkpoint.py` reads; `sitecustomize`, which every Python process of Spark runs,
takes `pyspark.zip` off its path, without which they start more slowly, and knows the name of the module of
streaming sources, without which more is printed when a query ends.
"""

from __future__ import annotations

import json
import logging
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext

from spark_pace.errors import UnfitError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


ADVICE = "Use PySpark 4.0 to 4.3."
_PYARROW = (26, 0)  # before 4.2 PySpark's workers cannot read the rows of a group with it


def require_fitting_pyarrow(spark_version: str, pyarrow_version: str) -> None:
    """Raise `UnfitError` if this Spark's workers cannot use this pyarrow."""
    if _numbers(spark_version) < (4, 2) and _numbers(pyarrow_version) >= _PYARROW:
        must, do = f"must be older than {_PYARROW[0]} for Spark {spark_version}", "pip install 'pyarrow<26'"
        raise UnfitError(f"pyarrow — {must}; got {pyarrow_version}. `{do}` mends it.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


GatewayError = Py4JError  # a call to the JVM that failed
JavaError = Py4JJavaError  # a call that failed with a Java exception

# Values of settings. Each batch writes some fifty small files. The default manager makes a .crc file and
# forks a process for each; FILE_MANAGER does not. It checks that a file is absent and then renames, which is
# safe only if one process writes (see `checkpoint/lock.py`), so it is for local checkpoints only.
_STREAMING = "org.apache.spark.sql.execution.streaming"
_IN = (
    ("", "") if _numbers(pyspark.__version__) == (4, 0) else (".checkpointing", ".runtime")
)  # folders that 4.1 made
_CHECKPOINTING, _RUNTIME = (f"{_STREAMING}{folder}" for folder in _IN)
FILE_MANAGER = f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
# For checkpoints in other file systems. The second, of spark-hadoop-cloud, is for S3, where to rename is to
# copy: a file is there once its upload ends.
RENAMING_FILE_MANAGER = f"{_CHECKPOINTING}.FileContextBasedCheckpointFileManager"
STORE_FILE_MANAGER = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
STATE_STORE = f"{_STREAMING}.state.RocksDBStateStoreProvider"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
KAFKA_SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

# The modules that Spark runs as Python processes; `spark_pace.spark.stages.daemon` replaces the first.
DAEMON, WORKER = "pyspark.daemon", "pyspark.worker"

# The versions in which Spark writes its notes of a batch's offsets and of its end. We read the first.
_NOTE_VERSIONS = (
    "spark.sql.streaming.offsetLog.formatVersion",
    "spark.sql.streaming.stateStore.checkpointFormatVersion",
)

# A task knows its batch only by this property, because `foreachBatch` tells only the driver.
BATCH_ID = "streaming.sql.batchId"


def require_known(spark: SparkSession) -> None:
    """Check that this Spark has what a job cannot do without; raise `SetupError` if it lacks something."""
    if getattr(spark, "_jvm", None) is None:
        raise _lacking(spark, "must let this process use its JVM")
    for module in (DAEMON, WORKER):
        if find_spec(module) is None:
            raise _lacking(spark, f"must have the module {module}")
    for name in (FILE_MANAGER, STATE_STORE):
        if not has_class(spark, name):
            raise _lacking(spark, f"must have the class {name}")
    require_fitting_pyarrow(spark.version, version("pyarrow"))
    batch_id = None
    with suppress(Py4JError, TypeError):
        batch_id = getattr(jvm_of(spark), f"{_RUNTIME}.MicroBatchExecution").BATCH_ID_KEY()
    if batch_id != BATCH_ID:
        raise _lacking(spark, f"must tell each task its batch by the property {BATCH_ID}")
    for setting in _NOTE_VERSIONS:
        form = spark.conf.get(setting, "1")
        if form != "1":
            raise UnfitError(f"{setting} — must be 1, which jobs can read; got {form}. Leave it out.")


def _lacking(spark: SparkSession, must: str) -> UnfitError:
    return UnfitError(f"Spark — {must}; got none in Spark {spark.version}. {ADVICE}")


def has_jvm() -> bool:
    """True if this process has a JVM. It outlives sessions, and a second one cannot be started."""
    return getattr(SparkContext, "_gateway", None) is not None


def launch_jvm(settings: Mapping[str, str], errors: int) -> Any:
    """Let PySpark start a JVM with these settings on its command line; return its connection to it.

    `SparkSession.builder` would put all settings on the command line, also secrets, and every user of the
    machine can read it. The JVM would also write to this process's standard error from the beginning. Here it
    writes to the file descriptor `errors`, which is closed in this process.

    Raises:
        PySparkRuntimeError: the JVM has ended.
        SetupError: this PySpark starts no JVM in this way.
    """
    try:
        from pyspark.java_gateway import launch_gateway
    except ImportError as error:
        raise UnfitError(f"PySpark — must have launch_gateway; got: {error}. {ADVICE}") from error
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        return launch_gateway(conf, {"stderr": errors})  # type: ignore[no-untyped-call]
    finally:
        os.close(errors)


def jvm_of(spark: SparkSession) -> Any:
    """The JVM, for classes of Java and of Kafka's client, which PySpark does not offer otherwise."""
    assert spark._jvm is not None
    return spark._jvm


def is_stopped(spark: SparkSession) -> bool:
    """True if the context of a session was stopped, which is named as the session that runs still."""
    return spark.sparkContext._jsc is None


def make_active(spark: SparkSession) -> None:
    """Make a session the active one; `createDataFrame` makes its own so, whose sources others cannot have."""
    jvm_of(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def has_class(spark: SparkSession, name: str) -> bool:
    """True if a class is on Spark's class path; without this check its use would fail later, with a trace."""
    try:
        jvm_of(spark).java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


def is_ending() -> bool:
    """True if the JVM is ending or has ended, or does not answer, as after a signal to all processes."""
    jvm: Any = SparkContext._jvm
    if jvm is None:
        return True
    try:
        return bool(jvm.org.apache.spark.util.ShutdownHookManager.inShutdown())
    except (Py4JError, OSError, TypeError):
        return True


def end_jvm() -> None:
    """Shut down this process's JVM, and wait for its end. Its sessions must be stopped."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def is_gone(error: BaseException | None) -> bool:
    """True if this error, or one that caused it, says that the JVM does not answer."""
    while error is not None:
        if isinstance(error, Py4JNetworkError) or str(error) == "org does not exist in the JVM":
            return True
        if isinstance(error, ConnectionError) and _raised_in_py4j(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _raised_in_py4j(error: BaseException) -> bool:
    return any("py4j" in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))


def java_trace(error: Exception) -> str:
    """The Java trace of a PySpark error, or an empty text; some errors give their reason only there."""
    return getattr(error, "_stackTrace", None) or ""


@contextmanager
def silent_gateway(stays: Callable[[], bool]) -> Iterator[None]:
    """Keep Py4J from logging inside the block; it logs the JVM's end as traces, some in the root log.

    After the block it stays silent if `stays` returns True: Python frees objects of the JVM later, and each
    would send a message to it.
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
    """Keep PySpark's accumulator server from printing an error if the JVM ends while it sends to it."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, client_address: None


def hush_ends(spark: SparkSession) -> None:
    """Send errors of the JVM's threads to Spark's log, which is silent here, not to standard error.

    A signal to all processes of the job ends the JVM while its threads work, and each would print an error.
    The failure of a query is reported by the query, and a lack of memory in any thread ends the JVM.
    """
    jvm = jvm_of(spark)
    with suppress(Py4JError, TypeError):
        handler = jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
        jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)


def planned_offsets(spark: SparkSession, batch_id: int) -> bytes | None:
    """Spark's note of what a batch reads, from the memory of the query that runs; None if none has it.

    Others may have written over the file meanwhile, where the checkpoint is in a store.

    Args:
        spark: the session that started the query; that of a batch's rows is a copy, which knows no query.
        batch_id: the batch.
    """
    for query in spark.streams.active:
        log = query._jsq.streamingQuery().offsetLog()
        offsets = log.get(batch_id)
        if offsets.isDefined():
            text = jvm_of(spark).java.io.ByteArrayOutputStream()
            log.serialize(offsets.get(), text)
            return bytes(text.toByteArray())
    return None


def set_limits(query: StreamingQuery, cap: int) -> None:
    """Set the limit of each source that has one. Call it inside the query's `foreachBatch`.

    Spark asks a source for the end of a batch with a limit from the query's own table, which no public
    function changes (`docs/decisions/admission.md`). Spark notes what a batch reads before it reads it, so a
    batch that runs again does not depend on the limit.

    Raises:
        AttributeError, GatewayError, TypeError, ValueError: this Spark does not allow it. The last limit
            stays.
    """
    execution: Any = query._jsq.streamingQuery()
    sources = execution.uniqueSources()
    entries = sources.iterator()
    while entries.hasNext():
        entry = entries.next()
        sources = sources.updated(entry._1(), _limited(entry._2(), cap))
    getattr(execution, "uniqueSources_$eq")(sources)


def _limited(limit: Any, cap: int) -> Any:
    """A limit of the same kind with the number `cap`; `limit` itself if it is not about records or bytes."""
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
    """Convert an Arrow schema to Spark's types; public functions for it depend on a session setting."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def fork_workers() -> bool:
    """Run PySpark's daemon, which forks the Python workers, until Spark ends it; False if it has none.

    Only PySpark's own module can do that. Here a worker that has lost its connection ends silently; otherwise
    it would print a trace above the one line with which a job ends.
    """
    from pyspark import daemon

    if not hasattr(daemon, "manager") or not hasattr(daemon, "worker"):
        return False
    daemon.worker = partial(_quiet, daemon.worker)
    daemon.manager()
    return True


def _quiet(work: Callable[..., int], *arguments: Any) -> int:
    try:
        return work(*arguments)
    except (BrokenPipeError, ConnectionResetError):
        return 1

"""The Spark session of a job: every setting with its reason."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_pace.errors import SetupError
from spark_pace.preflight import require_java
from spark_pace.spark.java.archive import archive_options
from spark_pace.spark.java.home import make_home, session_folder
from spark_pace.spark.java.jars import JAR_DIRECTORY, delta_coordinate, kafka_coordinate, local_jars
from spark_pace.spark.java.jvm import hush_updates
from spark_pace.spark.stages.workers.start import forking_python

_CLASS_PATH = "spark.driver.extraClassPath"
JARS_VARIABLE = "SPARK_PACE_JARS"  # a directory of jars, for machines that may not download
_STREAMING = "org.apache.spark.sql.execution.streaming"

SETTINGS = {
    # Delta tables, with SQL
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # a table's log is small: one partition instead of 50 tasks for each commit (2.5 s -> 0.9 s)
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.parquet.compression.codec": "zstd",
    # event times are UTC; a session in another zone would show and parse others
    "spark.sql.session.timeZone": "UTC",
    # state on local disk, only its changes written to the checkpoint
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # a slot's state is one value, written whole: the default would keep 100 copies
    "spark.sql.streaming.minBatchesToRetain": "10",
    # frames are megabytes: a batch for Python ends by bytes, not by rows
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    # each stage has a partition per slot or lane already
    "spark.sql.adaptive.enabled": "false",
    # a stop in the middle of a batch unwinds a deep stack
    "spark.driver.extraJavaOptions": "-Xss16m",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # workers begin with what they need loaded
    "spark.python.daemon.module": "spark_pace.spark.stages.daemon",
    # pandas warns about its own future from every worker
    "spark.executorEnv.PYTHONWARNINGS": "ignore",
}

# Each batch writes some fifty small files. For each of them the default manager makes a .crc file and forks a
# process. This one is for local checkpoints only: it looks, then renames, which is safe if only one process
# writes (lock.py).
_FILE_MANAGER = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
LOCAL_CHECKPOINT = {"spark.sql.streaming.checkpointFileManagerClass": _FILE_MANAGER}


@contextmanager
def job_session(
    name: str, settings: Mapping[str, str], written: Mapping[str, str], *, quick: bool = False
) -> Iterator[SparkSession]:
    """A session with settings that are this job's alone. Spark is stopped at the end if it was started here.

    Args:
        name: the name that Spark shows.
        settings: the settings of the job, with values of the environment put in.
        written: the same settings as the job file has them. A setting whose value differs is a secret.
        quick: see `build_session`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    running = SparkSession.getActiveSession() is not None
    secret = {key: value for key, value in settings.items() if value != written[key]}
    plain = {key: value for key, value in settings.items() if key not in secret}
    spark = build_session(name, plain, secret=secret, quick=quick)
    hush_updates(spark)
    try:
        own = spark.newSession()
        for key, value in settings.items():
            if own.conf.isModifiable(key):
                own.conf.set(key, value)
        yield own
    finally:
        if not running:
            spark.stop()


def build_session(
    name: str,
    settings: Mapping[str, str] | None = None,
    *,
    jars: Path | None = None,
    secret: Mapping[str, str] | None = None,
    quick: bool = False,
) -> SparkSession:
    """The session, started if there is none.

    Under `spark-submit`, that command sets the master and the jars. Otherwise the master is ``local[*]``, and
    the jars come from `jars`, else from the directory that `SPARK_PACE_JARS` names, else from the directory
    of the checkout. If none is named and that of the checkout is empty, Spark downloads them.

    Args:
        name: the name that Spark shows.
        settings: the settings of the user; they win over `SETTINGS`.
        jars: a directory of jars.
        secret: more settings, kept off the JVM's command line, which every user of the machine can read.
        quick: see `_own_jvm`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    builder = SparkSession.builder.appName(name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        builder = builder.master("local[*]")
        settings = _started_here(settings or {}, secret or {}, jars, quick)
    for key, value in {**SETTINGS, **LOCAL_CHECKPOINT, **(settings or {})}.items():
        builder = builder.config(key, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _started(builder, secret or {})
    _require_delta(spark, submitted)
    return spark


def _started_here(
    settings: Mapping[str, str], secret: Mapping[str, str], jars: Path | None, quick: bool
) -> dict[str, str]:
    """The settings of a Spark that this process starts, for which the environment is set up."""
    require_java()
    found = _found_jars(jars)
    make_home(archive_options(Path(found[0]).parent) if found else ())
    # workers import what this process can, operators beside the job included
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    local = settings.get("spark.master", "local").startswith("local")
    own = _own_jvm(quick) if local else {}
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", forking_python(session_folder()))
    return {**_jar_settings(found, {**settings, **secret}), **own, **settings}


def _started(builder: SparkSession.Builder, secret: Mapping[str, str]) -> SparkSession:
    # queries need it; it is loaded while the JVM starts, which takes seconds
    threading.Thread(target=import_module, args=("pandas",), daemon=True).start()
    try:
        if secret:
            SparkContext._ensure_initialized(
                conf=SparkConf(loadDefaults=False).setAll(list(builder._options.items()))
            )
        for key, value in secret.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except (PySparkException, RuntimeError) as error:
        do = "Check the settings under `spark:` and the jars."
        raise SetupError(f"Spark — must start; got: {_last_line(error)}. {do}") from error


def _own_jvm(quick: bool) -> dict[str, str]:
    """Let Spark and its JVM keep their temporary files in the session's folder.

    Args:
        quick: compile the JVM's code quickly, not thoroughly. That halves the processor time of a start and
            of small batches, where the JVM has no loop over events.
    """
    folder = session_folder() / "tmp"
    folder.mkdir(exist_ok=True)
    options = f'{SETTINGS["spark.driver.extraJavaOptions"]} "-Djava.io.tmpdir={folder}"'
    options += " -XX:TieredStopAtLevel=1" if quick else ""
    return {"spark.local.dir": str(folder), "spark.driver.extraJavaOptions": options}


def _found_jars(jars: Path | None) -> list[str]:
    named = jars or os.environ.get(JARS_VARIABLE)
    directory = Path(named or JAR_DIRECTORY).resolve()
    found = local_jars(directory)
    if named and not found:
        do = "Run `make setup` and name its jars/, or unset it."
        raise SetupError(f"{JARS_VARIABLE} — must name a folder of jars; got none in {directory}. {do}")
    return found


def _jar_settings(found: list[str], settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that give Spark the jars. Other JVMs get copies of them.

    A JVM that runs all tasks has them on its class path, where its archive of classes may hold theirs.

    Args:
        found: the jars; none: Spark downloads them.
        settings: the settings of the user.
    """
    alone = re.fullmatch(r"local(\[.*\])?", settings.get("spark.master", "local"))
    if not found:
        return {"spark.jars.packages": f"{delta_coordinate()},{kafka_coordinate()}"}
    if alone and not {"spark.jars", _CLASS_PATH} & set(settings):
        return {_CLASS_PATH: os.pathsep.join(found)}
    return {"spark.jars": ",".join(found)}


def _require_delta(spark: SparkSession, submitted: bool) -> None:
    try:
        assert spark._jvm is not None
        loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        loader.loadClass("io.delta.sql.DeltaSparkSessionExtension")
    except Exception as error:
        spark.stop()
        do = f"Run `make setup`, or point {JARS_VARIABLE} at them"
        if submitted:
            jars = "--jars 'jars/*.jar', which `make setup` fills"
            do = f"Start with spark-submit {jars}, or with --packages {delta_coordinate()}"
        raise SetupError(
            f"jars — Delta Lake's jars must be on Spark's class path; got none. {do}."
        ) from error


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

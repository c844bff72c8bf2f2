"""The settings of a Spark that is started here, each with its reason. PySpark is not imported for them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from spark_pace.errors import SetupError
from spark_pace.preflight import require_java, require_open_files
from spark_pace.spark.java.archive import archive_options
from spark_pace.spark.java.home import make_home, session_folder
from spark_pace.spark.java.jars import JAR_DIRECTORY, delta_coordinate, kafka_coordinate, local_jars
from spark_pace.spark.stages.workers.start import NAME, forking_python

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OPTIONS_OF_JAVA = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
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


def settings_here(
    settings: Mapping[str, str], secret: Mapping[str, str], jars: Path | None, quick: bool
) -> dict[str, str]:
    """The settings of a Spark that this process starts, for which the environment is set up.

    Args:
        settings: the settings of the user.
        secret: more of them, of which only the names count here.
        jars: a directory of jars.
        quick: see `_own_jvm`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    require_open_files()
    require_java()
    found = _found_jars(jars)
    make_home(archive_options(Path(found[0]).parent) if found else ())
    # workers import what this process can, operators beside the job included
    os.environ["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    local = settings.get("spark.master", "local").startswith("local")
    own = _own_jvm(quick, settings.get("spark.driver.defaultJavaOptions", "")) if local else {}
    python = os.environ.get("PYSPARK_PYTHON", NAME)
    if local and os.path.basename(python) == NAME:  # that of another process may end with it
        os.environ["PYSPARK_PYTHON"] = forking_python(session_folder() / "tmp")
    here = {"spark.master": "local[*]", **_jar_settings(found, {**settings, **secret}), **own}
    return {**SETTINGS, **LOCAL_CHECKPOINT, **here, **settings}


def _own_jvm(quick: bool, others: str = "") -> dict[str, str]:
    """Let Spark and its JVM keep their temporary files in the session's folder.

    Args:
        quick: the JVM has no loop over events. Compile its code quickly, not thoroughly: that halves the
            processor time of a start and of small batches. Collect its garbage by one thread, which takes as
            much time there, and 100 to 300 MB less memory: Java's own choice lets the heap grow.
        others: more options of the JVM. Where these, or variables that Java reads, name a collector, it is
            left at that: a JVM that is told of two does not start.
    """
    folder = session_folder() / "tmp"
    folder.mkdir(exist_ok=True)
    options = f'{SETTINGS["spark.driver.extraJavaOptions"]} "-Djava.io.tmpdir={folder}"'
    if quick:
        options += " -XX:TieredStopAtLevel=1"
        given = [others, *(os.environ.get(name, "") for name in _OPTIONS_OF_JAVA)]
        options += "" if any(map(_COLLECTOR.search, given)) else " -XX:+UseSerialGC"
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

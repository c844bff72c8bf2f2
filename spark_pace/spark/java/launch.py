"""Starts Spark's JVM through PySpark, in a folder of its own, and tells of one that fails or ends early.

If the start fails, Java's output becomes one line. A process that is killed leaves its folder behind, perhaps
with gigabytes in it. The next start removes it: each process holds a lock on its folder, so a folder without
a lock has no owner.

The settings of such a Spark stand here, each with its reason; those for a store among them. Four of them are
not documented: Delta's `snapshotPartitions`, `maxBytesPerBatch`, `python.daemon.module` and
`checkpointFileManagerClass`. A Spark that does not know one ignores it, and takes longer or more memory.

One names the archive of classes beside the jars, which Spark's JVM maps into memory. A job needs more than
ten thousand classes from some 270 jars. Finding, checking and laying them out takes a quarter of the
processor time of a start. Java ignores an archive that is not sound, or was made by another Java or from
other jars. It crashes on an archive that is cut short, so the file's name contains its size.
`spark_pace.cli.archive` makes it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_pace.errors import UnfitError
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.preflight import require_java, require_open_files
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import orphan_error
from spark_pace.spark.internals import (
    CATALOG,
    FILE_MANAGER,
    RENAMING_FILE_MANAGER,
    S3A_CLASS,
    STATE_STORE,
    STORE_FILE_MANAGER,
    has_class,
    jvm_of,
    launch_jvm,
)
from spark_pace.spark.java.jars import JAR_DIRECTORY, S3A, delta_coordinate, kafka_coordinate, local_jars

if TYPE_CHECKING:
    from spark_pace.spark.checkpoint.lock import Lease


@contextmanager
def held_by_jvm(spark: SparkSession, checkpoint: Checkpoint, lease: Lease | None = None) -> Iterator[None]:
    """Let the JVM hold a lock on the checkpoint: if this process is killed, the JVM may still write a while.

    The kernel releases the lock when the JVM ends. Until then `checkpoint_lock` refuses other processes. In a
    store the lease names the JVM.

    Raises:
        SetupError: another JVM holds the lock.
    """
    jvm = jvm_of(spark)
    pid = jvm.java.lang.ProcessHandle.current().pid()
    if lease is not None:
        lease.jvm = pid
        lease.renew()
        yield
        return
    path = Path(str(checkpoint.jvm_lock_file))
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        if file.getChannel().tryLock() is None:
            raise orphan_error(checkpoint)
        path.write_text(str(pid), encoding="ascii")
        yield
    finally:
        file.close()


_PREFIX = "spark-pace-session-"
_FOLDER = re.compile(re.escape(_PREFIX) + r"\w{8}", re.ASCII)


@cache
def session_folder() -> Path:
    """Make the folder of this process, once; it is removed when the process ends.

    Folders of processes that were killed are removed first.
    """
    temporary = tempfile.gettempdir()
    for entry in os.scandir(temporary):
        if _FOLDER.fullmatch(entry.name):
            with suppress(OSError):  # its process is alive, or it belongs to another user
                _remove_if_free(entry.path)
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=temporary)
    with suppress(OSError):  # a file system without locks: then no process removes folders
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = Path(temporary, os.path.basename(made)[1:])
    os.rename(made, folder)  # only now do others see it, and it is locked
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_free(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


_LAST_WORDS_SECONDS = 2
_PIECE_BYTES = 1 << 16
# lines that Java prints before the reason, and complaints of bash because of Java's missing output
_OF_NOTHING = re.compile(r": line \d+: |^Picked up |^Error occurred during initialization")
# Java prints this at every start, about a module that Spark asks for (for MLlib)
_OF_MODULES = re.compile(rb"WARNING: Using incubator modules: [^\n]*\n")


class HeldBack:
    """The standard error of a process: held back while it starts, then passed on."""

    def __init__(self) -> None:
        """Open the pipe and begin to hold back its content.

        The process writes to `end`, which must be closed in this process once the other has it.
        """
        self._read, self.end = os.pipe()
        self._lock = threading.Lock()
        self._held: bytes | None = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def release(self) -> None:
        """Print what was held back, and print everything at once from now on."""
        with self._lock:
            held, self._held = self._held, None
            _say(_OF_MODULES.sub(b"", held or b""))

    def reason(self) -> str:
        """The reason why the process has ended, as one line."""
        self._reader.join(_LAST_WORDS_SECONDS)  # another process may still hold the pipe open
        held = _OF_MODULES.sub(b"", self._held or b"").decode("utf-8", "replace")
        told = [line.strip() for line in held.splitlines() if line.strip() and not _OF_NOTHING.search(line)]
        return f"Java's end before it was ready: {told[0] if told else 'it was killed, or gave no reason'}"

    def _pass_on(self) -> None:
        with open(self._read, "rb", buffering=0) as pipe:
            while piece := pipe.read(_PIECE_BYTES):
                with self._lock:
                    if self._held is None:
                        _say(piece)
                    else:
                        self._held += piece


def _say(piece: bytes) -> None:
    with suppress(OSError):
        os.write(2, piece)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Make temporary files of this process in `folder`, because PySpark leaves one there if it is killed."""
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def launch(settings: Mapping[str, str]) -> Any:
    """Start the JVM with these settings on its command line, and return PySpark's connection to it.

    Raises:
        RuntimeError: the JVM has ended before it was ready.
    """
    errors = HeldBack()
    try:
        with _temporary_files_in(session_folder()):
            gateway = launch_jvm(settings, errors.end)
    except PySparkRuntimeError as error:
        raise RuntimeError(errors.reason()) from error
    errors.release()
    return gateway


def archives(directory: Path) -> list[Path]:
    """The archives in `directory`, complete or not; there are several if processes have made them at once."""
    return sorted(directory.glob("classes-*.jsa"))


def keep(made: Path, directory: Path) -> Path:
    """Move a new archive into `directory`, on the same file system, so that others see only complete ones."""
    return made.replace(directory / f"classes-{made.stat().st_size}.jsa")


def archive_options(directory: Path) -> list[str]:
    """The Java options to use the archive in `directory`; none if there is no archive."""
    for archive in archives(directory):
        with suppress(OSError):  # it was removed just now
            if archive.name == f"classes-{archive.stat().st_size}.jsa" and os.access(archive, os.R_OK):
                # without a comparison of checksums a spoilt archive would crash the JVM
                checked = ["-XX:+VerifySharedSpaces", "-Xlog:cds*=off"]
                return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *checked]
    return []


_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_OPTIONS_OF_JAVA = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_CLASS_PATH = "spark.driver.extraClassPath"
_DEFAULTS = "spark.driver.defaultJavaOptions"
_OPTIONS = "spark.driver.extraJavaOptions"  # they follow the default options, and override them
_STACK = "-Xss16m"  # a stop in the middle of a batch unwinds a deep stack
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_ALONE = re.compile(r"local(\[.*\])?")  # a master with which the driver runs all tasks itself
_SITE = Path(__file__).parents[1] / "stages" / "site"
_LOGGING = Path(__file__).with_name("log4j2.properties")
JARS_VARIABLE = "SPARK_PACE_JARS"  # a directory of jars, for machines that may not download
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
OF_S3 = "spark.hadoop.fs.s3a.performance.flags"  # every job has it whose checkpoint is in S3

SETTINGS = {
    # Delta tables, with SQL
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": CATALOG,
    # a table's log is small: one partition instead of 50 tasks for each commit (2.5 s -> 0.9 s)
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.parquet.compression.codec": "zstd",
    # event times are UTC; a session in another zone would show and parse others
    "spark.sql.session.timeZone": "UTC",
    # state on local disk, only its changes written to the checkpoint
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    MANAGER: FILE_MANAGER,
    # a slot's state is one value, written whole: the default would keep 100 copies
    "spark.sql.streaming.minBatchesToRetain": "10",
    # frames have megabytes: the size of an Arrow batch for Python is bounded by bytes, not by rows
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    # each stage has a partition per slot or lane already
    "spark.sql.adaptive.enabled": "false",
    # with a local master all tasks share the driver's heap: twice Spark's default (`make soak` needs only 1g)
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # workers are forked from a process that has loaded what they need
    "spark.python.daemon.module": "spark_pace.spark.stages.daemon",
    # every worker would print pandas' warnings about its future
    "spark.executorEnv.PYTHONWARNINGS": "ignore",
}


def settings_here(settings: Mapping[str, str], secret: Mapping[str, str], quick: bool) -> dict[str, str]:
    """What a Spark that this process starts needs beside `SETTINGS`; also sets PYTHONPATH for its workers.

    Args:
        settings: the user's settings.
        secret: more settings of the user, of which only the names are used here.
        quick: see `_quick`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    require_open_files()
    require_java()
    found, every = _found_jars(), {**settings, **secret}
    of_s3 = local_jars(jar_directory() / S3A) if OF_S3 in every else []
    os.environ["PYTHONPATH"] = os.pathsep.join(_path_of_workers())
    options = [_STACK, *_quiet(), *(archive_options(jar_directory()) if found else ())]
    here = {"spark.master": "local[*]", **_jar_settings(found, of_s3, every), **_reached_from_here(every)}
    if settings.get("spark.master", "local").startswith("local"):
        folder = session_folder() / "tmp"
        folder.mkdir(exist_ok=True)
        here["spark.local.dir"] = str(folder)
        options += [f"-Djava.io.tmpdir={folder}", *(_quick(settings) if quick else ())]
    own = " ".join(f'"{option}"' for option in options)
    return {**here, **settings, _DEFAULTS: f"{own} {settings.get(_DEFAULTS, '')}".strip()}


def _reached_from_here(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that keep other machines from what Spark listens to, where it needs none of them.

    Spark takes the machine's address otherwise. Nothing is set where the user has named an address.
    """
    named = {*_LOOPBACK} & {*settings} or "SPARK_LOCAL_IP" in os.environ or _configured()
    alone = _ALONE.fullmatch(settings.get("spark.master", "local"))
    return _LOOPBACK if alone and not named else {}


def _path_of_workers() -> list[str]:
    """The PYTHONPATH of workers: they can import what this process can, for example operators beside the job.

    They take PySpark from the installed package, as this process does (see the `sitecustomize` in `_SITE`),
    unless another Spark is started.
    """
    path = [entry or os.getcwd() for entry in sys.path]
    return path if "SPARK_HOME" in os.environ else [str(_SITE), *path]


def _quiet() -> list[str]:
    """The Java option to log only errors; none if the user has configured Spark."""
    if not _LOGGING.is_file() or _configured():
        return []
    return [f"-Dlog4j2.configurationFile={_LOGGING}"]


def _configured() -> bool:
    """True if the user may have configuration files for Spark."""
    return bool({"SPARK_CONF_DIR", "SPARK_HOME"} & set(os.environ))


def _quick(settings: Mapping[str, str]) -> list[str]:
    """The Java options for a JVM that runs no loop over events.

    It compiles its code quickly, not thoroughly, which halves the processor time of a start and of small
    batches. One thread collects garbage, which is as fast here and takes 100 to 300 MB less memory, because
    Java's default lets the heap grow. The user's own options replace both. If the user's default options, or
    variables that Java reads, name a collector, none is added: a JVM with two does not start. Configuration
    files of Spark may name one too, so with such files both options are left out.
    """
    if _OPTIONS in settings or _configured():
        return []
    given = [settings.get(_DEFAULTS, ""), *(os.environ.get(name, "") for name in _OPTIONS_OF_JAVA)]
    collector = [] if any(map(_COLLECTOR.search, given)) else ["-XX:+UseSerialGC"]
    return ["-XX:TieredStopAtLevel=1", *collector]


def jar_directory() -> Path:
    """The folder from which a Spark that is started here takes its jars."""
    return Path(os.environ.get(JARS_VARIABLE) or JAR_DIRECTORY).resolve()


def _found_jars() -> list[str]:
    found = local_jars(jar_directory())
    if os.environ.get(JARS_VARIABLE) and not found:
        do = "Run `make setup` and name its jars/, or unset it."
        raise UnfitError(f"{JARS_VARIABLE} — must name a folder of jars; got none in {jar_directory()}. {do}")
    return found


def _jar_settings(found: list[str], of_s3: list[str], settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that give Spark the jars.

    A JVM that runs all tasks itself gets them on its class path, so that the archive of classes can contain
    theirs. Otherwise Spark copies them to its executors.

    Args:
        found: the jars of every job; none: Spark downloads them.
        of_s3: the jars of Spark's client of S3 that this job needs.
        settings: the user's settings.
    """
    jars = [*found, *of_s3]
    alone = _ALONE.fullmatch(settings.get("spark.master", "local"))
    if found and alone and not {"spark.jars", _CLASS_PATH} & set(settings):
        return {_CLASS_PATH: os.pathsep.join(jars)}
    downloaded = {} if found else {"spark.jars.packages": f"{delta_coordinate()},{kafka_coordinate()}"}
    return downloaded | ({"spark.jars": ",".join(jars)} if jars else {})


_S3A = "spark.hadoop.fs.s3a."
_NAMES = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}
# the store itself checks what is written, and each checksum would be a file more
_UNCHECKED = {"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"}


def store_settings(checkpoint: AnyPath) -> dict[str, str]:
    """More settings of Spark for a checkpoint, which nobody may see; none for one on a disk."""
    if not isinstance(checkpoint, StorePath):
        return {}
    if checkpoint.is_on_hdfs:
        return {MANAGER: RENAMING_FILE_MANAGER, **_UNCHECKED}
    if not checkpoint.is_in_s3:
        return {MANAGER: RENAMING_FILE_MANAGER}
    reached = {_NAMES[key]: value for key, value in checkpoint.settings.given if key in _NAMES}
    if "endpoint" in reached:  # a server of one's own: it has no names of buckets as hosts, and any region
        reached = {"path.style.access": "true", "endpoint.region": "us-east-1", **reached}
    # the reader that asks again where an answer breaks off; the newer one that reads ahead does not
    reached["input.stream.type"] = "classic"
    return {
        MANAGER: STORE_FILE_MANAGER,
        # objects are made without looking for folders of their name first
        OF_S3: "create,mkdir",
        **_UNCHECKED,
        **{f"{_S3A}{name}": value for name, value in reached.items()},
    }


def require_store_jars(spark: SparkSession, checkpoint: AnyPath) -> None:
    """Refuse a Spark that cannot write to the store of the checkpoint.

    Raises:
        UnfitError: it lacks jars.
    """
    if not isinstance(checkpoint, StorePath) or not checkpoint.is_in_s3:
        return
    is_ours = spark.conf.get(MANAGER, None) == STORE_FILE_MANAGER  # a job may name another one
    for name in (S3A_CLASS, STORE_FILE_MANAGER) if is_ours else (S3A_CLASS,):
        if not has_class(spark, name):
            must = "must be reached by Spark too, for a checkpoint"
            got = f"no class {name.rpartition('.')[2]}"
            do = "Fetch its jars by `python -m spark_pace.spark.java.jars s3a`"
            submitted = "with spark-submit name them as well: --jars 'jars/*.jar,jars/s3a/*.jar'"
            raise UnfitError(f"{checkpoint} — {must}; got {got}. {do}; {submitted}.")

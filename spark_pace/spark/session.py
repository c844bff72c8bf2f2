"""Starts the Spark session of a job."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_pace.errors import SetupError, UnfitError, one_line
from spark_pace.spark.internals import (
    JavaError,
    has_class,
    has_jvm,
    hush_ends,
    hush_updates,
    is_stopped,
    make_active,
    require_known,
)
from spark_pace.spark.java.jars import delta_coordinate
from spark_pace.spark.java.launch import (
    JARS_VARIABLE,
    LOCAL_CHECKPOINT,
    MANAGER,
    SETTINGS,
    held_by_jvm,
    launch,
    require_store_jars,
    settings_here,
    store_settings,
    survived_in_words,
)

if TYPE_CHECKING:  # a session alone needs none of them
    from spark_pace.job_file import JobSpec
    from spark_pace.spark.checkpoint.lock import Lease
    from spark_pace.spark.sources.input import Input

_SENT = "spark.submit.pyFiles"
_PATH = "PYTHONPATH"
_DELTA = SETTINGS["spark.sql.extensions"]


@contextmanager
def held_session(
    spec: JobSpec,
    settings: dict[str, str],
    job_input: Input,
    lease: Lease | None,
    stopped: Callable[[], bool],
) -> Iterator[SparkSession]:
    """A session of a job, whose JVM holds the checkpoint too; its end becomes one of our errors.

    Args:
        spec: the job.
        settings: its settings of Spark, with values from the environment.
        job_input: its input.
        lease: of its checkpoint, if that is in a store.
        stopped: returns True once a signal has told the job to stop.

    Raises:
        SetupError: Java or the jars are missing, or another JVM holds the checkpoint.
        SparkPaceError: the JVM has ended.
    """
    place = job_input.checkpoint.path
    plain, secret = store_settings(place, settings)
    every, written = {**plain, **secret, **settings}, {**plain, **dict.fromkeys(secret, ""), **spec.spark}
    with (
        survived_in_words(stopped),
        job_session(spec.name, every, written, quick=not job_input.reads_in_jvm) as spark,
        held_by_jvm(spark, job_input.checkpoint, lease),
    ):
        require_store_jars(spark, place)
        yield spark


@contextmanager
def job_session(
    name: str, settings: Mapping[str, str], written: Mapping[str, str], *, quick: bool = False
) -> Iterator[SparkSession]:
    """A session whose settings no other job shares. Spark is stopped at the end if it was started here.

    Args:
        name: the name that Spark shows.
        settings: the settings of the job, with values from the environment.
        written: the same settings as written in the job file. One whose value differs is a secret.
        quick: see `build_session`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    running = _runs()
    if running:
        spark = _fit(SparkSession.builder.getOrCreate())  # the first one, whose settings stay as they are
    else:
        secret = {key: value for key, value in settings.items() if value != written[key]}
        plain = {key: value for key, value in settings.items() if key not in secret}
        spark = build_session(name, plain, secret=secret, quick=quick)
    hush_updates(spark)
    try:
        if not running:
            hush_ends(spark)
        own = spark.newSession()  # it starts with the settings of the context alone
        for key, value in {**SETTINGS, **LOCAL_CHECKPOINT, **settings}.items():
            if key == MANAGER or own.conf.isModifiable(key):  # Spark has no entry for it, but reads it
                own.conf.set(key, value)
        yield own
    finally:
        if running:
            make_active(spark)  # or the next job cannot have sources of the same names
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a signal to stop may end the JVM, too
                spark.stop()


def _runs() -> bool:
    """True if this process has a session. `getActiveSession` sees none that another thread has started."""
    try:
        session = SparkSession.active()
    except PySparkException:
        return False
    return not is_stopped(session)


def build_session(
    name: str,
    settings: Mapping[str, str] | None = None,
    *,
    secret: Mapping[str, str] | None = None,
    quick: bool = False,
) -> SparkSession:
    """Return the running session, or start one.

    Under `spark-submit`, that command sets the master and the jars. Otherwise the master is ``local[*]``, and
    the jars come from the directory in `SPARK_PACE_JARS`, or else from the checkout. If there are none, Spark
    downloads them.

    Args:
        name: the name that Spark shows.
        settings: the user's settings, which override `SETTINGS`.
        secret: more settings; they must not be on the JVM's command line, which all users of a machine can
            read.
        quick: see `spark_pace.spark.java.launch`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    own = settings or {} if submitted else settings_here(settings or {}, secret or {}, quick)
    own = {"spark.app.name": name, **SETTINGS, **LOCAL_CHECKPOINT, **own}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _started(own, secret or {}, submitted)
    try:
        return _fit(spark)
    except SetupError:
        spark.stop()
        raise


def _fit(spark: SparkSession) -> SparkSession:
    """The session itself, in which jobs can run.

    Raises:
        SetupError: it is of another version, or lacks jars.
    """
    require_known(spark)
    _require_delta(spark, "PYSPARK_GATEWAY_PORT" in os.environ)
    _let_workers_find(spark)
    return spark


def _started(settings: Mapping[str, str], secret: Mapping[str, str], submitted: bool) -> SparkSession:
    # queries need pandas; it is imported while the JVM starts, which takes seconds
    threading.Thread(target=import_module, args=("pandas",), daemon=True).start()
    every = {**settings, **secret}
    try:
        if not submitted and not has_jvm():
            conf = SparkConf(loadDefaults=False).setAll(list(every.items()))
            SparkContext(gateway=launch(settings), conf=conf)
        return SparkSession.builder.config(map=dict(every)).getOrCreate()
    except JavaError as error:  # Spark refuses a setting
        raise _not_started(
            one_line(str(error.java_exception.getMessage() or error.java_exception.toString()))
        ) from error
    except (PySparkException, RuntimeError) as error:
        raise _not_started(_last_line(error)) from error


def _not_started(got: str) -> SetupError:
    do = "Check the settings under `spark:` and the jars."
    return SetupError(f"Spark — must start; got: {got.rstrip('.')}. {do}")


def path_of_workers(sent: str, given: str | None) -> str:
    """The PYTHONPATH with which the daemon that forks Python workers finds the archives of `--py-files`.

    Spark tells workers about archives only after the daemon has started, and never about wheels. On an
    executor they are in the folder in which the daemon starts; on the driver, which starts one too, they are
    at the paths given. Single modules in that folder are found anyway.

    Args:
        sent: the setting `spark.submit.pyFiles`.
        given: the PYTHONPATH that the user has set for executors, or None.
    """
    named = [re.sub("^(file|local):(//)?", "", path) for path in sent.split(",")]
    archives = [path for path in named if path and not path.endswith(".py")]
    return os.pathsep.join([*map(os.path.basename, archives), *archives, *([given] if given else [])])


def _let_workers_find(spark: SparkSession) -> None:
    """Let Python workers find what was sent; a setting of Spark's would replace the executors' own path."""
    settings = spark.sparkContext.getConf()
    path = path_of_workers(settings.get(_SENT, ""), settings.get(f"spark.executorEnv.{_PATH}"))
    if path:
        spark.sparkContext.environment[_PATH] = path


def _require_delta(spark: SparkSession, submitted: bool) -> None:
    if has_class(spark, _DELTA):
        return
    do = f"Run `make setup`, or point {JARS_VARIABLE} at them"
    if submitted:
        jars = "--jars 'jars/*.jar', which `make setup` fills"
        do = f"Start with spark-submit {jars}, or with --packages {delta_coordinate()}"
    raise UnfitError(f"jars — Delta Lake's jars must be on Spark's class path; got none. {do}.")


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

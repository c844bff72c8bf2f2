"""Starts the Spark session of a job."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
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
    MANAGER,
    SETTINGS,
    held_by_jvm,
    launch,
    require_store_jars,
    settings_here,
    store_settings,
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
    spec: JobSpec, settings: dict[str, str], job_input: Input, lease: Lease | None
) -> Iterator[SparkSession]:
    """A session of a job, whose JVM holds the checkpoint too.

    Args:
        spec: the job.
        settings: its settings of Spark, with values from the environment.
        job_input: its input.
        lease: of its checkpoint, if that is in a store.

    Raises:
        SetupError: Java or the jars are missing, or another JVM holds the checkpoint.
    """
    place = job_input.checkpoint.path
    every = {**store_settings(place), **settings}
    secret = {key: value for key, value in every.items() if value != spec.spark.get(key)}
    plain = {key: value for key, value in every.items() if key not in secret}
    with (
        job_session(spec.name, plain, secret, quick=not job_input.reads_in_jvm) as spark,
        held_by_jvm(spark, job_input.checkpoint, lease),
    ):
        require_store_jars(spark, place)
        yield spark


@contextmanager
def job_session(
    name: str, settings: Mapping[str, str], secret: Mapping[str, str], *, quick: bool = False
) -> Iterator[SparkSession]:
    """A session whose settings no other job shares. Spark is stopped at the end if it was started here.

    Args:
        name: the name that Spark shows.
        settings: the settings of the job, with values from the environment.
        secret: those that nobody may see.
        quick: see `build_session`.

    Raises:
        SetupError: Java or the jars are missing.
    """
    running = _runs()
    if running:
        spark = _fit(SparkSession.builder.getOrCreate())  # the first one, whose settings stay as they are
    else:
        spark = build_session(name, settings, secret=secret, quick=quick)
    hush_updates(spark)
    try:
        if not running:
            hush_ends(spark)
        own = spark.newSession()  # it starts with the settings of the context alone
        for key, value in {**SETTINGS, **settings, **secret}.items():
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
    own = {"spark.app.name": name, **SETTINGS, **own}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = _started(own, secret or {}, submitted)
    try:
        return _fit(spark)
    except SetupError:
        spark.stop()
        raise


def _fit(spark: SparkSession) -> SparkSession:
    """The session itself, in which jobs can run, and whose Python workers find what was sent.

    Raises:
        SetupError: it is of another version, or lacks jars.
    """
    require_known(spark)
    _require_delta(spark)
    settings = spark.sparkContext.getConf()
    path = path_of_workers(settings.get(_SENT, ""), settings.get(f"spark.executorEnv.{_PATH}"))
    if path:  # a setting of Spark's would replace the executors' own path
        spark.sparkContext.environment[_PATH] = path
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
    except (JavaError, PySparkException, RuntimeError) as error:
        of_java = error.java_exception if isinstance(error, JavaError) else None  # Spark refuses a setting
        got = _last_line(error) if of_java is None else str(of_java.getMessage() or of_java.toString())
        do = "Check the settings under `spark:` and the jars."
        raise SetupError(f"Spark — must start; got: {one_line(got).rstrip('.')}. {do}") from error


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


def _require_delta(spark: SparkSession) -> None:
    if not has_class(spark, _DELTA):
        do = f"Run `make setup`, or point {JARS_VARIABLE} at them; spark-submit takes --jars 'jars/*.jar'"
        packages = f"--packages {delta_coordinate()}"
        must = "Delta Lake's jars must be on Spark's class path"
        raise UnfitError(f"jars — {must}; got none. {do}, or {packages}.")


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

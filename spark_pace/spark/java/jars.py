"""Fetches the jars that Spark lacks (Delta Lake, Kafka's connector) once, into a directory of the checkout.

A session uses the jars in `JAR_DIRECTORY` alone, so a job starts without a network too. Ivy, which comes with
PySpark, fetches them from the repositories that it is configured for. On a machine without a network, copy
the directory. A folder below it has the jars of Spark's own client of S3, for checkpoints in a store.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import requires, version
from pathlib import Path

from spark_pace.errors import SetupError, UnfitError
from spark_pace.preflight import java_command, require_java

JAR_DIRECTORY = Path(__file__).resolve().parents[3] / "jars"
S3A = "s3a"  # the folder of jars with which Spark reaches S3, beside those of a job
SCALA = "2.13"

_NEWEST = re.compile(r"pyspark\b.*<=([\d.]+)")  # the newest version that delta-spark requires
# The connector requires its own version of this jar, which some mirrors of Maven Central lack. This one works
# too.
_TOKEN_PROVIDER = (
    f'<override org="org.apache.spark" module="spark-token-provider-kafka-0-10_{SCALA}" rev="4.0.0"/>'
)

# Spark's own client of S3, of the Hadoop that PySpark brings, without the SDK's bundle of 600 MB
_SDK = ("s3", "s3-transfer-manager", "sts", "apache-client")
# by the version of Hadoop: of the SDK (for 3.4.1 the next one that mirrors have whole), of OpenSSL's binding,
# and of what reads ahead
_VERSIONS_OF_S3A = {
    "3.4.1": ("2.25.53", "1.1.3.Final", None),
    "3.4.2": ("2.29.52", "2.1.4.Final", "1.2.1"),
    "3.5.0": ("2.35.4", "2.2.5.Final", "1.3.1"),
}
# writes a note of a checkpoint by one request, without a renaming; of Spark's own version where it
# can be: a later one asks for a later Hadoop, too; some mirrors lack the latest
_CLOUD = f"org.apache.spark:spark-hadoop-cloud_{SCALA}"
_NEWEST_CLOUD = "4.1.1"
_OF_OTHER_CLOUDS = (
    *("bundle", "hadoop-azure", "hadoop-azure-datalake", "hadoop-cloud-storage", "hadoop-common"),
    *("hadoop-client", "hadoop-huaweicloud", "okhttp", "okio", "gcs-connector"),
    *("jetty-util", "jetty-util-ajax"),
)

_IVY_FILE = """<ivy-module version="2.0">
  <info organisation="spark_pace" module="jars"/>
  <configurations defaultconfmapping="default->master,runtime"><conf name="default"/></configurations>
  <dependencies>
    {dependencies}
    {excludes}
    {override}
  </dependencies>
</ivy-module>
"""


def delta_coordinate() -> str:
    """Delta's jar for the installed PySpark and delta-spark, as ``group:artifact:version``.

    If PySpark is newer than all versions that delta-spark names, it is the jar for the newest of these: jobs
    run with it, but Spark may be unable to read Delta tables.
    """
    named = [found[1] for need in requires("delta-spark") or () if (found := _NEWEST.match(need))]
    major, minor = min(tuple(map(int, text.split(".")[:2])) for text in (version("pyspark"), *named))
    return f"io.delta:delta-spark_{major}.{minor}_{SCALA}:{version('delta-spark')}"


def kafka_coordinate() -> str:
    """The jar of Spark's Kafka connector for the installed PySpark, as ``group:artifact:version``."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version('pyspark')}"


def s3a_coordinates() -> list[str]:
    """The jars of Spark's client of S3 for the Hadoop of the installed PySpark, each as a coordinate.

    If that Hadoop is not known here, the jars that it needs are those of the newest one that is.
    """
    hadoop = hadoop_version()
    sdk, openssl, ahead = _VERSIONS_OF_S3A.get(hadoop) or _VERSIONS_OF_S3A[max(_VERSIONS_OF_S3A)]
    found = [f"org.apache.hadoop:hadoop-aws:{hadoop}", f"org.wildfly.openssl:wildfly-openssl:{openssl}"]
    found += [f"software.amazon.awssdk:{name}:{sdk}" for name in _SDK]
    if ahead is not None:
        found.append(f"software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:{ahead}")
    spark = min(version("pyspark"), _NEWEST_CLOUD, key=lambda text: tuple(map(int, text.split("."))))
    return [*found, f"{_CLOUD}:{spark}"]


def hadoop_version() -> str:
    """The version of the Hadoop that PySpark brings."""
    return next(pyspark_jars().glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]


def local_jars(directory: Path = JAR_DIRECTORY) -> list[str]:
    """The paths of the jars in `directory`, sorted."""
    return sorted(str(jar) for jar in directory.glob("*.jar"))


def fetch(directory: Path) -> list[str]:
    """Fetch the jars of a job into `directory`, without those that PySpark has; return their paths.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    return resolved((delta_coordinate(), kafka_coordinate()), directory, excluded=of_pyspark())


def fetch_s3a(directory: Path = JAR_DIRECTORY) -> list[str]:
    """Fetch the jars with which Spark reaches S3 into a folder of `directory`; return their paths.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    return resolved(s3a_coordinates(), directory / S3A, ("jar", "bundle"), (*of_pyspark(), *_OF_OTHER_CLOUDS))


def resolved(
    coordinates: Sequence[str], directory: Path, types: Iterable[str] = ("jar",), excluded: Iterable[str] = ()
) -> list[str]:
    """Fetch jars, and those that they need, into a directory; return the paths of all that are there.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    require_java()
    with tempfile.TemporaryDirectory(prefix="spark-pace-ivy-") as scratch:
        ivy_file = Path(scratch, "ivy.xml")
        ivy_file.write_text(_ivy_text(coordinates, excluded), encoding="utf-8")
        answer = subprocess.run(
            _ivy_command(ivy_file, directory, types), capture_output=True, text=True, check=False
        )
    if answer.returncode:
        got = _first_failure(answer.stdout + answer.stderr)
        do = f"Check the network and Java's proxy settings, or copy the jars into {directory} by hand."
        raise SetupError(f"jars — Ivy must resolve {' and '.join(coordinates)}; got: {got}. {do}")
    return local_jars(directory)


def of_pyspark() -> list[str]:
    """The modules of Java that PySpark has."""
    return sorted({re.sub(r"-\d.*", "", jar.stem) for jar in pyspark_jars().glob("*.jar")})


def pyspark_jars() -> Path:
    """The folder of PySpark's jars.

    Raises:
        UnfitError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")  # finds it without importing it
    if spec is None or spec.origin is None:
        do = "Run `make setup`, or `pip install spark-pace`."
        raise UnfitError(f"pyspark — must be installed; got no such module. {do}")
    return Path(spec.origin).parent / "jars"


def _ivy_text(coordinates: Sequence[str], excluded: Iterable[str]) -> str:
    split = [coordinate.split(":") for coordinate in coordinates]
    dependencies = "\n    ".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in split
    )
    excludes = "\n    ".join(f'<exclude module="{module}"/>' for module in excluded)
    return _IVY_FILE.format(dependencies=dependencies, excludes=excludes, override=_TOKEN_PROVIDER)


def _ivy_command(ivy_file: Path, directory: Path, types: Iterable[str]) -> list[str]:
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    pattern = f"{directory}/[artifact]-[revision].[ext]"
    files = ["-ivy", str(ivy_file), "-cache", str(ivy_file.parent / "cache")]
    wanted = ["-confs", "default", "-types", *types, "-retrieve", pattern]
    return [str(java_command()), "-jar", str(ivy), *files, *wanted]


def _first_failure(log: str) -> str:
    lines = [line.strip() for line in log.splitlines()]
    marks = ("exception", "not found", "unresolved")
    marked = [line for mark in marks for line in lines if mark in line.lower()]
    return [*marked, *lines[-1:], "no answer"][0]


_WHOSE = {"job": fetch, S3A: fetch_s3a}


def main() -> int:
    """Fetch a job's jars, or those of what the argument names; print a failure as one line."""
    parser = argparse.ArgumentParser(description="Fetch jars that a job needs.")
    parser.add_argument("whose", nargs="?", choices=_WHOSE, default="job")
    parser.add_argument("--into", type=Path, default=JAR_DIRECTORY, help="the directory of a job's jars")
    given = parser.parse_args()
    return told(lambda: _WHOSE[given.whose](given.into))


def told(fetching: Callable[[], list[str]]) -> int:
    """Fetch jars, and say in one line where they are, or why they are not; the exit code."""
    try:
        jars = fetching()
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(jars)} jars in {Path(jars[0]).parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

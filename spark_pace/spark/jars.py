"""The jars that Spark lacks (Delta Lake's), fetched once into a directory of the checkout.

At run time nothing is resolved: a session takes the jars it finds in `JAR_DIRECTORY`, so a job also starts where there is no network.
Ivy, which ships with PySpark, does the fetching, from wherever Ivy is set up to look. On an air-gapped machine, copy the directory.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from spark_pace.errors import SetupError
from spark_pace.preflight import java_command, require_java

JAR_DIRECTORY = Path(__file__).resolve().parents[2] / "jars"
SCALA = "2.13"

_IVY_FILE = """<ivy-module version="2.0">
  <info organisation="spark_pace" module="jars"/>
  <configurations defaultconfmapping="default->master,runtime"><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{org}" name="{name}" rev="{rev}"/>
    {excludes}
  </dependencies>
</ivy-module>
"""


def delta_coordinate() -> str:
    """Delta's jar for the installed PySpark and delta-spark, as ``group:artifact:version``."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def local_jars(directory: Path = JAR_DIRECTORY) -> list[str]:
    """The jars in `directory`, sorted; empty if it was never filled."""
    return sorted(str(jar) for jar in directory.glob("*.jar"))


def fetch(directory: Path) -> list[str]:
    """Fetch Delta's jars and what they need into `directory`, without what PySpark already has.

    Raises:
        SetupError: Java is missing, or Ivy could not reach a repository.
    """
    require_java()
    spark_jars = _pyspark_jars()
    with tempfile.TemporaryDirectory(prefix="spark-pace-ivy-") as scratch:
        ivy_file = Path(scratch, "ivy.xml")
        ivy_file.write_text(_ivy_text(delta_coordinate(), spark_jars), encoding="utf-8")
        answer = subprocess.run(_ivy_command(ivy_file, directory, spark_jars), capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SetupError(
            f"jars — Ivy must resolve {delta_coordinate()}; got: {_first_failure(answer.stdout + answer.stderr)}. "
            f"Check the network and Java's proxy settings, or copy the jars into {directory} by hand."
        )
    return local_jars(directory)


def _pyspark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")  # finds it without importing it
    if spec is None or spec.origin is None:
        raise SetupError("pyspark — must be installed; got no such module. Run `make setup`, or `pip install spark-pace`.")
    return Path(spec.origin).parent / "jars"


def _ivy_text(coordinate: str, spark_jars: Path) -> str:
    org, name, rev = coordinate.split(":")
    present = sorted({re.sub(r"-\d.*", "", jar.stem) for jar in spark_jars.glob("*.jar")})
    excludes = "\n    ".join(f'<exclude module="{module}"/>' for module in present)
    return _IVY_FILE.format(org=org, name=name, rev=rev, excludes=excludes)


def _ivy_command(ivy_file: Path, directory: Path, spark_jars: Path) -> list[str]:
    ivy = next(spark_jars.glob("ivy-*.jar"))
    pattern = f"{directory}/[artifact]-[revision].[ext]"
    cache = str(ivy_file.parent / "cache")
    return [str(java_command()), "-jar", str(ivy), "-ivy", str(ivy_file), "-cache", cache, "-confs", "default", "-types", "jar", "-retrieve", pattern]


def _first_failure(log: str) -> str:
    lines = [line.strip() for line in log.splitlines()]
    for mark in ("exception", "not found", "unresolved"):
        for line in lines:
            if mark in line.lower():
                return line
    return lines[-1] if lines else "no answer"


def main() -> int:
    """Fetch into the directory given (default: the checkout's `jars`); one line of error if that fails."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else JAR_DIRECTORY)
    try:
        jars = fetch(directory)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(jars)} jars in {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

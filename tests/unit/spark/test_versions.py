"""What the version of PySpark decides."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest

from spark_pace.errors import SetupError
from spark_pace.spark.internals import pyspark_version, require_fitting_pyarrow


def test_the_version_is_that_of_the_installed_package() -> None:
    assert ".".join(map(str, pyspark_version())) == version("pyspark").rsplit(".", 1)[0]


def test_an_older_spark_needs_an_older_pyarrow() -> None:
    with pytest.raises(SetupError) as raised:
        require_fitting_pyarrow("4.1.3", "26.0.1")
    must = "pyarrow — must be older than 26 for Spark 4.1.3; got 26.0.1."
    assert str(raised.value) == f"{must} `pip install 'pyarrow<26'` mends it."


@pytest.mark.parametrize(("spark", "pyarrow"), [("4.0.2", "25.0.1"), ("4.2.0", "26.0.1"), ("4.3.0", "27.1")])
def test_others_fit(spark: str, pyarrow: str) -> None:
    require_fitting_pyarrow(spark, pyarrow)


def test_a_pyspark_in_an_archive_has_a_version_too() -> None:
    archive = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    path = f"import sys\nsys.path.insert(0, {str(archive)!r})\n"
    code = "from spark_pace.spark.internals import pyspark_version\nprint(pyspark_version())\n"
    loaded = "print('pyspark' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", path + code + loaded],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.splitlines() == [str(pyspark_version()), "False"]

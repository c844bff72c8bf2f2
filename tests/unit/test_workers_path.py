"""Where Python workers find what `spark-submit --py-files` brings, and what is told if they do not."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from spark_pace.errors import SetupError
from spark_pace.spark.failures import as_our_error
from spark_pace.spark.java.settings import path_of_workers

LACKING = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure
Error from python worker:
  /usr/bin/python3: Error while finding module specification (ModuleNotFoundError: No module named 'numpy')
PYTHONPATH was:
  /opt/spark/python
org.apache.spark.SparkException: EOFException occurred while reading the port number
"""
NO_PYTHON = (
    'Caused by: java.io.IOException: Cannot run program "/opt/python3": error=2, No such file or directory'
)


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({}, None),
        ({"spark.submit.pyFiles": "/tmp/operators.py"}, None),
        (
            {"spark.submit.pyFiles": "/a/one.whl,/a/m.py,file:/b/two.zip"},
            "one.whl:two.zip:/a/one.whl:/b/two.zip",
        ),
        (
            {"spark.submit.pyFiles": "local:///a/one.zip", "spark.executorEnv.PYTHONPATH": "/x"},
            "one.zip:/a/one.zip:/x",
        ),
    ],
)
def test_workers_find_archives_in_their_folder_or_where_they_were_named(
    settings: dict[str, str], path: str | None
) -> None:
    assert path_of_workers(settings).get("spark.executorEnv.PYTHONPATH") == path


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (
            LACKING,
            "/usr/bin/python3: Error while finding module specification "
            "(ModuleNotFoundError: No module named 'numpy')",
        ),
        (NO_PYTHON, 'Cannot run program "/opt/python3": error=2, No such file or directory'),
    ],
)
def test_executors_without_the_package_or_a_python_are_told_in_one_line(text: str, got: str) -> None:
    error = as_our_error(StreamingQueryException(text))
    assert isinstance(error, SetupError)
    assert str(error) == (
        f"the executors' Python — must find spark_pace and what it needs on every machine; got: {got}. "
        "Send spark_pace by --py-files, install what it needs there, "
        "or name another Python by PYSPARK_PYTHON."
    )

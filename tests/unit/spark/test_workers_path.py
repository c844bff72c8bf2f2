"""Where Python workers find what `spark-submit --py-files` brings, and what is told if they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from spark_pace.errors import SetupError
from spark_pace.spark.queries import as_our_error
from spark_pace.spark.session import path_of_workers

LACKING = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure
Error from python worker:
  Illegal instruction
PYTHONPATH was:
  /opt/spark/python
org.apache.spark.SparkException: EOFException occurred while reading the port number
"""
NO_PYTHON = (
    'Caused by: java.io.IOException: Cannot run program "/opt/python3": error=2, No such file or directory'
)


@pytest.mark.parametrize(
    ("sent", "given", "path"),
    [
        ("", None, ""),
        ("", "/x", "/x"),
        ("/tmp/operators.py", None, ""),
        ("/a/one.whl,/a/m.py,file:/b/two.zip", None, "one.whl:two.zip:/a/one.whl:/b/two.zip"),
        ("local:///a/one.zip", "/x", "one.zip:/a/one.zip:/x"),
    ],
)
def test_workers_find_archives_in_their_folder_or_where_they_were_named(
    sent: str, given: str | None, path: str
) -> None:
    assert path_of_workers(sent, given) == path


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (LACKING, "Illegal instruction"),
        (
            LACKING.replace("Illegal", "ModuleNotFoundError: No module named 'numpy'"),
            "ModuleNotFoundError: No module named 'numpy'",
        ),
        (NO_PYTHON, 'Cannot run program "/opt/python3": error=2, No such file or directory'),
    ],
)
def test_executors_without_the_package_or_a_python_are_told_in_one_line(text: str, got: str) -> None:
    error = as_our_error(StreamingQueryException(text), Path("checkpoint"))
    assert isinstance(error, SetupError)
    assert str(error) == (
        f"the executors' Python — must find spark_pace and what it needs on every machine; got: {got}. "
        "Send spark_pace by --py-files, install what it needs there, "
        "or name another Python by PYSPARK_PYTHON."
    )

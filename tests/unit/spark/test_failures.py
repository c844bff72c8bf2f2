"""The one line that is told of what Spark raises always has a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import FullStoreError, SetupError, StateError, UnfitError
from spark_pace.io.files.addresses import StorePath, StoreSettings
from spark_pace.spark.queries import as_our_error


class Raised(Exception):
    """As PySpark tells an exception of Java: its text, and its trace beside it."""

    def __init__(self, text: str, trace: str = "") -> None:
        super().__init__(text)
        self._stackTrace: Any = trace


CHECKPOINT = Path("checkpoint")
STREAM = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
SOURCE = (
    "\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.partitions(P.scala:270)"
)
READ = "\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)"


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        (f"{STREAM} SQLSTATE: XXKST", f"x\nCaused by: java.io.EOFException\n{READ}\n{SOURCE}\n"),
        (f"{STREAM}x", f"Caused by: java.io.IOException: Broken pipe\n{READ}\n{SOURCE}\n"),
        (f"{STREAM}x\nCaused by: java.net.SocketException: Connection reset\n{SOURCE}\n", ""),
        ("Python worker exited unexpectedly (crashed). Consider setting x", ""),
    ],
)
def test_the_end_of_a_python_worker_is_told_as_such(text: str, trace: str) -> None:
    assert str(as_our_error(Raised(text, trace), CHECKPOINT)).startswith(
        "Spark's Python workers — must run as long as the job; got the end of one (killed, or out of memory)"
    )


@pytest.mark.parametrize(
    ("text", "trace", "reason"),
    [
        (f"{STREAM} SQLSTATE: XXKST", "x\nCaused by: java.lang.Error\n\tat java.x(y)\n", "java.lang.Error"),
        (
            f"{STREAM}x",
            "Caused by: java.io.IOException: Broken pipe\n\tat org.apache.hadoop.x(y)",
            "Broken pipe",
        ),
        ("An error occurred while calling o1.start.\n: java.a.B: it broke\n\tat x", "", "java.a.B: it broke"),
        ("An error occurred while calling o1.start.\n: java.a.B\n\tat x", "", "java.a.B"),
        ("", "", "no message"),
    ],
)
def test_what_fails_in_spark_has_a_reason(text: str, trace: str, reason: str) -> None:
    assert str(as_our_error(Raised(text, trace), CHECKPOINT)).startswith(
        f"the query — must run; got {reason}. Mend that"
    )


def test_too_many_open_files_are_told() -> None:
    error = as_our_error(
        Raised(f"{STREAM}x", "Caused by: java.io.IOException: Too many open files\n"), CHECKPOINT
    )
    assert isinstance(error, SetupError)
    assert str(error).startswith(
        "open files — must be allowed in the number that the job needs; got: too many"
    )


@pytest.mark.parametrize("name", ["ConfigError", "RuleError"])
def test_a_search_that_a_task_gives_up_is_not_begun_again_by_itself(name: str) -> None:
    told = "the pattern — must be smaller; got more. Bound it."
    error = as_our_error(Raised(f"{STREAM}spark_pace.errors.{name}: {told}"), CHECKPOINT)
    assert isinstance(error, UnfitError) and str(error) == told


IN_A_STORE = StorePath("s3a://flights", "checkpoint", StoreSettings())
STATE = f"{STREAM}[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
NO_LENGTH = """Cannot invoke "java.lang.Long.longValue()" because the return value of \
"software.amazon.awssdk.services.s3.model.HeadObjectResponse.contentLength()" is null"""


@pytest.mark.parametrize(
    ("trace", "got"),
    [
        (
            "Caused by: org.apache.http.ConnectionClosedException: Premature end of Content-Length body",
            "Premature end of Content-Length body",
        ),
        (
            "Caused by: org.apache.hadoop.fs.s3a.AWSClientIOException: open s3a://flights: Unable to connect",
            "open s3a://flights: Unable to connect",
        ),
        (f"Caused by: java.lang.NullPointerException: {NO_LENGTH}", NO_LENGTH),
        (
            "Caused by: java.io.IOException: getFileStatus: x (Service: S3, Status Code: 503, Request ID: 1)",
            "getFileStatus: x (Service: S3, Status Code: 503, Request ID: 1)",
        ),
    ],
)
def test_a_request_of_sparks_that_fails_is_not_told_as_damage(trace: str, got: str) -> None:
    error = as_our_error(Raised(STATE, f"{trace}\n\tat x"), IN_A_STORE)
    assert isinstance(error, SetupError) and not isinstance(error, UnfitError)
    assert str(error) == (
        "s3a://flights/checkpoint — must be a place in a store that answers while the job runs; "
        f"got: {got}. Start the job again: it goes on where it stopped."
    )


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (" (Service: S3, Status Code: 403, Request ID: null):QuotaExceeded", "QuotaExceeded"),
        (
            "Full. (Service: S3, Status Code: 507, Request ID: 1):XMinioStorageFull: x",
            "XMinioStorageFull",
        ),
        ("x (Service: S3, Status Code: 507, Request ID: 1)", "507"),
    ],
)
def test_a_full_store_is_told_as_such(told: str, code: str) -> None:
    trace = f"Caused by: java.nio.file.AccessDeniedException: checkpoint/state: PUT object on x: {told}"
    error = as_our_error(Raised(STATE, f"{trace}\n\tat x"), IN_A_STORE)
    assert isinstance(error, SetupError) and error.may_pass
    assert str(error) == (
        "s3a://flights/checkpoint — must be in a store that has room for what the job writes; got one that "
        f"is full, or over its quota ({code}). Make room there, or raise the quota, and start the job again: "
        "it goes on where it stopped."
    )


def test_a_full_store_that_a_task_tells_of_is_told_as_such() -> None:
    told = "s3a://flights/x — must be in a store that has room; got one that is full. Make room."
    error = as_our_error(Raised(f"{STREAM}spark_pace.errors.FullStoreError: {told}"), IN_A_STORE)
    assert isinstance(error, FullStoreError) and error.may_pass and str(error) == told


def test_a_state_that_has_lost_a_file_is_told_as_damage() -> None:
    lost = "No such file: s3a://flights/1 (Status Code: 404)"
    trace = f"Caused by: java.io.FileNotFoundException: {lost}\n\tat org.apache.hadoop.fs.s3a.S3AFileSystem.x"
    error = as_our_error(Raised(STATE, trace), IN_A_STORE)
    assert isinstance(error, StateError)
    assert str(error).startswith(
        "s3a://flights/checkpoint/state — must be as Spark wrote it; got: No such file"
    )
    assert "Start the job again; if it says the same: Restore the whole checkpoint" in str(error)


def test_what_fails_at_the_address_of_a_checkpoint_names_it() -> None:
    lost = "java.io.FileNotFoundException: No such file or directory: s3a://flights/checkpoint/offsets"
    error = as_our_error(Raised(STREAM, f"Caused by: {lost}\n\tat x"), IN_A_STORE)
    must = "s3a://flights/checkpoint — must be read and written while the job runs"
    assert str(error).startswith(
        f"{must}; got No such file or directory: s3a://flights/checkpoint/offsets. Start the job again"
    )


def test_an_exception_of_java_between_the_lines_of_a_python_trace_is_not_its_cause() -> None:
    text = f"{STREAM}\norg.apache.spark.sql.streaming.StreamingQueryException: An exception was raised"
    cause = "Caused by: java.io.EOFException: Stream ended prematurely"
    error = as_our_error(Raised(text, cause), CHECKPOINT)
    assert str(error).startswith("the query — must run; got Stream ended prematurely. Mend")

"""What an object store answers is told as what a person can mend, or as what may pass by itself."""

from __future__ import annotations

import pytest

from spark_pace.errors import FullStoreError, SetupError, UnfitError
from spark_pace.io.files.contract import store_failure

ASKED = "Generic S3 error: Error performing"
BUSY = "in 60s, after 9 retries - Server returned non-2xx status code: 503 Slow Down"


@pytest.mark.parametrize(
    ("text", "kind", "got"),
    [
        (
            f"{ASKED} GET https://s3.example.com/bucket/latest/x.json {BUSY}",
            SetupError,
            "got: 503 Slow Down.",
        ),
        (
            f"{ASKED} PUT http://169.254.169.254/latest/api/token in 1s - HTTP error: error sending request",
            UnfitError,
            "got no credentials. Set AWS_ACCESS_KEY_ID",
        ),
    ],
)
def test_a_folder_called_latest_is_not_taken_for_the_address_of_credentials(
    text: str, kind: type[SetupError], got: str
) -> None:
    told = store_failure("s3a://bucket/latest", text)
    assert type(told) is kind
    assert got in str(told)


@pytest.mark.parametrize(
    "between", ["\n", " "]
)  # as the library has it, and as delta-rs tells it in one line
def test_of_what_microsoft_s_store_says_the_number_of_the_request_is_left_out(between: str) -> None:
    said = f"There is none.{between}RequestId:1-2{between}Time:2026-11-28T11:05:21.415Z"
    body = f"<Error><Code>ContainerNotFound</Code><Message>{said}</Message></Error>"
    text = f"{ASKED} - Server returned non-2xx status code: 404 Not Found: {body}"
    told = store_failure("abfss://a@b/c", text)
    assert "got: ContainerNotFound: There is none. Correct the address" in str(told)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        ("403 Forbidden", "<Code>QuotaExceeded</Code>", "QuotaExceeded"),
        ("507 Insufficient Storage", "<Code>XMinioStorageFull</Code>", "XMinioStorageFull"),
        ("507 Insufficient Storage", "", "507"),
    ],
)
def test_a_full_store_is_not_told_as_wrong_credentials(status: str, body: str, code: str) -> None:
    text = f"{ASKED} PUT x - Server returned non-2xx status code: {status}: {body}"
    told = store_failure("s3a://b/x", text)
    assert isinstance(told, FullStoreError)
    assert f"; got one that is full, or over its quota ({code}). Make room there, or raise" in str(told)

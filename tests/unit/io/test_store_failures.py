"""What an object store answers is told as what a person can mend, or as what may pass by itself."""

from __future__ import annotations

import pytest

from spark_pace.errors import SetupError, UnfitError
from spark_pace.io.files.store_failures import failure

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
    told = failure("s3a://bucket/latest", text)
    assert type(told) is kind
    assert got in str(told)

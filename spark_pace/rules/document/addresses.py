"""Checks the addresses of stores in a file of rules or a job."""

from __future__ import annotations

from spark_pace.io.files.store_settings import PLACES, names_bucket
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Report, quote


def check_address(path: Scalar, report: Report, schemes: tuple[str, ...] = PLACES) -> None:
    """Report an address that is none of a store, or that tells more than where something is."""
    scheme, is_address, rest = path.text.removeprefix("file://").partition("://")
    if not is_address:
        return
    bucket, _, prefix = rest.partition("/")
    if scheme not in schemes:
        must = f"must be a path, or the address of a store ({', '.join(schemes)})"
        got = f"{scheme}:// with @" if "@" in rest else quote(path.text)  # what is before it may be secret
        report.add(path.place, must, got, "Mount it, or choose another place.")
    elif scheme in PLACES and not names_bucket(f"{scheme}://{rest}"):
        must, do = (
            "must name a bucket and no credentials",
            "Write s3a://BUCKET/FOLDER; credentials are in the environment or under `spark`.",
        )
        if scheme == "hdfs":
            must, do = (
                "must name a name node of HDFS and no user",
                "Write hdfs://HOST:PORT/FOLDER; the user is HADOOP_USER_NAME.",
            )
        got = "one with @" if "@" in bucket else quote(path.text)
        report.add(path.place, must, got, do)
    elif any(part in ("", ".", "..") for part in prefix.rstrip("/").split("/")) and prefix:
        must = "must have a name between each two slashes"
        report.add(path.place, must, quote(path.text), "Correct the address.")

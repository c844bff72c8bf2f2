"""Checks the addresses of stores in a file of rules or a job."""

from __future__ import annotations

from spark_pace.io.files.addresses import PLACES, objection
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Report, quote


def check_address(path: Scalar, report: Report, schemes: tuple[str, ...] = PLACES) -> None:
    """Report an address that is none of a store, or that tells more than where something is."""
    address = path.text.removeprefix("file://")
    _, is_address, rest = address.partition("://")
    if not is_address:
        return
    prefix = rest.partition("/")[2]
    if wrong := objection(address, schemes):
        report.add(path.place, *wrong)
    elif any(part in ("", ".", "..") for part in prefix.rstrip("/").split("/")) and prefix:
        must = "must have a name between each two slashes"
        report.add(path.place, must, quote(path.text), "Correct the address.")

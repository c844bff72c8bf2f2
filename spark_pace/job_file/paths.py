"""The paths of a job file: of its sources, its tables and its checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from spark_pace.errors import UnfitError
from spark_pace.io.files.addresses import PLACES, AnyPath, path_at
from spark_pace.job_file.secrets import Secrets
from spark_pace.rules.document.report import quote

SINKS = (*PLACES, "viewfs")  # which the writer of tables reaches
# delta-rs (1.6) decodes %20 and the like in a table's path, takes \\ for /, and aborts on the others
_MISTAKEN = re.compile(r"%[0-9A-Fa-f]{2}|[\\\[\]|^\x00-\x1f\x7f]")
# in an address it takes # and ? for the end of the path; on HDFS it does not find again what it encodes
_MISTAKEN_AT = re.compile(rf"{_MISTAKEN.pattern}|[#?]")
_MISTAKEN_ON_HDFS = re.compile(r"[^\w/:@!$&'()*+,;=.~-]", re.ASCII)


def resolve(text: str, folder: Path) -> str:
    """The absolute path of a path relative to `folder`; addresses such as ``s3://…`` stay as they are."""
    return text if "://" in text else str((folder / text).resolve())


def local_path(path: str, key: str) -> Path:
    """The absolute path, on this machine, of a path in the job file.

    Args:
        path: the path; ``file://`` may stand before it.
        key: the key of the job file that names it, for the error.

    Raises:
        SetupError: it is an address, such as ``s3://…``.
    """
    local = path.removeprefix("file://")
    if "://" in local:
        do = "Mount it, or choose another place."
        raise UnfitError(f"{key} — must be on a file system that is mounted here; got {path}. {do}")
    return Path(os.path.abspath(local))


def in_store(path: str) -> bool:
    """True if a path is the address of something in an object store or on HDFS, whose files jobs can read."""
    return path.startswith(tuple(f"{scheme}://" for scheme in PLACES))


def mistaken(sink: str) -> tuple[str, str, str] | None:
    """What of a sink's path the writer of tables mistakes: (what must hold, what came, what to do)."""
    scheme, is_address, rest = sink.partition("://")
    which = '"%20" and the like, \\, [, ], |, ^ and control characters'
    forbidden = _MISTAKEN
    if scheme in ("hdfs", "viewfs"):
        forbidden, which = _MISTAKEN_ON_HDFS, "spaces, letters beyond ASCII, and signs such as # ? % [ ]"
    elif is_address:
        forbidden, which = _MISTAKEN_AT, f"#, ?, {which}"
    found = forbidden.search(rest or sink)
    if found is None:
        return None
    must = f"must lead to a folder without {which}, which the writer of tables mistakes"
    return must, f"{quote(found[0])} in {quote(sink)}", "Choose another name."


def checkpoint_at(path: str, spark: Mapping[str, str]) -> AnyPath:
    """Where the checkpoint of a job lies. Spark knows S3 as ``s3a://`` only, so ``s3://`` becomes that.

    Args:
        path: what the job file says, with an absolute path.
        spark: the job's settings of Spark; those of `fs.s3a` reach the store, else the environment's do.

    Raises:
        SetupError: a variable of the environment that they name is missing, or nothing can lie there.
    """
    if not in_store(path):
        return local_path(path, "checkpoint")
    return path_at(re.sub("^s3:", "s3a:", path), Secrets().resolve_all(spark, "spark"))

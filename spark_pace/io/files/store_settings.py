"""What is needed to reach an object store: endpoint, region and credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_pace.errors import one_line

AT_START_S, WHILE_RUNNING_S = 5, 60  # how long requests are tried again where a store does not answer
# S3 and what speaks like it, Google's and Microsoft's
STORES = ("s3", "s3a", "gs", "abfs", "abfss")
HDFS = "hdfs://"
PLACES = (*STORES, "hdfs")  # whose files jobs read and write
_S3 = ("s3", "s3a")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAME_NODE = re.compile(rf"{_BUCKET.pattern}(?::\d+)?")  # or a name service
_CONTAINER = re.compile(rf"{_BUCKET.pattern}@{_BUCKET.pattern}")  # of an account of Microsoft's
_SHOWN_CHARACTERS = 80
OF_SPARK = "spark.hadoop.fs.s3a."
# for each setting its name in `fs.s3a`, and the variables of the environment, the first one that is set
_NAMES = {
    "endpoint": ("endpoint", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")),
    "region": ("endpoint.region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
    "access_key_id": ("access.key", ("AWS_ACCESS_KEY_ID",)),
    "secret_access_key": ("secret.key", ("AWS_SECRET_ACCESS_KEY",)),
    "session_token": ("session.token", ("AWS_SESSION_TOKEN",)),
    "skip_signature": ("", ("AWS_SKIP_SIGNATURE",)),
}


def names_bucket(address: str) -> bool:
    """True if an address names a bucket, a container or a name node, and nothing secret beside it."""
    scheme, _, rest = address.partition("://")
    form = _NAME_NODE if scheme == "hdfs" else _BUCKET if scheme in (*_S3, "gs") else _CONTAINER
    return form.fullmatch(rest.partition("/")[0]) is not None


def objection(address: str, schemes: tuple[str, ...] = PLACES) -> tuple[str, str, str] | None:
    """Why an address leads nowhere: (what must hold, what came, what to do); None if nothing is wrong.

    What came shows nothing that stands before an ``@``, for that may be secret.

    Args:
        address: with ``://`` in it.
        schemes: those that may be before it.
    """
    scheme, _, rest = address.partition("://")
    shown = f'"{one_line(address, _SHOWN_CHARACTERS)}"'
    if scheme not in schemes:
        must = f"must be a path, or the address of a store ({', '.join(schemes)})"
        got = f"{scheme}:// with @" if "@" in rest else shown
        return must, got, "Mount it, or choose another place."
    if scheme not in PLACES or names_bucket(address):
        return None
    got = "one with @" if "@" in rest.partition("/")[0] else shown
    if scheme == "hdfs":
        do = "Write hdfs://HOST:PORT/FOLDER; the user is HADOOP_USER_NAME."
        return "must name a name node of HDFS and no user", got, do
    if scheme not in (*_S3, "gs"):
        must = "must name a container, its account and no credentials"
        form = "CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
    else:
        must, form = "must name a bucket and no credentials", "BUCKET/FOLDER"
    where = "in the environment or under `spark`" if scheme in _S3 else "in the environment"
    return must, got, f"Write {scheme}://{form}; credentials are {where}."


@dataclass(frozen=True)
class StoreSettings:
    """Settings by the names of the library; secrets among them, so its text shows none.

    What is not given here the library takes from the environment of the process that reads: for Google's and
    Microsoft's stores that is all, for S3 the role of a machine.
    """

    given: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, address: str, spark: Mapping[str, str], environment: Mapping[str, str]) -> StoreSettings:
        """The settings for an address, from those of Spark and then from the environment.

        Spark's writers take the same ones, of one bucket (``fs.s3a.bucket.NAME.``) before those of all. Of
        the environment too they are given on, because executors may have another one.
        """
        scheme, _, rest = address.partition("://")
        if scheme not in _S3:
            return cls()
        bucket = rest.partition("/")[0]

        def setting(name: str) -> str:
            own = spark.get(f"{OF_SPARK}bucket.{bucket}.{name}")
            return own or spark.get(f"{OF_SPARK}{name}", "")

        found = {}
        for key, (name, variables) in _NAMES.items():
            named = [setting(name), *(environment.get(variable, "") for variable in variables)]
            found[key] = next(filter(None, named), "")
        if found["endpoint"] and "://" not in found["endpoint"]:
            plain = setting("connection.ssl.enabled").lower() == "false"
            found["endpoint"] = f"http{'' if plain else 's'}://{found['endpoint']}"
        return cls(tuple((key, value) for key, value in found.items() if value))

    @classmethod
    def of_text(cls, text: str) -> StoreSettings:
        """The settings that `as_text` has written."""
        return cls(tuple((key, value) for key, value in json.loads(text)))

    def as_text(self) -> str:
        """All settings as text, secrets too: for the options of a source, which Spark does not show."""
        return json.dumps(self.given)

    def may_be_plain(self, address: str) -> bool:
        """True if a store may be reached without encryption: S3 by an endpoint that says so.

        Those of Google's and Microsoft's stand in the environment, where the library reads them.
        """
        is_s3 = address.partition("://")[0] in _S3
        return not is_s3 or dict(self.given).get("endpoint", "").startswith("http://")

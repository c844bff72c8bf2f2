"""Where files lie: paths of this machine, and addresses in a store or on HDFS with what reaches them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from spark_pace.errors import ConfigError, one_line

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
    form = _NAME_NODE if scheme == "hdfs" else _BUCKET if scheme in (*_S3, "gs") else _CONTAINER
    if scheme not in PLACES or form.fullmatch(rest.partition("/")[0]):
        return None
    got = "one with @" if "@" in rest.partition("/")[0] else shown
    if scheme == "hdfs":
        do = "Write hdfs://HOST:PORT/FOLDER; the user is HADOOP_USER_NAME."
        return "must name a name node of HDFS and no user", got, do
    if scheme not in (*_S3, "gs"):
        must = "must name a container, its account and no credentials"
        written = "CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
    else:
        must, written = "must name a bucket and no credentials", "BUCKET/FOLDER"
    where = "in the environment or under `spark`" if scheme in _S3 else "in the environment"
    return must, got, f"Write {scheme}://{written}; credentials are {where}."


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

    def may_be_plain(self, address: str) -> bool:
        """True if a store may be reached without encryption: S3 by an endpoint that says so.

        Those of Google's and Microsoft's stand in the environment, where the library reads them.
        """
        is_s3 = address.partition("://")[0] in _S3
        return not is_s3 or dict(self.given).get("endpoint", "").startswith("http://")


@dataclass(frozen=True)
class StorePath:
    """An address, to be used where a `Path` names a file or a folder of this machine.

    Its text is the address alone, so it shows no secret.

    Attributes:
        bucket: the address of the bucket or container, such as ``s3a://bucket``, or of a name node of HDFS.
        key: the name in it; its parts stand between ``/``.
        settings: endpoint, region and credentials.
        patience_s: for how many seconds a request is made again where nobody answers.
    """

    bucket: str
    key: str
    settings: StoreSettings
    patience_s: float = WHILE_RUNNING_S

    @classmethod
    def of(cls, address: str, settings: StoreSettings, patience_s: float = WHILE_RUNNING_S) -> StorePath:
        """The path of an address."""
        scheme, _, rest = address.partition("://")
        bucket, _, key = rest.partition("/")
        return cls(f"{scheme}://{bucket}", key.strip("/"), settings, patience_s)

    def __str__(self) -> str:
        """The address."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    def __truediv__(self, name: str) -> StorePath:
        """What lies under a name below this prefix."""
        return replace(self, key=f"{self.key}/{name}" if self.key else name)

    @property
    def is_in_s3(self) -> bool:
        """True for a path in S3, or in what speaks like it."""
        return self.bucket.startswith(("s3://", "s3a://"))

    @property
    def is_on_hdfs(self) -> bool:
        """True for a path of HDFS, whose bucket is a name node."""
        return self.bucket.startswith(HDFS)

    @property
    def is_in_store(self) -> bool:
        """True for an object store."""
        return not self.bucket.startswith((HDFS, "viewfs://"))

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> StorePath:
        """The prefix in which it lies."""
        return replace(self, key=self.key.rpartition("/")[0])

    def absolute(self) -> StorePath:
        """This address: every one is absolute."""
        return self

    def within(self, patience_s: float) -> StorePath:
        """The same, asked for so many seconds."""
        return replace(self, patience_s=patience_s)


AnyPath = Path | StorePath  # a file or folder, on a disk, in a store or on HDFS


def path_at(
    place: str | AnyPath, spark: Mapping[str, str] | None = None, patience_s: float = WHILE_RUNNING_S
) -> AnyPath:
    """The path that a text names; a path stays what it is.

    Args:
        place: ``file://`` may stand before a path; an address has ``://`` in it, and none else.
        spark: settings of Spark by which a store is reached, before the variables of the environment.
        patience_s: as of `StorePath`.
    """
    if isinstance(place, StorePath):
        return place
    address = str(place).removeprefix("file://")
    if "://" not in address:
        return Path(address)
    return StorePath.of(address, StoreSettings.of(address, spark or {}, os.environ), patience_s)


def require_address(path: AnyPath) -> AnyPath:
    """The path, unless it is an address that leads nowhere.

    Raises:
        ConfigError: it is none of a store, or has credentials in it.
    """
    if isinstance(path, StorePath) and (wrong := objection(str(path))):
        raise ConfigError.of("the address", *wrong)
    return path

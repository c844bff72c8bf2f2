"""The address of an object or a prefix in a store, to be used where a `Path` names a file or a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from spark_pace.io.files.store_settings import HDFS, StoreSettings


@dataclass(frozen=True)
class StorePath:
    """An address, with what is needed to reach it. Its text is the address alone, so it shows no secret.

    Attributes:
        bucket: the address of the bucket or container, such as ``s3a://bucket``, or of a name node of HDFS.
        key: the name in it; its parts stand between ``/``.
        settings: endpoint, region and credentials.
    """

    bucket: str
    key: str
    settings: StoreSettings

    @classmethod
    def of(cls, address: str, settings: StoreSettings) -> StorePath:
        """The path of an address. Spark knows S3 as ``s3a://`` only, so ``s3://`` becomes that."""
        scheme, _, rest = address.partition("://")
        bucket, _, key = rest.partition("/")
        return cls(f"{'s3a' if scheme == 's3' else scheme}://{bucket}", key.strip("/"), settings)

    def __str__(self) -> str:
        """The address."""
        return f"{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> StorePath:
        """What lies under a name below this prefix."""
        return replace(self, key=f"{self.key}/{name}" if self.key else name)

    @property
    def is_in_s3(self) -> bool:
        """True for a path in S3, or in what speaks like it."""
        return self.bucket.startswith("s3a://")

    @property
    def is_on_hdfs(self) -> bool:
        """True for a path of HDFS, whose bucket is a name node."""
        return self.bucket.startswith(HDFS)

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


AnyPath = Path | StorePath  # a file or folder, on a disk or in a store


def path_of(text: str, secret: str) -> AnyPath:
    """The path that a text names.

    Args:
        text: of a `Path`, or of a `StorePath`.
        secret: the settings of the store, by `secret_of`; empty for a path on a disk.
    """
    return StorePath.of(text, StoreSettings.of_text(secret)) if secret else Path(text)


def secret_of(path: AnyPath) -> str:
    """What `path_of` needs beside the text of a path; nobody must be shown it. Empty for a path on a disk."""
    return path.settings.as_text() if isinstance(path, StorePath) else ""

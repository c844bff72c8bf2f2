"""Where Delta tables lie, a folder of this machine or an address, and how delta-rs reaches them there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_pace.io.files.hdfs_failures import table_failure
from spark_pace.io.files.store_failures import failure, is_of_a_store, is_of_lost_object, told_by
from spark_pace.io.files.store_settings import AT_START_S, StoreSettings
from spark_pace.io.files.tree import Tree, tree_of

_OF_HADOOP = re.compile(r"(?:hdfs|viewfs)://")


@dataclass(frozen=True)
class TablePlace:
    """The folder or the address of a table, or of tables; its text is that.

    Attributes:
        address: an address has ``://`` in it, and none else.
        settings: by what a store is reached.
        patience_s: how long a request is tried again where a store does not answer.
    """

    address: str
    settings: StoreSettings = field(default_factory=StoreSettings)
    patience_s: int = AT_START_S

    @classmethod
    def of(cls, place: str | Path | TablePlace, spark: Mapping[str, str] | None = None) -> TablePlace:
        """The place of a path or an address.

        Args:
            place: ``file://`` may stand before a path.
            spark: settings of Spark, which come before the variables of the environment.
        """
        if isinstance(place, TablePlace):
            return place
        address = str(place).removeprefix("file://")
        if "://" not in address:
            return cls(address)
        address = address.rstrip("/")
        return cls(address, StoreSettings.of(address, spark or {}, os.environ))

    def __str__(self) -> str:
        """The path or the address."""
        return self.address

    def __truediv__(self, name: str) -> TablePlace:
        """What has this name below the place."""
        return replace(self, address=f"{self.address}/{name}")

    @property
    def is_here(self) -> bool:
        """True for a folder of this machine."""
        return "://" not in self.address

    @property
    def is_in_store(self) -> bool:
        """True for an object store, whose objects are also read without delta-rs."""
        return not self.is_here and not self.is_in_hadoop

    @property
    def is_in_hadoop(self) -> bool:
        """True for HDFS."""
        return _OF_HADOOP.match(self.address) is not None

    @property
    def options(self) -> dict[str, str] | None:
        """What delta-rs is told of the store. Of S3 it writes a commit by a put on condition that none is."""
        if not self.is_in_store:
            return None
        given = dict(self.settings.given)
        if "endpoint" in given:
            given.setdefault("region", "us-east-1")  # else a machine of Amazon's is asked for it
        return given | {
            "allow_http": str(self.settings.may_be_plain(self.address)).lower(),
            "max_retries": "100",
            "retry_timeout": f"{self.patience_s}s",
            "timeout": "60s",
        }

    def files(self) -> Tree:
        """The files of the table that is there. What is at `viewfs` is reached by delta-rs alone."""
        return tree_of(self.address, self.settings, self.patience_s)

    def found(self, version: int | None = None) -> DeltaTable | None:
        """The table that is there, as `table` gives it; None if there is none.

        `DeltaTable.is_deltatable` would keep all threads of Python waiting for a store.
        """
        try:
            return self.table(version)
        except TableNotFoundError:
            return None

    def table(self, version: int | None = None) -> DeltaTable:
        """The table that is there.

        Raises:
            TableNotFoundError: there is none.
            DeltaError: its log is damaged.
            OSError: it cannot be read.
            SetupError: the store cannot be read.
        """
        with self.told():
            return DeltaTable(self.address, version, self.options)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise what a store answers as an error that says what to do. What is wrong with a table stays.

        Raises:
            SetupError: a store does not answer, or refuses a request.
        """
        try:
            yield
        except (OSError, DeltaError, pa.ArrowException) as error:
            text = told_by(error)
            if self.is_here or isinstance(error, TableNotFoundError) or not is_of_a_store(text):
                raise
            if is_of_lost_object(text):  # the table is not whole
                raise
            raise (table_failure if self.is_in_hadoop else failure)(self.address, text) from None

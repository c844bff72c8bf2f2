"""Finds and sets the owner of a sink: the checkpoint that wrote to it first, as long as its tables exist.

The first version of the table `_owner`, the mark, names the owner. Delta lets only one writer make a version,
even if several try at the same moment. So of two checkpoints that begin together, only one reads its own name
there. A job that has only made the tables does not own them: if it ends before its first batch, another job
may take them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from spark_pace.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "_owner"
_COLUMN = "checkpoint"
_MISSING = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")  # in Spark's words
_DO = "Go on with that checkpoint, choose another sink, or remove the tables and the checkpoint together."


def foreign(where: str, got: str) -> StateError:
    """The error for a table or sink that belongs to another checkpoint."""
    return StateError(f"{where} — must be written by this checkpoint alone; got {got}. {_DO}")


@dataclass
class SinkOwner:
    """The ownership of the sink `root`, seen by the checkpoint `app_id`.

    `spark` reads and writes the mark if delta-rs cannot reach the file system; otherwise it is None.
    """

    root: str
    app_id: str
    spark: SparkSession | None
    _is_claimed: bool = False

    def known(self) -> str | None:
        """The id of the checkpoint that owns the sink; None if none does yet.

        Raises:
            StateError: the mark is damaged.
        """
        if self.spark is not None:
            return self._read_elsewhere(self.spark)
        try:
            return self._read_here()
        except (DeltaError, OSError, pa.ArrowException) as error:
            must, got = "must be a Delta table that can be read", " ".join(str(error).split()).rstrip(".")
            do = "Restore it, or remove it if no other checkpoint writes to this sink."
            raise StateError(f"{self._path} — {must}; got: {got}. {do}") from error

    def require_free(self) -> str | None:
        """The id of this checkpoint if it owns the sink; None if none does yet.

        Raises:
            StateError: another checkpoint owns it, or the mark is damaged.
        """
        owner = self.known()
        if owner not in (None, self.app_id):
            raise foreign(self.root, f"the mark of another one, {NAME}")
        return owner

    def claim(self) -> None:
        """Make this checkpoint the owner if there is none yet.

        If Spark reads the mark, only the first call reads it, because that takes half a second. On a mounted
        file system each call does (2 ms), so a job notices if its tables were replaced by others.

        Raises:
            StateError: another checkpoint was first, or the mark that this one wrote is gone.
        """
        if self._is_claimed and self.spark is not None:
            return
        if self.require_free() is None:
            if self._is_claimed:
                must, do = "must stay as long as a job writes to it", "Start the job again."
                raise StateError(f"{self._path} — {must}; got no such table. {do}")
            self._mark()
        self._is_claimed = True

    @property
    def _path(self) -> str:
        return f"{self.root}/{NAME}"

    def _mark(self) -> None:
        mark = pa.table({_COLUMN: [self.app_id]})
        try:
            if self.spark is None:
                write_deltalake(self._path, mark, mode="error")
            else:
                frame = self.spark.createDataFrame(mark).coalesce(1)
                frame.write.format("delta").mode("error").save(self._path)
        except Exception:  # if another checkpoint came first, many kinds are possible; the mark then shows it
            if self.require_free() is None:
                raise
        self.require_free()

    def _read_here(self) -> str | None:
        if not DeltaTable.is_deltatable(self._path):
            return None
        added = pa.table(DeltaTable(self._path, version=0).get_add_actions())
        (name,) = added["path"].to_pylist()
        with open(os.path.join(self._path, unquote(name)), "rb") as file:
            return str(pq.read_table(file)[_COLUMN][0])

    def _read_elsewhere(self, spark: SparkSession) -> str | None:
        from pyspark.errors import AnalysisException

        table = spark.read.format("delta")
        try:
            table.load(self._path)
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise
        first: Any = table.option("versionAsOf", 0).load(self._path).first()
        return str(first[_COLUMN])

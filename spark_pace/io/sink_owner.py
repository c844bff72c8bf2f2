"""Which checkpoint owns a sink: the one that wrote to it first, for as long as its tables are there.

The first version of the table `_owner`, the mark, names the owner. Delta writes a version of a table once,
even if several try to at the same moment. So of two checkpoints that begin together one reads its own name
there, the other does not. A job that has only made the tables does not own them: if it is given up before its
first batch, another may take them.
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
    """The error for what belongs to another checkpoint."""
    return StateError(f"{where} — must be written by this checkpoint alone; got {got}. {_DO}")


@dataclass
class SinkOwner:
    """The owner of the sink `root`, as the checkpoint `app_id` sees it.

    `spark` reads and writes the mark where delta-rs cannot reach the file system; elsewhere it is None.
    """

    root: str
    app_id: str
    spark: SparkSession | None
    _is_claimed: bool = False

    def known(self) -> str | None:
        """The checkpoint that owns the sink; None if none does yet.

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
        """This checkpoint if it owns the sink; None if none does yet.

        Raises:
            StateError: another checkpoint owns it, or the mark is damaged.
        """
        owner = self.known()
        if owner not in (None, self.app_id):
            raise foreign(self.root, f"the mark of another one, {NAME}")
        return owner

    def claim(self) -> None:
        """Make this checkpoint the owner, if there is none yet.

        Where Spark reads the mark, only the first call looks at it, for that takes half a second. On a
        mounted file system each call looks (2 ms), so a job notices that its tables were removed and others
        stand in their place.

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
        except Exception:  # of many kinds if another checkpoint came first: the mark then says so
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

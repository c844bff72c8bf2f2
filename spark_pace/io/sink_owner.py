"""Finds and sets the owner of a sink: the checkpoint that wrote to it first, as long as its tables exist.

The first version of the table `_owner`, the mark, names the owner. Delta lets only one writer make a version,
even if several try at the same moment. So of two checkpoints that begin together, only one reads its own name
there. A job that has only made the tables does not own them: if it ends before its first batch, another job
may take them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from spark_pace.errors import StateError
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.files.table_place import TablePlace
from spark_pace.io.files.tree import Stamp

NAME = "_owner"
_COLUMN = "checkpoint"
_DO = "Go on with that checkpoint, choose another sink, or remove the tables and the checkpoint together."


def foreign(where: str, got: str) -> StateError:
    """The error for a table or sink that belongs to another checkpoint."""
    return StateError(f"{where} — must be written by this checkpoint alone; got {got}. {_DO}")


@dataclass
class SinkOwner:
    """The ownership of the sink `root`, seen by the checkpoint `app_id`."""

    root: TablePlace
    app_id: str
    _is_claimed: bool = False
    _stamp: Stamp | None = None  # of the first version of the mark, in a store

    def known(self) -> str | None:
        """The id of the checkpoint that owns the sink; None if none does yet.

        Raises:
            StateError: the mark is damaged.
        """
        try:
            return self._read()
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
            raise foreign(str(self.root), f"the mark of another one, {NAME}")
        return owner

    def claim(self) -> None:
        """Make this checkpoint the owner if there is none yet.

        Each call looks at the mark, so a job notices if its tables were replaced by others; in a store that
        is one request while the mark stays as it is.

        Raises:
            StateError: another checkpoint was first, or the mark that this one wrote is gone.
        """
        if self._is_claimed and self._stamp is not None and self._stamp == self._stamped():
            return
        if self.require_free() is None:
            if self._is_claimed:
                must, do = "must stay as long as a job writes to it", "Start the job again."
                raise StateError(f"{self._path} — {must}; got no such table. {do}")
            self._mark()
        self._is_claimed, self._stamp = True, self._stamped()

    @property
    def _path(self) -> TablePlace:
        return self.root / NAME

    def _stamped(self) -> Stamp | None:
        return DeltaLog(self._path.files()).stamp(0) if self.root.is_in_store else None

    def _mark(self) -> None:
        mark = pa.table({_COLUMN: [self.app_id]})
        try:
            with self._path.told():
                write_deltalake(self._path.address, mark, mode="error", storage_options=self._path.options)
        except Exception:  # if another checkpoint came first, many kinds are possible; the mark then shows it
            if self.require_free() is None:
                raise
        self.require_free()

    def _read(self) -> str | None:
        first = self._path.found(version=0)
        if first is None:
            return None
        engine = QueryBuilder()
        engine.register("mark", first)
        with self._path.told():
            answer = pa.RecordBatchReader.from_stream(engine.execute(f"SELECT {_COLUMN} FROM mark"))
            return str(answer.read_all()[_COLUMN][0])

"""Copies side tables to the checkpoint before a batch is computed, and reads the copies in tasks.

So a batch that runs again joins the same rows, even if the tables have changed. The driver keeps a copy of
each version in the checkpoint, notes for each batch which copies it uses, and tells the batch's tasks by a
local property of Spark.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_pace.core.plan.rule import EventSchema, SideTable
from spark_pace.errors import SparkPaceError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import damaged, read_json, write_json
from spark_pace.io.side_tables import read_side_table, stamp_of
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.stages.earlier_batches import tell, told

_LOG = logging.getLogger(__name__)
_TOLD = "spark_pace.side_tables"  # a local property: JSON of {side table: the name of its copy}


@dataclass
class _Version:
    """A version of a table: the time of the last check, its stamp, and its copy's name and content.

    The copy of an earlier run need not be as it was, so each run writes its own.
    """

    looked: float
    stamp: tuple[object, ...]
    copy: str
    content: bytes
    is_written: bool = False


@dataclass
class SideTables:
    """On the driver: reads the side tables of a schema, stores copies, and tells tasks which to use.

    `spark` has the settings of Spark by which stores are reached in which tables lie.
    `joined` has the version of each table for the batch of which tasks were told last. Two versions are equal
    if the tables have equal rows in the same order.
    """

    schema: EventSchema
    checkpoint: Checkpoint
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    joined: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, _Version] = field(default_factory=dict)

    def read(self) -> None:
        """Read all tables.

        Raises:
            SparkPaceError: a table cannot be read, or has two rows with one key.
        """
        for side in self.schema.side_tables:
            self._versions[side.name] = self._version(side)

    def tell(self, spark: SparkSession, batch_id: int) -> None:
        """Tell a batch's tasks which copies to join. Call it inside `foreachBatch`, before they start.

        Raises:
            StateError: a copy that an earlier try of the batch has joined is damaged.
        """
        if not self.schema.side_tables:
            return
        noted = self.checkpoint.side_tables_of(batch_id)
        kept = read_json(noted)
        if kept is None:
            kept = self._next()
            write_json(noted, kept)
            self._remove_others(batch_id, kept)
        else:
            self._require_copies(kept)
        tell(spark, _TOLD, kept)
        self.joined = {name: copy.rpartition("-")[2].removesuffix(".arrow") for name, copy in kept.items()}

    def _require_copies(self, kept: Mapping[str, str]) -> None:
        """Refuse copies that are missing or have changed."""
        for name, copy in kept.items():
            path = self.checkpoint.side_tables / copy
            content = files.read(path)
            if content is None or _name_of(name, content) != copy:
                raise damaged(path, "no such file" if content is None else "another content")

    def _next(self) -> dict[str, str]:
        """The names of the copies for a batch that begins now; writes those that are missing."""
        if not self._versions:
            self.read()
        for side in self.schema.side_tables:
            self._refresh(side)
        for version in self._versions.values():
            if not version.is_written:
                files.write(self.checkpoint.side_tables / version.copy, version.content)
                version.is_written = True
        return {name: version.copy for name, version in self._versions.items()}

    def _refresh(self, side: SideTable) -> None:
        """Read a table again if a check is due and it has changed; if that fails, keep the version."""
        known = self._versions[side.name]
        now = time.monotonic()
        if side.refresh_us is None or now - known.looked < side.refresh_us / 1e6:
            return
        known.looked = now
        try:
            if stamp_of(side, self.spark) != known.stamp:
                self._versions[side.name] = self._version(side)
        except SparkPaceError as error:
            _LOG.warning("%s The job goes on with what it has read before.", error)

    def _version(self, side: SideTable) -> _Version:
        stamp = stamp_of(
            side, self.spark
        )  # before reading, so that a change during it is found at the next check
        sink = pa.BufferOutputStream()
        table = read_side_table(side, self.schema, self.spark).combine_chunks()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()
        return _Version(time.monotonic(), stamp, _name_of(side.name, content), content)

    def _remove_others(self, batch_id: int, kept: Mapping[str, str]) -> None:
        """Remove copies that only batches before the last one have used; these are done."""
        last = read_json(self.checkpoint.side_tables_of(batch_id - 1)) or {}
        needed = {*kept.values(), *last.values(), f"{batch_id}.json", f"{batch_id - 1}.json"}
        for name in files.names(self.checkpoint.side_tables):
            if name not in needed:
                files.remove(self.checkpoint.side_tables / name)


def _name_of(name: str, content: bytes) -> str:
    """The name of the copy of a table with this content."""
    return f"{name}-{hashlib.sha256(content).hexdigest()[:32]}.arrow"


def side_tables_of_batch(folder: AnyPath | None, schema: EventSchema) -> dict[str, pa.Table]:
    """In a task: the side tables of its batch, by name; `folder` has their copies, if it has a checkpoint.

    Raises:
        StateError: a copy is missing or damaged.
    """
    if folder is None or not schema.side_tables:
        return {}
    return {name: _copied(folder / copy) for name, copy in told(_TOLD).items()}


@lru_cache(maxsize=32)
def _copied(path: AnyPath) -> pa.Table:
    """The content of a copy, mapped into memory; it never changes, because its name is its checksum."""
    try:
        return pa.ipc.open_file(pa.py_buffer(files.mapped(path))).read_all()
    except (FileNotFoundError, ValueError) as error:
        raise damaged(path, "no such file, or a damaged one") from error

"""The table `alerts_refused`, beside the others of a job: the alerts that a target will never accept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timezone

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_pace.alerts.sender import Refusal
from spark_pace.core.tables import UTC_TIME
from spark_pace.io import delta_rs
from spark_pace.io.files.addresses import AnyPath

SCHEMA = pa.schema(
    [
        ("refused_at", UTC_TIME),
        ("target", pa.string()),
        ("id", pa.string()),
        ("status", pa.string()),  # the code of an HTTP answer, or the name of an error
        ("reply", pa.string()),
        ("alert", pa.string()),  # as it was sent
    ]
)


class RefusedTable:
    """Adds to the table. All targets of a job share it."""

    def __init__(self, place: AnyPath) -> None:
        """Take the place of the table, which is made with its first row."""
        self.place = place
        self._lock = threading.Lock()

    def add(self, target: str, refusals: Sequence[Refusal]) -> None:
        """Append alerts that a target has refused."""
        now = datetime.now(timezone.utc)
        rows = [(now, target, one.alert.id, one.status, one.reply, one.alert.text) for one in refusals]
        table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], SCHEMA.names)
        options = delta_rs.options(self.place)
        with self._lock, delta_rs.told(self.place):
            there = DeltaTable.create(str(self.place), SCHEMA, mode="ignore", storage_options=options)
            write_deltalake(there, table.cast(SCHEMA), mode="append")

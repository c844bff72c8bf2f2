"""The Delta tables of a job: what they look like, how a batch is appended once, and how SQL reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_pace.core.rule import Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("matches", "late", "quarantine", "metrics")
_TIME = pa.timestamp("us", "UTC")

LATE_SCHEMA = pa.schema(
    [
        ("event_time", _TIME),
        ("lateness_us", pa.int64()),
        ("source", pa.string()),
        ("offset", pa.int64()),
        ("event", pa.string()),  # JSON of the attributes
    ]
)
QUARANTINE_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),  # record, or selection
        ("reason", pa.string()),
        ("source", pa.string()),  # of a record, with offset and raw
        ("offset", pa.int64()),
        ("raw", pa.binary()),
        ("rule", pa.string()),  # of a selection, with key and selection_id
        ("key", pa.string()),
        ("selection_id", pa.int64()),
    ]
)
METRICS_SCHEMA = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("written_at", _TIME),
        ("seconds", pa.float64()),  # since the batch before ended, or the job began
        ("events", pa.int64()),  # read and valid
        ("late", pa.int64()),
        ("quarantined", pa.int64()),  # records and selections
        ("matches", pa.int64()),
        ("matches_by_rule", pa.map_(pa.string(), pa.int64())),
        ("pending", pa.int64()),  # events above the frontier
        ("carry", pa.int64()),  # events kept for open selections
        ("open", pa.int64()),  # selections
        ("state_bytes", pa.int64()),
        ("frontier", _TIME),  # null before the first event and after the end of the input
        ("max_event_time", _TIME),  # of the batch
        ("finished", pa.bool_()),  # the batch was the end of the input
    ]
)


@dataclass(frozen=True)
class DeltaTables:
    """Appends the tables of a batch, each as one transaction of (`app_id`, batch id): a second time does nothing."""

    spark: SparkSession
    root: str
    app_id: str

    def path(self, table: str) -> str:
        """Where a table lies."""
        return f"{self.root}/{table}"

    def append(self, table: str, rows: pa.Table, batch_id: int) -> None:
        """Append one batch's rows as one file."""
        frame = self.spark.createDataFrame(rows).coalesce(1)
        writer = frame.write.format("delta").mode("append").option("txnAppId", self.app_id).option("txnVersion", str(batch_id))
        writer.save(self.path(table))


def view_sql(rule: Rule, root: str, view: str | None = None) -> str:
    """SQL that makes a temporary view of one rule's matches, with only the columns that this rule fills.

    Args:
        rule: the rule.
        root: the folder of the job's tables.
        view: name of the view; by default the rule's.
    """
    fixed = ["out_seq", "selection_id", "seq", "opened_at", "matched_at"]
    columns = [*(["key"] if rule.partition_by else []), *fixed, *rule.partition_by, *(field.name for field in rule.emit), "events"]
    name = rule.name.replace("'", "''")
    return (
        f"CREATE OR REPLACE TEMP VIEW {quoted(view or rule.name)} AS SELECT {', '.join(map(quoted, dict.fromkeys(columns)))} "
        f"FROM delta.{quoted(f'{root}/matches')} WHERE rule = '{name}'"
    )


def create_views(spark: SparkSession, rules: Iterable[Rule], root: str) -> None:
    """One typed view per rule, under the rule's name."""
    for rule in rules:
        spark.sql(view_sql(rule, root))


def quoted(name: str) -> str:
    """An SQL identifier."""
    return "`" + name.replace("`", "``") + "`"

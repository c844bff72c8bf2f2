"""What is fixed when a checkpoint is made: slots, buckets, slot keys, the rules, and the name of its Delta transactions."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from spark_pace.core.rule import Rule
from spark_pace.errors import StateError
from spark_pace.spark.durable import read_json, write_json

_VERSION = 1
_FILE = "layout.json"


@dataclass(frozen=True)
class Layout:
    """How a checkpoint is laid out.

    Attributes:
        slots: groups, and partitions, of the stateful stage.
        buckets: key buckets of each rule with `partition_by`.
        keys: the group key of each slot: Spark hashes each to a partition of its own.
        app_id: names the Delta transactions of this checkpoint; a new checkpoint needs a new one, or Delta skips its writes.
        fingerprint: of the rules.
    """

    slots: int
    buckets: int
    keys: tuple[int, ...]
    app_id: str
    fingerprint: str


def layout_of(spark: SparkSession, checkpoint: Path, rules: Sequence[Rule], slots: int | None, buckets: int | None) -> Layout:
    """The layout stored with the checkpoint, or a new one that is stored now.

    Args:
        spark: the session.
        checkpoint: the folder of the checkpoint.
        rules: the rules of the job.
        slots: for a new checkpoint; None: the cores, as far as there is work for them.
        buckets: for a new checkpoint; None: the cores.

    Raises:
        StateError: the checkpoint was made with other rules, or by a version that stored it otherwise.
    """
    stored = read_json(checkpoint / _FILE)
    fingerprint = _fingerprint(rules)
    if stored is None:
        layout = _new_layout(spark, rules, fingerprint, slots, buckets)
        write_json(checkpoint / _FILE, {"version": _VERSION, **asdict(layout)})
        return layout
    if stored.pop("version", None) != _VERSION:
        raise StateError(f"{checkpoint / _FILE} — must have version {_VERSION}; got another. Use the release that made it, or a new checkpoint.")
    layout = Layout(**{**stored, "keys": tuple(stored["keys"])})
    if layout.fingerprint != fingerprint:
        raise StateError(
            f"{checkpoint} — must go on with the rules it was made with; got changed ones. Restore the rules, or start a new checkpoint with a sink of its own."
        )
    return layout


def _new_layout(spark: SparkSession, rules: Sequence[Rule], fingerprint: str, slots: int | None, buckets: int | None) -> Layout:
    cores = spark.sparkContext.defaultParallelism
    buckets = buckets or cores
    units = sum(buckets if rule.partition_by else 1 for rule in rules)
    slots = slots or min(cores, units)
    return Layout(slots, buckets, slot_keys(spark, slots), str(uuid.uuid4()), fingerprint)


def slot_keys(spark: SparkSession, slots: int, partitions: int | None = None) -> tuple[int, ...]:
    """For each slot the least int that Spark hashes to a partition of its own; 0, 1, 2, 3 would share partitions.

    Args:
        spark: the session.
        slots: how many keys.
        partitions: of the exchange, at least `slots`; by default as many.
    """
    partitions = partitions or slots
    query = f"SELECT transform(sequence(0, {64 * partitions}), k -> pmod(hash(k), {partitions}))"
    found: dict[int, int] = {}
    for key, partition in enumerate(spark.sql(query).collect()[0][0]):
        found.setdefault(partition, key)
    return tuple(found[partition] for partition in range(slots))


def _fingerprint(rules: Sequence[Rule]) -> str:
    """Equal for rules that mean the same; a description may change."""
    meaning = "\n".join(repr(replace(rule, description="")) for rule in rules)
    return hashlib.sha256(meaning.encode()).hexdigest()

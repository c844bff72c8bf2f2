"""How a checkpoint is laid out, kept beside it: slots, buckets, slot keys, the name of its Delta transactions, and its rules."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from spark_pace.core.plan.plan import Place
from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.durable import damaged, read_json, write_json

# Every format that a checkpoint ever had: the version of its layout, and that of the slots' state beside it
# (`spark_pace.core.split.snapshot`). A new version of the state needs a new one of the layout. Version 2 of the layout has
# no `planned`, and no file of its checkpoint has a checksum.
STATE_VERSIONS = {1: 1, 2: 2, 3: 2}
LAYOUT_VERSION = max(STATE_VERSIONS)
READ_VERSIONS = tuple(layout for layout, state in STATE_VERSIONS.items() if state == FORMAT_VERSION)


@dataclass(frozen=True)
class LaidRule:
    """A rule as a checkpoint knows it: its parts as text, and where it is worked on."""

    parts: dict[str, str]
    place: Place


@dataclass(frozen=True)
class Layout:
    """How a checkpoint is laid out.

    Attributes:
        slots: groups, and partitions, of the stateful stage.
        buckets: key buckets of each rule with `partition_by`.
        keys: the group key of each slot: Spark hashes each to a partition of its own.
        app_id: names the Delta transactions of this checkpoint; a new checkpoint needs a new one, or Delta skips its writes.
        events: what the state rests on of the job's settings for events, by their names.
        rules: by their names.
        planned: the settings that batches are planned with (see `spark_pace.job_file.planned`); None where a checkpoint
            of version 2 does not say.
    """

    slots: int
    buckets: int
    keys: tuple[int, ...]
    app_id: str
    events: dict[str, str]
    rules: dict[str, LaidRule] = field(default_factory=dict)
    planned: dict[str, Any] | None = None

    @property
    def places(self) -> dict[str, Place]:
        """Where each rule is worked on."""
        return {name: rule.place for name, rule in self.rules.items()}


def new_layout(
    spark: SparkSession, units: int, slots: int | None, buckets: int, events: dict[str, str]
) -> Layout:
    """A layout without rules, for a new checkpoint.

    Args:
        spark: the session.
        units: how many there will be at first.
        slots: None: the cores, as far as there is work for them.
        buckets: key buckets of each rule with `partition_by`.
        events: see `Layout`.
    """
    slots = slots or max(1, min(spark.sparkContext.defaultParallelism, units))
    return Layout(slots, buckets, slot_keys(spark, slots), str(uuid.uuid4()), events)


def write_layout(checkpoint: Checkpoint, layout: Layout) -> None:
    """Keep the layout with its checkpoint: all of it, or what was there before."""
    write_json(checkpoint.layout_file, {"version": LAYOUT_VERSION, **asdict(layout)})


def read_layout(checkpoint: Checkpoint) -> Layout | None:
    """The layout of a checkpoint; None before its first start.

    Raises:
        StateError: it is of another version, damaged, or missing where there are batches.
    """
    path = checkpoint.layout_file
    stored = read_json(path)
    if stored is None and checkpoint.has_batches():
        raise StateError(
            f"{path} — must be there where batches are; got no file. Restore the whole checkpoint."
        )
    if stored is None:
        return None
    version = stored.pop("version", None)
    if version not in READ_VERSIONS:
        raise StateError(
            f"{path} — must have format version {' or '.join(map(str, READ_VERSIONS))}; got {version}. "
            "Go on with the release that made it, or start a new checkpoint with a sink of its own."
        )
    try:
        return _layout(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"damaged text ({error})") from error


def _layout(stored: dict[str, Any]) -> Layout:
    rules = {
        name: LaidRule(rule["parts"], Place(tuple(rule["place"]["slots"]), rule["place"]["since"]))
        for name, rule in stored["rules"].items()
    }
    layout = Layout(**{**stored, "keys": tuple(stored["keys"]), "rules": rules})
    if len(layout.keys) != layout.slots:
        raise ValueError(f"{len(layout.keys)} keys of {layout.slots} slots")
    for name, rule in rules.items():
        slots = rule.place.slots
        if len(slots) not in (1, layout.buckets) or not set(slots) <= set(range(layout.slots)):
            raise ValueError(f"slots {slots} of rule {name}")
    return layout


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

"""The layout of a checkpoint: its slots, buckets, slot keys, rules, and the name of its transactions.

A slot's key is one with which Spark sends the slot's rows to a partition of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.plan import RulePlace
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import path_at
from spark_pace.io.files.files import damaged, read_json, write_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def slot_keys(spark: SparkSession, slots: int, partitions: int | None = None) -> tuple[int, ...]:
    """The least integer for each slot that Spark hashes to the partition with the slot's number.

    With the keys 0, 1, 2, 3 some slots would share a partition. The query contains the numbers itself, so
    Spark answers without a job, in a third of a second, and only at the first start of a checkpoint.

    Args:
        spark: the session.
        slots: the number of keys.
        partitions: the number of partitions of the exchange, at least `slots`; None: `slots`.
    """
    partitions = partitions or slots
    each = f"transform(sequence(0, {64 * partitions - 1}), key -> pmod(hash(key), {partitions}))"
    ((hashed,),) = spark.sql(f"SELECT {each} FROM VALUES (0)").collect()
    return tuple(hashed.index(partition) for partition in range(slots))


@dataclass(frozen=True)
class LaidRule:
    """A rule in a checkpoint: its parts (`spark_pace.core.plan.meaning`), and the slots it runs in."""

    parts: dict[str, str]
    place: RulePlace

    @property
    def hands_on(self) -> bool:
        """True for an internal rule, which hands events to a rule over rules."""
        return set(self.parts) == {"merge"}


@dataclass(frozen=True)
class Layout:
    """The layout of a checkpoint.

    Attributes:
        slots: the number of groups, and of partitions, of the stateful stage.
        buckets: the number of key buckets of each rule with `partition_by`.
        keys: the group key of each slot. Spark hashes each key to a different partition.
        app_id: the name of this checkpoint in Delta transactions. It must be unique, because Delta skips a
            batch that was written under the same name before.
        events: the settings of events that the checkpoint fixes, by name.
        rules: the rules by name.
        planned: the settings with which batches are planned (see `spark_pace.job_file.spec`).
        number: how many times a layout was written to the checkpoint, up to this one.
    """

    slots: int
    buckets: int
    keys: tuple[int, ...]
    app_id: str
    events: dict[str, str]
    rules: dict[str, LaidRule] = field(default_factory=dict)
    planned: dict[str, Any] = field(default_factory=dict)
    number: int = 0

    @property
    def places(self) -> dict[str, RulePlace]:
        """The slots of each rule, by the rule's name."""
        return {name: rule.place for name, rule in self.rules.items()}


def new_layout(
    spark: SparkSession,
    rules: Sequence[Rule],
    slots: int | None,
    buckets: int | None,
    events: dict[str, str],
) -> Layout:
    """Make the layout of a new checkpoint, still without rules.

    Args:
        spark: its number of cores is the default for slots and buckets.
        rules: the rules with which the checkpoint begins.
        slots: the number of slots; None: one for each core, but no more than there are units of work.
        buckets: the number of key buckets of each rule with `partition_by`; None: one for each core.
        events: see `Layout`.
    """
    cores = spark.sparkContext.defaultParallelism
    buckets = buckets or cores
    of_events = [rule for rule in every_rule(rules) if not rule.reads]
    units = sum(buckets if rule.partition_by else 1 for rule in of_events)
    slots = slots or max(1, min(cores, units))
    return Layout(slots, buckets, slot_keys(spark, slots), str(uuid.uuid4()), events)


def require_same_settings(
    layout: Layout, slots: int | None, buckets: int | None, events: dict[str, str]
) -> None:
    """Refuse a job whose settings differ from those that its checkpoint fixes.

    Args:
        layout: the layout of the checkpoint.
        slots: the job's number of slots; None: any.
        buckets: the job's number of buckets; None: any.
        events: see `Layout`.

    Raises:
        StateError: the job has other settings than the checkpoint.
    """
    stored = {**layout.events, "slots": layout.slots, "buckets": layout.buckets}
    given = {**events, "slots": slots or layout.slots, "buckets": buckets or layout.buckets}
    if names := differing(stored, given):
        where = "events" if {*names} & {*events, *layout.events} else "parallelism"
        parts = (f"{name} {given.get(name, 'none')} instead of {stored.get(name, 'none')}" for name in names)
        got, do = ", ".join(parts), "Restore it, or start a new checkpoint with a sink of its own."
        raise StateError(f"{where} — must be as the checkpoint knows it; got {got}. {do}")


def differing(stored: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    """The names whose values differ in two mappings."""
    return [name for name in {**stored, **given} if stored.get(name) != given.get(name)]


def write_layout(checkpoint: Checkpoint, layout: Layout) -> Layout:
    """Write the layout to its checkpoint; return it with its number. If interrupted, the old one stays."""
    before = read_layout(checkpoint)
    layout = replace(layout, number=1 if before is None else before.number + 1)
    write_json(checkpoint.layout_file, {"version": FORMAT_VERSION, **asdict(layout)})
    return layout


def read_layout(checkpoint: Checkpoint) -> Layout | None:
    """Read the layout of a checkpoint; None before its first start.

    Raises:
        StateError: it is of another version, damaged, or missing where there are batches.
    """
    path = checkpoint.layout_file
    # another version must be reported before anything else
    stored = read_json(path, unsigned=lambda stored: stored.get("version") != FORMAT_VERSION)
    if stored is None and checkpoint.begun():
        do = "Restore the whole checkpoint."
        raise StateError(f"{path} — must be there where batches are; got no file. {do}")
    if stored is None:
        return None
    version = stored.pop("version", None)
    if version != FORMAT_VERSION:  # a release that reads an older version converts its layout here
        do = "Go on with the release that made it, or start a new checkpoint with a sink of its own."
        raise StateError(f"{path} — must have format version {FORMAT_VERSION}; got {version}. {do}")
    try:
        return _layout(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"damaged text ({error})") from error


def id_of(checkpoint: Checkpoint) -> str:
    """The id of a checkpoint, by its layout, which is read for it; empty before there is one.

    Raises:
        StateError: as in `read_layout`.
    """
    layout = read_layout(checkpoint)
    return "" if layout is None else layout.app_id


def checkpoint_in(place: str | Path) -> Checkpoint | None:
    """The checkpoint that is a folder or lies right in it, as in a sink; None unless there is one."""
    folder = path_at(place)
    if not isinstance(folder, Path):
        return None
    inside: list[str] = []
    with suppress(OSError):
        inside = files.entries(folder)
    known = [Checkpoint(path) for path in (folder, *(folder / name for name in inside))]
    found = [one for one in known if files.stat(one.layout_file) is not None]
    return found[0] if len(found) == 1 else None


def _layout(stored: dict[str, Any]) -> Layout:
    rules = {
        name: LaidRule(rule["parts"], RulePlace(tuple(rule["place"]["slots"]), rule["place"]["since"]))
        for name, rule in stored["rules"].items()
    }
    return Layout(**{**stored, "keys": tuple(stored["keys"]), "rules": rules})

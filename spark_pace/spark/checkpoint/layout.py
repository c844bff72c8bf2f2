"""How a checkpoint is laid out: slots, buckets, slot keys, rules, and the name of its transactions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from spark_pace.core.plan.lower_rules import every_rule
from spark_pace.core.plan.places import RulePlace
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.snapshot import FORMAT_VERSION
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files import damaged, read_json, write_json
from spark_pace.spark.checkpoint.slot_keys import slot_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class LaidRule:
    """A rule as a checkpoint knows it: its parts (`spark_pace.core.plan.meaning`), and where it runs."""

    parts: dict[str, str]
    place: RulePlace


@dataclass(frozen=True)
class Layout:
    """How a checkpoint is laid out.

    Attributes:
        slots: the number of groups, and of partitions, of the stateful stage.
        buckets: the number of key buckets of each rule with `partition_by`.
        keys: the group key of each slot. Spark hashes each to a partition of its own.
        app_id: the name of this checkpoint's Delta transactions. Each checkpoint needs a name of its own:
            Delta skips a batch that was written under the same name before.
        events: the job's settings for events that the checkpoint fixes, by their names.
        rules: the rules, by their names.
        planned: the settings that batches are planned with (see `spark_pace.job_file.checkpoint_settings`).
    """

    slots: int
    buckets: int
    keys: tuple[int, ...]
    app_id: str
    events: dict[str, str]
    rules: dict[str, LaidRule] = field(default_factory=dict)
    planned: dict[str, Any] = field(default_factory=dict)

    def has_levels(self, batch_id: int) -> bool:
        """Tell whether rules that read matches go on, in a batch, with what they know from earlier ones."""
        return any(not place.slots and place.since < batch_id for place in self.places.values())

    @property
    def places(self) -> dict[str, RulePlace]:
        """Where each rule is worked on."""
        return {name: rule.place for name, rule in self.rules.items()}


def new_layout(
    spark: SparkSession,
    rules: Sequence[Rule],
    slots: int | None,
    buckets: int | None,
    events: dict[str, str],
) -> Layout:
    """The layout of a new checkpoint. No rule stands in it yet.

    Args:
        spark: has as many cores as slots and buckets go by.
        rules: the first rules of the checkpoint.
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
    """Refuse a job with other settings than its checkpoint fixes.

    Args:
        layout: the layout of the checkpoint.
        slots: as the job has them; None: any number.
        buckets: likewise.
        events: see `Layout`.

    Raises:
        StateError: the job has other settings than the checkpoint.
    """
    _require_same("events", layout.events, events)
    given = {"slots": slots or layout.slots, "buckets": buckets or layout.buckets}
    _require_same("parallelism", {"slots": layout.slots, "buckets": layout.buckets}, given)


def differing(stored: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    """The names under which two mappings do not have the same."""
    return [name for name in {**stored, **given} if stored.get(name) != given.get(name)]


def _require_same(where: str, stored: Mapping[str, object], given: Mapping[str, object]) -> None:
    names = differing(stored, given)
    if names:
        parts = (f"{name} {given.get(name, 'none')} instead of {stored.get(name, 'none')}" for name in names)
        got, do = ", ".join(parts), "Restore it, or start a new checkpoint with a sink of its own."
        raise StateError(f"{where} — must be as the checkpoint knows it; got {got}. {do}")


def write_layout(checkpoint: Checkpoint, layout: Layout) -> None:
    """Keep the layout in its checkpoint. If this is interrupted, the old one stays."""
    write_json(checkpoint.layout_file, {"version": FORMAT_VERSION, **asdict(layout)})


def read_layout(checkpoint: Checkpoint) -> Layout | None:
    """The layout of a checkpoint; None before its first start.

    Raises:
        StateError: it is of another version, damaged, or missing where there are batches.
    """
    path = checkpoint.layout_file
    # the version is told first, whatever the build; today's has a checksum
    stored = read_json(path, unsigned=lambda stored: stored.get("version") != FORMAT_VERSION)
    if stored is None and checkpoint.has_batches():
        do = "Restore the whole checkpoint."
        raise StateError(f"{path} — must be there where batches are; got no file. {do}")
    if stored is None:
        return None
    version = stored.pop("version", None)
    if version != FORMAT_VERSION:  # a release that also reads an older one makes today's layout of it here
        do = "Go on with the release that made it, or start a new checkpoint with a sink of its own."
        raise StateError(f"{path} — must have format version {FORMAT_VERSION}; got {version}. {do}")
    try:
        return _layout(stored)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"damaged text ({error})") from error


def _layout(stored: dict[str, Any]) -> Layout:
    rules = {
        name: LaidRule(rule["parts"], RulePlace(tuple(rule["place"]["slots"]), rule["place"]["since"]))
        for name, rule in stored["rules"].items()
    }
    layout = Layout(**{**stored, "keys": tuple(stored["keys"]), "rules": rules})
    if len(layout.keys) != layout.slots:
        raise ValueError(f"{len(layout.keys)} keys of {layout.slots} slots")
    for name, rule in rules.items():
        slots = rule.place.slots
        numbers = (0,) if "from" in rule.parts else (1, layout.buckets)
        if len(slots) not in numbers or not set(slots) <= set(range(layout.slots)):
            raise ValueError(f"slots {slots} of rule {name}")
    return layout

"""What the core finds in the batches that a job has read, ticks of its clock among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kafka import KafkaConsumer, TopicPartition

from examples.kafka.broker import Broker
from spark_pace.core.local_run import LocalRun, LocalStep
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.order import Tick
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.tables import NO_FRONTIER
from spark_pace.job_file import JobSpec
from spark_pace.spark.sources.kafka import offsets_noted
from spark_pace.spark.sources.own_sources import TICK
from tests.long.chaos.check import Tables, Wanted, differences_from, keys
from tests.long.chaos.rule_changes import OVER_RULES, Notes, form_of
from tests.long.chaos.stream import BAD, Stream

_NAMES = ("id", "k", "kind", "x")
_UNSURE = 3  # batches that may have been done between two looks at the checkpoint
Row = dict[str, Any]


def records_in(broker: Broker, topic: str, stream: Stream) -> list[pa.Table]:
    """The records of each partition of a topic as the core reads them, with the role of each as `role`."""
    number_of = {line: number for number, line in enumerate(stream.lines)}
    found = []
    with KafkaConsumer(bootstrap_servers=broker.servers, enable_auto_commit=False) as consumer:
        for part in sorted(consumer.partitions_for_topic(topic) or ()):
            place = TopicPartition(topic, part)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            values: list[bytes] = []
            while len(values) < end:
                polled = consumer.poll(1000, max_records=100_000)
                values += [record.value for records in polled.values() for record in records]
            rows = stream.table.take([number_of[value] for value in values])
            found.append(
                pa.table(
                    {
                        "@time": rows["t"],
                        "@source": pa.array([f"{topic}/{part}"] * end).dictionary_encode(),
                        "@offset": pa.array(range(end), pa.int64()),
                        "t": rows["t"].cast(pa.timestamp("us")),
                        **{name: rows[name] for name in (*_NAMES, "role")},
                    }
                )
            )
    return found


@dataclass
class Read:
    """What the batches of a job have read, in order: records of each partition, and ticks."""

    batches: list[list[pa.Table | Tick]]

    @staticmethod
    def of(notes: Notes, records: Sequence[pa.Table], topic: str) -> Read:
        done = notes.checkpoint.last_done()
        batches: list[list[pa.Table | Tick]] = []
        before, tick = [0] * len(records), None
        for batch in range(done + 1):
            offsets = notes.offsets[batch]
            planned = offsets_noted(offsets)
            ends = [planned.get((topic, str(part)), 0) for part in range(len(records))]
            parts: list[pa.Table | Tick] = [
                _good(table.slice(first, end - first))
                for table, first, end in zip(records, before, ends, strict=True)
            ]
            ticked = next((offset[TICK] for offset in offsets if TICK in offset), None)
            parts += [Tick(ticked)] if ticked is not None and ticked != tick else []
            batches.append(parts)
            before, tick = ends, ticked
        return Read(batches)

    @property
    def ticks(self) -> int:
        """How often the clock ticked."""
        return sum(isinstance(part, Tick) for parts in self.batches for part in parts)

    def steps(self, spec: JobSpec, rules: Sequence[Rule]) -> list[LocalStep]:
        """What the core finds in each batch."""
        local = LocalRun(build_plan(rules, order=spec.events.order))
        return [local.step(parts) for parts in self.batches]

    def without(self, late: set[tuple[str, int]]) -> Read:
        """The same without the late events."""
        return Read(
            [
                [part if isinstance(part, Tick) else _without(part, late) for part in parts]
                for parts in self.batches
            ]
        )


def _good(records: pa.Table) -> pa.Table:
    return records.filter(pc.not_equal(records["role"], BAD)).drop_columns(["role"])


def _without(records: pa.Table, late: set[tuple[str, int]]) -> pa.Table:
    at = zip(records["@source"].to_pylist(), records["@offset"].to_pylist(), strict=True)
    return records.filter(pa.array(np.array([place not in late for place in at], np.bool_)))


def of_steps(steps: Sequence[LocalStep], name: str) -> pa.Table:
    """One of the tables of all batches."""
    return pa.concat_tables([getattr(step, name) for step in steps])


def differences_from_core(
    tables: Tables, read: Read, records: Sequence[pa.Table], spec: JobSpec
) -> Iterator[str]:
    """What is not as the core finds it, for the rules of the job, which stay all along."""
    steps, every = read.steps(spec, spec.rules), pa.concat_tables(records)
    matches, late, failed = (of_steps(steps, name) for name in ("matches", "late", "failed"))
    bad = keys(every.filter(pc.equal(every["role"], BAD)), "@source", "@offset")
    counts = {name: sum(step.stats[name] for step in steps) for name in ("events", "late", "repeats")}
    counts |= {"records": every.num_rows, "bad_records": len(bad)}
    ordered = matches.sort_by([("rule", "ascending"), ("out_seq", "ascending")])
    behind = keys(late, "source", "offset", "lateness_us")
    names = [rule.name for rule in spec.rules]
    yield from differences_from(tables, Wanted(ordered, failed, behind, bad, counts, names))


@dataclass
class Extras:
    """How the matches of extra rules compare.

    Attributes:
        lives: how many times such a rule was taken over.
        matches: their matches that the core finds too.
        numbered: matches of rules over rules, of which only the numbers are looked at.
        apart: what differs.
    """

    lives: int
    matches: int
    numbered: int
    apart: list[str]


def extras_compared(
    tables: Tables, read: Read, spec: JobSpec, notes: Notes, rules: dict[str, Rule]
) -> Extras:
    """Compare the matches of rules that came and went with what the core finds from their batch on."""
    frontiers = [step.frontier_us for step in read.steps(spec, spec.rules)]
    late = set(zip(*(tables["late"][name].to_pylist() for name in ("source", "offset")), strict=True))
    on_time = read.without(late)
    result = Extras(len(notes.lives), 0, 0, [])
    for name in sorted({name for name, _ in notes.lives}):
        rows = tables["matches"].filter(pc.equal(tables["matches"]["rule"], name)).to_pylist()
        if form_of(name) == OVER_RULES:
            result.numbered += len(rows)
            continue
        left = rows
        for (_, since), following in sorted(item for item in notes.lives.items() if item[0][0] == name):
            is_last = following > len(read.batches) - 1
            until = len(read.batches) if is_last else following + _UNSURE
            first = [Tick(frontiers[since - 1])] if since and frontiers[since - 1] != NO_FRONTIER else []
            part = Read([*([first] if first else []), *on_time.batches[since:until]])
            steps = part.steps(spec, [rules[name]])
            sure = steps[: following - since + bool(first)]
            count = _in_common(of_steps(steps, "matches").to_pylist(), left)
            least = sum(step.matches.num_rows for step in sure)
            if count < least:
                result.apart.append(
                    f"{name} from batch {since} to {following}: {least} matches expected, {count} are there; "
                    f"then {left[count : count + 1]}"
                )
            result.matches += count
            left = left[count:]
        if left:
            result.apart.append(f"{name}: {len(left)} matches that the core does not find, first {left[0]}")
    return result


def _in_common(wanted: list[Row], got: list[Row]) -> int:
    """How many rows at the beginning are the same but for `out_seq`."""
    names = [*(name for name in FIXED_COLUMNS if name != "out_seq")]
    count = 0
    for ours, theirs in zip(wanted, got, strict=False):
        emitted = [name for name in ours if name not in FIXED_COLUMNS]
        if any(ours[name] != theirs[name] for name in (*names, *emitted)):
            break
        count += 1
    return count

"""Reads the events, and finds the event that is asked about; or says what is wrong with the position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.intake.sift import without_late
from spark_pace.core.local_run import LocalRun
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.plan import Plan, TieBreak, build_plan
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.core.split.task import SplitTask
from spark_pace.core.tables import OFFSET, SOURCE, array
from spark_pace.errors import ConfigError, counted, one_line
from spark_pace.io.event_files import EventsRead, all_read, first_line, table_events, told_of_line
from spark_pace.io.files.files import files_at
from spark_pace.io.replay import format_of, read_each
from spark_pace.io.side_tables import read_side_tables, with_side_tables
from spark_pace.reasons.rule_stream import LowerMatches, at_source, keys_of, places_of, reading_all, stream_of

_SHOWN_NAMES = 3
_MOST_BAD = 1_000_000  # bad records of a file that are kept: any of them may be asked about


Settings: TypeAlias = Mapping[str, Any]  # those of a job that decide the stream: arguments of `build_plan`


@dataclass(frozen=True)
class Input:
    """The events of the input.

    Attributes:
        read: all records.
        on_time: the records of `read` that are not late, heartbeats included.
        late: the late events, as a table of `spark_pace.core.intake.sift.LATE_SCHEMA`.
        ties: what orders events of the same time if the rules have no `tie_break`.
        settings: those of the job.
        spark: settings of Spark by which stores are reached.
        path: the path or the address of the events; None for a table.
        schema: that of the input.
    """

    read: EventsRead
    on_time: pa.Table
    late: pa.Table
    ties: TieBreak
    settings: Settings
    spark: Mapping[str, str]
    path: Path | str | None
    schema: EventSchema

    @staticmethod
    def of(rule: Rule, events: Path | str | pa.Table, settings: Settings, spark: Mapping[str, str]) -> Input:
        """Read all events for a rule, and put late ones aside."""
        schema = input_schema([rule])
        ties: TieBreak = "position"
        if isinstance(events, pa.Table):
            own = table_events(events, schema.own, "table")
            tables = read_side_tables(schema, spark)
            reads, ties = [with_side_tables(own, schema, tables)], "columns"
            settings = {**settings, "order": settings["order"].in_any_order}
        else:
            reads = read_each(events, schema, _MOST_BAD, spark=spark)
        read = all_read(reads)
        plan = build_plan((rule,), **settings, tie_break=ties)
        late = LocalRun(plan).late([part.events for part in reads])
        on_time = without_late(read.events, late) if late.num_rows else read.events
        path = None if isinstance(events, pa.Table) else events
        return Input(read, on_time, late, ties, settings, spark, path, schema.own)

    def plan_of(self, *rules: Rule) -> Plan:
        """The plan of rules over this input."""
        return build_plan(rules, **self.settings, tie_break=self.ties)


@dataclass(frozen=True)
class Source:
    """The input of a rule, its plan, and its whole stream.

    Attributes:
        given: the input.
        read: all records that the rule reads; for a rule over rules, matches.
        on_time: those of them that are not late.
        plan: the plan of this rule alone.
        task: the rule's stream; None if it has no event.
        lower: for a rule over rules, the matches of the rules below.
    """

    given: Input
    read: EventsRead
    on_time: pa.Table
    plan: Plan
    task: SplitTask | None
    lower: LowerMatches | None

    @staticmethod
    def of(
        rules: Sequence[Rule],
        events: Path | str | pa.Table,
        name: str,
        settings: Settings,
        spark: Mapping[str, str],
    ) -> Source:
        """Read the events, and put them in order for the rule called `name`.

        Raises:
            ConfigError: there is no such rule.
        """
        names = [rule.name for rule in rules]
        if name not in names:
            do = f"Choose from {', '.join(names)}."
            raise ConfigError.of("--rule", "must name a rule of the file", one_line(name), do)
        rule = reading_all(rules[names.index(name)])
        return Source.over(Input.of(rule, events, settings, spark), rule)

    @staticmethod
    def over(given: Input, rule: Rule) -> Source:
        """The source for a rule over an input."""
        plan = given.plan_of(rule)
        read, on_time, lower = given.read, given.on_time, None
        if rule.reads:
            lower = LowerMatches.of(plan.levels[-1], given.plan_of(*rule.reads), given.on_time)
            plan, on_time = lower.level.plan, lower.events()
            read = EventsRead(on_time, given.read.bad, given.read.read_rows)
        task = stream_of(plan, on_time) if on_time.num_rows else None
        return Source(given, read, on_time, plan, task, lower)

    def lower_sources(self) -> Iterator[Source]:
        """A source for each rule that a rule over rules reads."""
        for rule in () if self.lower is None else self.lower.level.reads:
            if not rule.hands_on:
                yield Source.over(self.given, reading_all(rule))

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.plan.rules[0].rule


@dataclass(frozen=True)
class Place:
    """A position in the input.

    Attributes:
        source: the source.
        offset: the offset.
        row: the event's row in the rule's stream; None if it is not there.
        no_record: why the line there is no record; None if it is one.
    """

    source: str
    offset: int
    row: int | None
    no_record: str | None = None

    @property
    def text(self) -> str:
        """The position in a form that every rule understands."""
        return f"{self.source}:{self.offset}"


def asked(source: Source, at: int | str, key: str | None = None) -> Place:
    """Find the record at a position, as the caller of `why` gives it.

    Raises:
        ConfigError: there is no such record, or several could be meant.
    """
    text = str(at)
    if re.fullmatch(r"\d{1,18}", text):
        return _by_seq(source, int(text), key)
    name, colon, offset = _by_offset(text).rpartition(":")
    if not colon or not re.fullmatch(r"\d{1,18}", offset):
        must = "must be a seq such as 12, or a source and offset such as events.json:12"
        raise ConfigError.of("--at", must, one_line(text), "Take them from the events of a match.")
    if key is not None:
        do = "Leave --key out: the position says which event it is."
        raise ConfigError.of("--key", "must stand beside a seq only", one_line(text), do)
    place = Place(name, int(offset), None)
    if source.task is not None:
        rows = np.flatnonzero(at_source(source.task.stream.events, name, place.offset))
        if len(rows):
            return Place(name, place.offset, int(rows[0]))
    if is_of_input(source, place) or at_source(source.read.events, name, place.offset).any():
        return place
    no_record = _told_of_line(source, place)
    if no_record is not None:
        return replace(place, no_record=no_record)
    count = source.read.read_rows
    names = ", ".join(map(one_line, _names(source)[:_SHOWN_NAMES]))
    more = len(_names(source)[_SHOWN_NAMES:])
    names += f" and {more:,} more" * (more > 0)
    do = f"There {'is' if count == 1 else 'are'} {counted(count, 'record')} in {names}."
    if source.lower is not None:
        do += f" A match of a lower rule is its name and out_seq: {source.lower.level.reads[0].name}:0."
    raise ConfigError.of("--at", "must be the position of a record", one_line(text), do)


def _told_of_line(source: Source, place: Place) -> str | None:
    """Why a line of a file of text is no record; None if it is one, or no such line."""
    path, schema = source.given.path, source.given.schema
    if path is None or place.source not in _names(source):
        return None
    format = format_of(place.source, schema)
    if format in (None, "parquet"):
        return None
    files, _ = files_at(path, source.given.spark)
    return told_of_line(files, place.source, place.offset, schema if format == "text" else None)


def _by_offset(position: str) -> str:
    """The position with an offset in place of a line number: `events.csv:L3` becomes `events.csv:1`.

    Raises:
        ConfigError: the line is before the first record.
    """
    found = re.fullmatch(r"(.+):L(\d{1,18})", position)
    if found is None:
        return position
    offset = int(found[2]) - first_line(found[1])
    if offset < 0:
        got, do = one_line(position), f"The first record is in line {first_line(found[1])}."
        raise ConfigError.of("--at", "must be the line of a record", got, do)
    return f"{found[1]}:{offset}"


def is_of_input(source: Source, place: Place) -> bool:
    """True if a record of the input is at the place."""
    events = source.given.read.events
    return (
        bool(at_source(events, place.source, place.offset).any())
        or reason_at(source.read.bad, place) is not None
    )


def reason_at(table: pa.Table, place: Place) -> str | None:
    """The reason that a table, of bad records or of late events, has for a place; None if it has none."""
    at = pc.and_(pc.equal(table["source"], place.source), pc.equal(table["offset"], place.offset))
    rows = table.filter(at)
    return str(rows["reason"][0]) if rows.num_rows else None


def _names(source: Source) -> list[str]:
    """The names of all sources, ascending."""
    events = source.given.read.events
    return sorted({*array(events, SOURCE).dictionary.to_pylist(), *source.read.bad["source"].to_pylist()})


def _by_seq(source: Source, seq: int, key: str | None) -> Place:
    task, rule = source.task, source.rule
    segments = places_of(rule, key, [] if task is None else keys_of(task))
    if task is None:
        do = "Give source:offset to see what it lacks."
        raise ConfigError.of("--at", "must be in the rule's stream", f"{seq}, and no event is", do)
    if not segments:
        do = "Take it from a match, or give source:offset."
        raise ConfigError.of("--key", "must be a key of the rule's stream", one_line(str(key)), do)
    stream = task.stream
    rows = np.flatnonzero(np.isin(stream.segment, segments) & (stream.seq == seq))
    if not len(rows):
        most = int(stream.seq[np.isin(stream.segment, segments)].max())
        of = "" if key is None else f" of {one_line(key)}"
        do = f"The rule's stream{of} has seq 0 to {most}."
        raise ConfigError.of("--at", "must be a seq of the rule's stream", str(seq), do)
    if len(rows) > 1:
        got = f"{seq}, which {len(rows)} events have, for the key was forgotten"
        raise ConfigError.of("--at", "must be one event", got, "Give source:offset.")
    events = stream.events.slice(int(rows[0]), 1)
    return Place(events[SOURCE][0].as_py(), events[OFFSET][0].as_py(), int(rows[0]))

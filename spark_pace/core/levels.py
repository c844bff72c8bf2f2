"""The rules that read matches, level by level, behind the merger of the rules below them.

Matches are far fewer than events. So these rules run where a batch's matches come together, in one place, and
in the same batch; each level is a splitter of one slot, as for events.

Sources: semantics, section 7.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.frames import TableStore, encode_parcel, frames_of
from spark_pace.core.intake.pack import pack
from spark_pace.core.match.delay import is_awaited, out_before, surely_out_before
from spark_pace.core.match.release import NOTHING_WAITS, Waiting
from spark_pace.core.merger import Merged, merge
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import Result
from spark_pace.core.order import Progress
from spark_pace.core.plan.lower_rules import EVENTS, NUMBER, PLACE, column_given, given_by
from spark_pace.core.plan.meaning import fingerprint, rule_parts
from spark_pace.core.plan.plan import Level, Plan, RulePlan
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.core.python_functions import FoldRuns, fold_here
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput, told_of_waiting
from spark_pace.core.tables import NO_FRONTIER, OFFSET, SOURCE, TIME, UNKNOWN_TIME, array, concat, numbers
from spark_pace.errors import StateError

STANDING = ("pending", "carry", "open")  # of matches that wait or are carried, and of open selections


@dataclass(frozen=True)
class Awaited:
    """What is known of the matches of a rule that is read and whose matches may wait.

    Attributes:
        waiting: those that wait, of the time `known_us` and later.
        known_us: the time from which on they are known: a rule may have had matches before others read it.
    """

    waiting: Waiting
    known_us: int

    def after(self, planned: RulePlan, change: Waiting, frontier_us: int) -> Awaited:
        """What is known after a batch."""
        surely_us = surely_out_before(planned.rule, frontier_us)
        left = Waiting.sum([self.waiting, change]).since(max(self.known_us, surely_us))
        return Awaited(left, self.known_us)


class Levels:
    """The running state of all rules that read matches.

    Attributes:
        standing: the counts of `STANDING` behind the last batch.
        out_before: for each rule the time before which all its matches are out, behind the last batch.
    """

    def __init__(self, plan: Plan, snapshot: bytes | None = None, store: TableStore | None = None) -> None:
        """Begin with empty state, or go on from a snapshot.

        Args:
            plan: the plan.
            snapshot: what `snapshot` gave; None: there is no state yet.
            store: where the state's large chunks are; None: in the snapshots.

        Raises:
            StateError: a state in it is damaged, of another format version or of other rules.
        """
        self._plan = plan
        kept, awaited = ({}, {}) if snapshot is None else stored_states(snapshot)
        self._splitters = [SlotSplitter(level.plan, 0, kept.get(_id(level)), store) for level in plan.levels]
        self._awaited = awaited
        self.standing = dict.fromkeys(STANDING, 0)
        self.out_before: dict[str, int] = {}

    def snapshot(self) -> bytes:
        """The state as bytes; its large chunks are in the store."""
        states = [splitter.snapshot() for splitter in self._splitters]
        header = {
            "levels": [_id(level) for level in self._plan.levels],
            "awaited": [[name, one.known_us, one.waiting.stored()] for name, one in self._awaited.items()],
        }
        return encode_parcel(header, states)

    def stored(self) -> list[str]:
        """The names of what is in the store and the last snapshot needs."""
        return [name for splitter in self._splitters for name in splitter.stored()]

    def advance(self, merged: Merged, passed_us: int, frontier_us: int, fold: FoldRuns = fold_here) -> Merged:
        """Process a batch.

        Args:
            merged: the matches of the rules that read events.
            passed_us: the frontier of these events before the batch.
            frontier_us: their frontier now.
            fold: calls the Python function of a rule's fold.

        Returns:
            The matches of all rules.

        Raises:
            OperatorError: such a function has failed. The state in memory has moved on in part then, and must
                not be used any more.
        """
        standing, before = Counter[str](), self._awaited
        self._awaited = {}  # of rules that nobody reads any more nothing is known
        self._go_on(self._plan, before, merged, passed_us, frontier_us)
        for level, splitter in zip(self._plan.levels, self._splitters, strict=True):
            reached_us = min(self.out_before.get(rule.name, frontier_us) for rule in level.reads)
            level_passed_us = splitter.frontier_us
            output = _advance(level, splitter, merged, reached_us, fold)
            results = [result for lane in output.lanes for result in lane]
            told = told_of_waiting([output.waiting])
            merged = merged.beside(merge(level.plan, results, merged.next_out_seq, told))
            standing.update({name: output.stats[name] for name in STANDING})
            self._go_on(level.plan, before, merged, level_passed_us, splitter.frontier_us)
        self.standing = {name: standing[name] for name in STANDING}
        return merged

    def _go_on(
        self, plan: Plan, before: Mapping[str, Awaited], merged: Merged, passed_us: int, frontier_us: int
    ) -> None:
        """Note how far the matches of the rules of a plan are out."""
        for planned in plan.rules:
            rule, awaited = planned.rule, Awaited(NOTHING_WAITS, NO_FRONTIER)
            if is_awaited(planned):
                change = merged.waiting.get(rule.name, NOTHING_WAITS)
                awaited = before.get(_name(planned), Awaited(NOTHING_WAITS, passed_us))
                awaited = self._awaited[_name(planned)] = awaited.after(planned, change, frontier_us)
            self.out_before[rule.name] = out_before(rule, frontier_us, awaited.waiting, awaited.known_us)


def _advance(
    level: Level, splitter: SlotSplitter, merged: Merged, reached_us: int, fold: FoldRuns
) -> StepOutput[list[Result]]:
    records, passed_us = matches_as_events(level, merged.of_rules), splitter.frontier_us
    frames = [] if records is None else [frame for _, frame in pack(level.plan, records)]
    output = splitter.advance(
        frames, _progress(records, reached_us), partial(work_off, level.plan), fold=fold
    )
    if output.late is not None:
        got = f"one at {output.late['event_time'][0]} behind {passed_us} µs"
        must = f"must come before those that read them need them: {', '.join(r.name for r in level.reads)}"
        raise StateError(f"matches — {must}; got {got}. This is a fault of spark_pace: report it.")
    return output


def _progress(records: pa.Table | None, reached_us: int) -> Progress:
    """How far the matches have come: all below `reached_us` are there."""
    if reached_us == NO_FRONTIER:
        return Progress()
    if reached_us != UNKNOWN_TIME:
        return Progress(reached_us, least_us=reached_us)
    greatest = None if records is None else int(numbers(records, TIME).max())
    return Progress(greatest, finish=True, least_us=greatest)


def matches_as_events(level: Level, of_rules: Mapping[str, pa.Table]) -> pa.Table | None:
    """The matches that a level reads, as a table of events; None where there are none.

    An event of the input keeps its own source and offset. Those of a match are its rule and `out_seq`.
    """
    parts = [
        _as_events(rule, place, of_rules[rule.name], level.plan.schema)
        for place, rule in enumerate(level.reads)
        if rule.name in of_rules and of_rules[rule.name].num_rows
    ]
    return concat(parts) if parts else None


def _as_events(rule: Rule, place: int, matches: pa.Table, schema: EventSchema) -> pa.Table:
    rows, number = matches.num_rows, array(matches, "out_seq")
    columns: dict[str, pa.Array] = {TIME: array(matches, "matched_at").view(pa.int64())}
    if rule.hands_on:
        (columns[SOURCE], columns[OFFSET]) = _positions(matches)
    else:
        columns[SOURCE] = pa.repeat(rule.name, rows).dictionary_encode()
        columns[OFFSET] = number
    given = given_by(rule)
    own = {
        "rule": pa.repeat(EVENTS if rule.hands_on else rule.name, rows),
        "opened_at": array(matches, "opened_at"),
        "matched_at": array(matches, "matched_at"),
        PLACE: pa.array(np.full(rows, place)),
        NUMBER: number,
    }
    for field in schema.fields:
        kind = ARROW_TYPES[field.type]
        if field.name in own:
            columns[field.name] = own[field.name].cast(kind)
        elif field.name in given:
            columns[field.name] = array(matches, column_given(rule, field.name)).cast(kind)
        else:
            columns[field.name] = pa.nulls(rows, kind)
    return pa.table(columns)


def _positions(matches: pa.Table) -> tuple[pa.DictionaryArray, pa.Array]:
    """The source and the offset of the one event of each match."""
    events = array(matches, "events").flatten()
    return events.field("source").dictionary_encode(), events.field("offset")


def _id(level: Level) -> str:
    """What a level reads: the state of one that reads something else is not its own."""
    return json.dumps([[rule.name, fingerprint(rule_parts(rule))] for rule in level.reads])


def _name(planned: RulePlan) -> str:
    """What a rule's matches that wait are kept under: those of another rule are not its own."""
    return json.dumps([planned.rule.name, planned.fingerprint, planned.since])


def stored_states(snapshot: bytes) -> tuple[dict[str, bytes], dict[str, Awaited]]:
    """The state of each level, by what it reads; and what is known of the matches that wait, by `_name`."""
    header, states = frames_of(snapshot)
    awaited = {name: Awaited(Waiting.of(times), known) for name, known, times in header["awaited"]}
    return dict(zip(header["levels"], map(bytes, states), strict=True)), awaited

"""Random row patterns as rules over streams: matches do not depend on cuts, and are those of the oracle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import RuleError
from spark_pace.rules import load_rules
from tests.oracle.row_patterns import Case, Row, decisions, result
from tests.oracle.stream import Event
from tests.support.drive import drive
from tests.support.results import from_core, table_of
from tests.support.row_pattern_cases import reading_the_match, sql_of, trial_of

EVENTS = {
    "schema": "t TIMESTAMP, k STRING, i BIGINT, x BIGINT, y DOUBLE",
    "event_time": "t",
    "tie_break": ["i"],
}
FILTER = "x is null or x <> 3"
FORGOTTEN_US = 2
OF_NEXT = "NEXT("  # what reads rows behind the row at hand


@dataclass(frozen=True)
class StreamTrial:
    """A case as a rule, its partitions as the rule sees them, and the events in the order of arrival."""

    case: Case
    rule: Rule
    clause: str
    partitions: list[list[Row]]
    arriving: list[Event]
    delay_us: int


def stream_trial(random: Random) -> StreamTrial:
    """A random trial."""
    trial = trial_of(random)
    case = replace(trial.case, rows="one", pattern=_without_end(trial.case.pattern))
    if case.within is None and random.random() < 0.5:
        case = replace(case, within=random.randint(1, 6))
    filters, keyed = random.random() < 0.2, random.random() < 0.8
    case, rule, clause = _rule(random, case, FILTER if filters else "", keyed)
    partitions = trial.partitions if keyed else [_in_order(row for one in trial.partitions for row in one)]
    events = [
        Event(row["t"], "s", number, row)
        for number, row in enumerate(row for one in partitions for row in one)
    ]
    delay_us = random.choice([0, 1, 3])
    arriving = sorted(events, key=lambda event: event.time + random.randint(0, delay_us))
    kept = [[row for row in one if not filters or row["x"] != 3] for one in partitions]
    if rule.forget_key_after_us is not None:
        kept = [part for one in kept for part in _parted(one)]
    return StreamTrial(case, rule, clause, [one for one in kept if one], arriving, delay_us)


def _without_end(node: Any) -> Any:
    if node == ("end",):
        return ("empty",)
    if node[0] in ("seq", "alt", "permute"):
        return node[0], [_without_end(part) for part in node[1]]
    return (node[0], _without_end(node[1]), *node[2:]) if node[0] in ("repeat", "exclude") else node


def _in_order(rows: Iterator[Row]) -> list[Row]:
    """The rows of several partitions as those of one; `i` tells those of one time apart."""
    ordered = sorted(rows, key=lambda row: row["t"])
    return [{**row, "i": number} for number, row in enumerate(ordered)]


def _parted(rows: list[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        if part and row["t"] - part[-1]["t"] > FORGOTTEN_US:
            yield part
            part = []
        part.append(row)
    yield part


def _rule(random: Random, case: Case, passes: str, keyed: bool) -> tuple[Case, Rule, str]:
    """The rule of a case, which is changed as far as streams refuse it."""
    forgets = False
    while True:
        clause = _clause(random, case, keyed)
        rule: dict[str, Any] = {"name": "r", "match_recognize": clause}
        rule |= {"filter": passes} if passes else {}
        if forgets:
            rule["forget_key_after"] = f"{FORGOTTEN_US} us"
        try:
            (found,) = load_rules({"events": EVENTS, "rules": [rule]})
        except RuleError as error:
            if "first row of every match" in str(error):
                case = replace(case, skip=random.choice(["past last row", "to next row"]), skip_to="")
            elif "must be bounded" in str(error) and keyed and random.random() < 0.5:
                forgets = True
            elif "must be bounded" in str(error):
                case = replace(case, within=random.randint(1, 6))
            else:
                raise
            continue
        return case, found, clause


def _clause(random: Random, case: Case, keyed: bool) -> str:
    state = random.getstate()
    sql = sql_of(random, case)
    random.setstate(state)
    inner = sql.partition("MATCH_RECOGNIZE (")[2][:-1].replace("ONE ROW PER MATCH ", "")
    if random.random() < 0.2:
        inner = reading_the_match(inner)
    return inner if keyed else inner.replace("PARTITION BY k ", "")


def expected_rows(trial: StreamTrial) -> list[list[tuple[Any, ...]]]:
    """Of each partition its matches: number, fields, and when each was decided (None: that is not told)."""
    told = OF_NEXT not in trial.clause and trial.rule.forget_key_after_us is None
    rows = []
    for partition in trial.partitions:
        found = result(trial.case, [partition])
        fields = [{name: row[name] for name, _ in trial.case.measures} for row in found]
        times: list[int | None] = [None] * len(fields)
        if told:
            last = max(event.time for event in trial.arriving)
            times = [
                last if time == math.inf else int(time) + phase
                for time, phase, _ in decisions(trial.case, partition)
            ]
        rows.append([(number, *pair) for number, pair in enumerate(zip(fields, times, strict=True))])
    return [one for one in rows if one]


def stream_difference(seed: int) -> str | None:
    """What differs in a random trial; None if nothing does."""
    random = Random(seed)
    trial = stream_trial(random)
    whole = _driven(trial, random, cut=False)
    cut = _driven(trial, random, cut=True)
    told = f"seed {seed}\n{trial.clause}\n{[event.row for event in trial.arriving]}"
    if isinstance(cut, str) or isinstance(whole, str):
        return f"{told}\n{cut}\n{whole}"
    if cut != whole:
        return f"{told}\nin pieces: {cut}\nat once: {whole}"
    expected, found = expected_rows(trial), _by_partition(trial, whole)
    if sorted(map(repr, expected)) == sorted(map(repr, found)):
        return None
    return f"{told}\nin the oracle: {expected}\nhere: {found}"


def _by_partition(trial: StreamTrial, rows: list[Row]) -> list[list[tuple[Any, ...]]]:
    """The matches of each stream of a key; one begins where the number is 0."""
    told = OF_NEXT not in trial.clause and trial.rule.forget_key_after_us is None
    of_keys: dict[str, list[list[tuple[Any, ...]]]] = {}
    for row in rows:
        fields = {name: row["fields"][name] for name, _ in trial.case.measures}
        streams = of_keys.setdefault(repr(row["key"]), [])
        if row["selection_id"] == 0:
            streams.append([])
        streams[-1].append((row["selection_id"], fields, row["matched_at"] if told else None))
    return [stream for streams in of_keys.values() for stream in streams]


def _driven(trial: StreamTrial, random: Random, *, cut: bool) -> list[Row] | str:
    """All matches; the state is saved and restored between all batches. Or what was out too early or late."""
    order, arriving = OrderSpec(trial.delay_us), trial.arriving
    spread = {"slots": random.randint(1, 2), "buckets": random.choice([1, 4]), "lanes": random.randint(1, 3)}
    plan = build_plan([trial.rule], order=order, least_lane_rows=1, **spread)
    pieces = [arriving]
    if cut:
        edges = sorted(random.randint(0, len(arriving)) for _ in range(random.randint(1, 6)))
        pieces = [arriving[a:b] for a, b in zip([0, *edges], [*edges, len(arriving)], strict=True)]
    steps = list(drive(plan, [table_of(trial.rule, piece) for piece in pieces], finish=True))
    rows = from_core(trial.rule, pa.concat_tables(step.matches for step in steps))
    ends = trial.case.within is not None or trial.rule.forget_key_after_us is not None
    if not ends or OF_NEXT in trial.clause:  # the end of the input decides, and its last event's time is told
        return rows
    out = 0
    for step in steps[:-1]:
        out += step.matches.num_rows
        early = [row for row in rows[:out] if row["matched_at"] > step.frontier_us]
        late = [row for row in rows[out:] if row["matched_at"] < step.frontier_us]
        if early or late:
            return f"at {step.frontier_us} out too early: {early}, too late: {late}"
    return rows

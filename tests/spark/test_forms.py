"""Every form of the rule language in a streaming query that is stopped in between: the core's matches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import EVENTS as EVENTS_OF_JOBS
from tests.spark.jobs import (
    FOLDS,
    OVER_FOLDS,
    in_core,
    job,
    matches,
    only,
    random_events,
    stop_at,
    table,
    write_files,
)
from tests.support.results import micros
from tests.support.row_pattern_cases import found_rows

pytestmark = [pytest.mark.spark, pytest.mark.in_parts, pytest.mark.usefixtures("spark")]

RULES = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: repeated
    partition_by: [k]
    pattern: {sequence: [{name: a, when: "kind = 'a'", times: 2..4}, b: kind = 'b']}
    where: count(a) < b.x
    within: 30 s
    emit: {number: count(a), total: sum(a.x), newest: last(a.t)}
  - name: optional
    pattern: {sequence: [a: kind = 'a', {name: b, when: "kind = 'b' and x < 4", times: 0..2}, c: kind = 'c']}
    where: a.x = c.x
    within: 12 s
    context: next, zero
    emit: {number: count(b), least: min(b.x)}
  - name: negated
    pattern: {sequence: [a: kind = 'a', {name: n, when: "kind = 'c'", not: true}, b: kind = 'b']}
    where: n.x = a.x
    within: 9 s
    context: latest, zero
  - name: first_seen
    partition_by: [k]
    pattern: {sequence: [{name: n, when: "kind = 'a'", not: true, within: 40 s}, a: kind = 'a']}
    where: n.x = a.x
    emit: {x: a.x}
  - name: first_of_the_key
    partition_by: [k]
    forget_key_after: 12 s
    pattern: {sequence: [{name: n, when: "kind <> 'b'", not: true}, a: "kind in ('a', 'b')"]}
    where: n.x = a.x
    context: latest, zero
  - name: not_after_less
    pattern: {sequence: [{name: n, when: "kind = 'c'", not: true, within: 5 s}, a: kind = 'a', b: kind = 'b']}
    where: n.x < a.x and a.x < b.x
    within: 9 s
    context: earliest, selected
  - name: first_of_a_window
    span: {every: 5 s, size: 10 s}
    pattern: {sequence: [{name: n, when: "kind = 'c'", not: true}, a: kind = 'a', b: kind = 'b']}
    where: n.k = a.k
  - name: unpaid
    partition_by: [k]
    pattern: {sequence: [a: kind = 'a', {name: n, when: "kind = 'b'", not: true}]}
    within: 8 s
  - name: neighbours
    contiguity: strict
    pattern: {sequence: [a: kind = 'a', {name: b, when: "kind = 'b'", times: 1+}, c: kind = 'c']}
    within: 10 events
    context: earliest, selected
  - name: directly_behind
    pattern:
      sequence:
        - a: kind = 'a'
        - {name: b, when: "kind = 'b'", times: 0..3}
        - {name: c, when: "kind = 'c'", follows: strict}
        - d: "kind = 'a' and x > 3"
    within: 12 s
    context: latest, zero
    emit: {number: count(b)}
  - name: any_order
    pattern: {conjunction: [a: kind = 'a', b: kind = 'b', c: kind = 'c']}
    where: a.x < b.x
    within: 9 s
    context: each, selected
    emit: {first: a.x, second: b.x, third: c.x}
  - name: partly_in_order
    pattern: {conjunction: [{sequence: [a: kind = 'a', b: kind = 'b']}, c: kind = 'c']}
    within: 9 s
    context: earliest, zero
    emit: {first: a.x, second: b.x, third: c.x}
  - name: one_or_the_other
    partition_by: [k]
    pattern:
      disjunction:
        - sequence: [a: kind = 'a', b: kind = 'b']
        - sequence: [p: kind = 'a', c: kind = 'c']
    where: a.x < b.x
    within: 9 s
    context: earliest, selected
    emit: {second: b.x, third: c.x, of_key: k}
  - name: any_order_of_keys
    partition_by: [k]
    pattern: {conjunction: [a: kind = 'a', b: kind = 'b']}
    within: 20 events
    context: earliest, selected
  - name: either
    pattern:
      sequence:
        - a: kind = 'a'
        - {name: other, disjunction: [low: kind = 'b' and x < 4, high: kind = 'b', c: kind = 'c']}
    where: other.k = a.k and low.x < a.x and high.x = a.x and c.x > a.x
    within: 9 s
    context: latest, zero
    emit: {low: low.x, high: high.x, c: c.x, other: other.x}
  - name: either_in_any_order
    partition_by: [k]
    pattern: {conjunction: [a: kind = 'a', disjunction: [up: kind = 'b' and x > prev(x), c: kind = 'c']]}
    within: 9 s
    context: all, selected
    emit: {ups: count(up), total: sum(c.x)}
  - name: before_components
    partition_by: [k]
    pattern: {sequence: [a: kind = 'a', b: "kind in ('b', 'c')"]}
    where: b.x > prev(a.x) and prev(b.x) <> a.x and a.x >= prev(a.x, 2)
    within: 9 s
    context: latest, zero
    emit: {before: prev(a.x), kind_before: "prev(b.kind, 2)"}
  - name: of_changes
    partition_by: [k]
    filter: kind <> prev(kind) or x > prev(x, 2)
    pattern: {sequence: [a: kind = 'a', b: kind = 'b' and prev(kind) = 'a']}
    within: 20 s
    emit: {before: prev(b.x)}
  - name: sums_of_changes
    filter: kind <> prev(kind)
    span: {every: 5 s, size: 10 s}
    emit: {number: count(*), total: sum(x)}
  - name: a_v
    partition_by: [k]
    contiguity: strict
    pattern:
      sequence:
        - s: "true"
        - {name: d, when: x < prev(x), times: 1+}
        - {name: u, when: x > prev(x), times: 1+}
    within: 20 events
    context: next, selected
    emit: {top: s.x, bottom: last(d.x)}
  - name: groups_beside_groups
    partition_by: [k]
    pattern:
      sequence:
        - {name: a, when: "kind = 'a'", times: 1..3}
        - {name: b, when: "kind = 'b'", times: 0..2}
        - c: "kind = 'c'"
    where: c.x >= last(a.x)
    within: 9 s
    context: latest, zero
    emit: {number: count(b), newest: last(b.t)}
  - name: opened
    span: {open: kind = 'a', close: "kind = 'a' and x = open.x", within: 30 s}
    pattern: {sequence: [b: kind = 'b' and x > open.x, c: kind = 'c']}
    where: c.x <> open.x
    context: each, selected
    emit: {of: open.x, b: b.x}
  - name: on_a_grid
    span: {every: 5 s, size: 15 s}
    where: count(*) >= 10 and avg(x) > 3.5
    emit: {number: count(*), mean: avg(x), spread: stddev(x), kind_of_last: last(kind)}
  - name: by_number
    partition_by: [k]
    span: {every: 3 events, size: 7 events}
    emit: {total: sum(x), most: max(x)}
  - name: between
    span: {open: kind = 'a', close: kind = 'c', within: 10 s}
    emit: {of: open.x, known: count(x)}
  - name: by_production_sets
    pattern: {sequence: [a: kind = 'a', b: "kind in ('b', 'c')", c: kind rlike '^c$']}
    context: earliest, selected
    strategy: production_sets
  - name: sessions
    partition_by: [k]
    span: {gap: 4 s}
    emit: {number: count(*), total: sum(x)}
  - name: short_sessions
    span: {gap: 4 s, within: 10 s}
    where: count(*) > 2
    emit: {number: count(*), usual: mode(kind)}
  - name: inside_sessions
    partition_by: [k]
    span: {gap: 6 s, within: 40 s}
    pattern: {sequence: [a: kind = 'a', b: kind = 'b', {name: c, when: "kind = 'c'", not: true}]}
    emit: {x: a.x}
  - name: sums_of_sessions
    partition_by: [k]
    span: {gap: 5 s}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
  - name: long_sessions
    from: sessions
    pattern: {sequence: [s: number > 3]}
    emit: {number: s.number}
  - name: short_panes
    partition_by: [k]
    span: {every: 1 s, size: 10 s}
    emit: {number: count(*), mean: avg(x), spread: stddev(x)}
  - name: long_panes
    partition_by: [k]
    span: {every: 2 s, size: 25 s}
    where: count(*) > 2
    emit: {number: count(*), spread: stddev(x), mean: avg(x)}
  - name: all_panes
    span: {every: 5 s, size: 20 s}
    emit: {least: min(x), most: max(x), first_key: first(k)}
  - name: pairs_of_forgotten_keys
    partition_by: [k]
    forget_key_after: 3 s
    pattern: {sequence: [a: kind = 'a', b: kind = 'b']}
  - name: counted_of_forgotten_keys
    partition_by: [k]
    forget_key_after: 4 s
    pattern: {sequence: [a: kind = 'a', b: kind = 'b']}
    where: b.x >= a.x
    within: 20 events
    context: latest, zero
  - name: spans_of_forgotten_keys
    partition_by: [k]
    forget_key_after: 5 s
    span: {every: 2 events, size: 3 events}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
"""
FALLING = """PARTITION BY k ORDER BY t
      MEASURES FIRST(x) AS top, LAST(down.x) AS bottom, COUNT(*) AS events_in,
        MATCH_NUMBER() AS number
      PATTERN (strt down+ up) WITHIN INTERVAL '8' SECOND
      DEFINE down AS x < PREV(x), up AS x > PREV(x)"""
ROW_PATTERNS = f"""  - name: falling
    match_recognize: |
      {FALLING}
  - name: above_average
    match_recognize: |
      ORDER BY t
      MEASURES MATCH_NUMBER() AS number, AVG(a.x) AS average, CLASSIFIER() AS last
      AFTER MATCH SKIP TO NEXT ROW
      PATTERN (a{{2,4}} (b | c))
      DEFINE a AS x > 1, b AS b.x > 2 * AVG(a.x), c AS kind = 'c' AND NEXT(kind) = 'a'
  - name: forgotten
    filter: x > 1
    forget_key_after: 3 s
    match_recognize: |
      PARTITION BY k, kind ORDER BY t MEASURES LAST(x) AS x, MATCH_NUMBER() AS number
      AFTER MATCH SKIP TO NEXT ROW PATTERN (a* b) DEFINE a AS x > 3
  - name: twice
    from: [falling, forgotten]
    partition_by: [k]
    pattern: {{sequence: [a: rule = 'falling', b: rule = 'forgotten']}}
    within: 20 s
    emit: {{top: a.top, x: b.x}}
"""
EVENTS = random_events(11, 300)
OF_SPARK = """
SELECT k, unix_micros(session_window.start), unix_micros(session_window.end), count(*), sum(x)
FROM read_files GROUP BY k, session_window(t, '4 seconds')
"""


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobSpec:
    """The job, whose second batch failed first, and which has stopped behind it and gone on to the end."""
    folder = tmp_path_factory.mktemp("job")
    spec = job(
        folder, finish=False, rules=RULES + ROW_PATTERNS + FOLDS.removeprefix(EVENTS_OF_JOBS) + OVER_FOLDS
    )
    write_files(folder, EVENTS[:200], 2)
    with pytest.MonkeyPatch.context() as failing, pytest.raises(Exception, match="disk is full"):
        stop_at(failing, "matches", batch_id=1)
        run_job(spec)
    run_job(spec)
    write_files(folder, EVENTS[200:], 1, first=2)
    run_job(replace(read_job(folder / "job.yaml"), finish=True))
    return spec


def test_a_query_that_fails_and_stops_between_batches_gives_the_cores_matches(stopped: JobSpec) -> None:
    found = matches(stopped)
    assert found == in_core(stopped).matches.to_pylist()
    number = Counter(row["rule"] for row in found)
    assert {rule.name: number[rule.name] > 4 for rule in stopped.rules} == dict.fromkeys(number, True)


def test_its_sessions_are_those_of_spark(stopped: JobSpec, spark: SparkSession) -> None:
    read = spark.read.schema("t TIMESTAMP, k STRING, kind STRING, x BIGINT").json(stopped.files.path)
    read.createOrReplaceTempView("read_files")
    theirs = [tuple(row) for row in spark.sql(OF_SPARK).collect()]
    ours = [
        (row["k"], micros(row["opened_at"]), micros(row["matched_at"]), row["number"], row["total"])
        for row in matches(stopped)
        if row["rule"] == "sessions"
    ]
    assert sorted(ours, key=str) == sorted(theirs, key=str)


@pytest.mark.parametrize("name", ["pairs", "counted", "spans"])
def test_keys_that_it_has_forgotten_begin_anew(stopped: JobSpec, name: str) -> None:
    rows = [row for row in matches(stopped) if row["rule"] == f"{name}_of_forgotten_keys"]
    starts = {(row["key"], row["opened_at"]) for row in rows if row["selection_id"] == 0}
    assert len(starts) > 3  # more than there are keys


def test_its_row_patterns_find_what_they_find_in_a_table(stopped: JobSpec) -> None:
    assert of_stream(matches(stopped)) == at_rest(EVENTS)


def test_at_its_end_it_keeps_events_of_spans_that_wait_for_more_of_them_alone(stopped: JobSpec) -> None:
    last = max(table(stopped, "metrics").to_pylist(), key=lambda row: row["batch_id"])
    assert last["carry"] == in_core(only(stopped, "by_number")).stats["carry"] > 0


def of_stream(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows = [row for row in found if row["rule"] == "falling"]
    return sorted(
        (row["k"], row["selection_id"], row["top"], row["bottom"], row["events_in"]) for row in rows
    )


def at_rest(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The same of the clause over all events as a table."""
    table = pa.Table.from_pylist([{**one, "t": datetime.fromisoformat(one["t"])} for one in events])
    rows = found_rows(f"SELECT * FROM events MATCH_RECOGNIZE ({FALLING})", table)
    return [(row["k"], row["number"] - 1, row["top"], row["bottom"], row["events_in"]) for row in rows]

"""The job of kills: contexts, keys, spans, folds, a row pattern, a failing operator, a wait, levels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.long.chaos.stream import DELAY_S, POISON, SCHEMA

RULES = f"""
events:
  schema: "{SCHEMA}"
  event_time: t
rules:
  - name: pairs
    pattern: {{sequence: [{{a: "kind = 'a'"}}, {{b: "kind = 'b'"}}]}}
    where: b.x >= a.x
    within: 20 s
    emit: {{first: a.x, second: b.x, began: a.t}}
  - name: keyed
    partition_by: [k]
    pattern: {{sequence: [{{a: "kind = 'a'"}}, {{b: "kind = 'b'"}}]}}
    within: 30 s
    context: next, selected
  - name: queued
    filter: x < 3
    pattern: {{sequence: [{{a: "kind = 'a'"}}, {{b: "kind = 'b'"}}, {{c: "kind = 'c'"}}]}}
    context: earliest, selected
    emit: {{opened_by: a.id, closed_by: c.id}}
  - name: waits
    pattern: {{sequence: [{{a: "kind <> 'b'"}}, {{b: "id % 7000 = 6999"}}]}}
    within: 3 h
    emit: {{first: a.id, second: b.id}}
  - name: sums
    span: {{every: 60 s, size: 2 min}}
    operator: tests.long.chaos.job:total
    emit: {{total: BIGINT, events_in_span: BIGINT}}
  - name: moved
    partition_by: [k]
    filter: id % 10 = 0
    fold:
      initial: low
      moves: [{{from: low, when: x > prev(x), to: high}}, {{from: high, when: "kind = 'c'", to: low}}]
    emit: {{was: state.from, now: state.to, since: state.since}}
  - name: summed
    partition_by: [k]
    filter: id % 10 = 1
    fold: tests.long.chaos.job:summed
    emit: {{total: BIGINT}}
  - name: dips
    match_recognize: |
      PARTITION BY k ORDER BY t
      MEASURES FIRST(x) AS top, LAST(down.x) AS bottom, COUNT(*) AS taken
      PATTERN (strt down{{1,4}} up)
      DEFINE down AS x < PREV(x), up AS x > AVG(down.x)
  - name: found_again
    from: [keyed, events]
    partition_by: [k]
    pattern: {{sequence: [{{m: rule = 'keyed'}}, {{c: kind = 'c' and x = 7}}]}}
    within: 2 min
    context: next, selected
    emit: {{opened_by: c.id}}
  - name: rising
    from: [sums, found_again]
    pattern: {{sequence: [{{low: total < 480}}, {{again: rule = 'found_again'}}, {{high: total > 480}}]}}
    within: 10 min
    merge: detection
    emit: {{total: high.total, closed_by: again.opened_by}}
"""

JOB = """
name: chaos
source: {source}
events: {{delay: {delay} s{more}}}
rules: [rules.yaml]
sink: {{kind: delta, path: out}}
checkpoint: checkpoint
{run}
operators: [tests.long.chaos.job]
parallelism: {{slots: 2, buckets: 2}}
spark: {{spark.master: "local[2]"}}
"""
TO_THE_END = """
trigger: available_now
admission: off  # by watermark, batches must be cut alike: another cut has other late events
finish: true
"""
ORDERINGS = {
    "watermark": "",
    "sources": """, ordering: sources, heartbeat: "kind = 'alive'", deduplicate_on: [id]""",
}


def total(span: Any) -> Iterator[dict[str, Any]]:
    """The operator of `sums`."""
    values = span.events["x"].to_pylist()
    if POISON in values:
        raise ValueError("the number of the beast")
    yield {"total": sum(values), "events_in_span": len(values)}


def summed(state: Any, event: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The fold of `summed`: a row for every even sum."""
    total = (state or 0) + event["x"]
    return total, [{"total": total}] if total % 2 == 0 else []


def write_job(folder: Path, source: str, ordering: str = "watermark") -> Path:
    """A job file with its rules in a new folder.

    Args:
        folder: for the job, its tables and its checkpoint.
        source: of the job, in YAML.
        ordering: one of `ORDERINGS`; that by sources comes with heartbeats and repeats.
    """
    folder.mkdir(parents=True)
    (folder / "rules.yaml").write_text(RULES)
    job = JOB.format(source=source, delay=DELAY_S, more=ORDERINGS[ordering], run=TO_THE_END)
    (folder / "job.yaml").write_text(job)
    return folder / "job.yaml"

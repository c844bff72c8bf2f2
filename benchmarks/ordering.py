"""One fast and one slow producer, ordered by watermark and by sources, side by side (`make ordering`).

The slow one is three minutes behind; both are out of order by up to the delay of five seconds. For each
ordering it tells how many events of each producer were late and how long the matches took: from the event
time of a match's last event to the greatest event time when it came out. It first checks that the matches are
those of all events by sources, and of the events that were not late by watermark. With `--job`, the real job
runs too and must agree.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.jobs import ORDER, ROOT, job, matches
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.tables import concat
from spark_pace.io.event_files import read_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
LAG = 180 * SECOND
DELAY = 5 * SECOND
LENGTH = 600 * SECOND  # of either producer's events
TRIGGER = 10 * SECOND  # of arrival, in one batch
RATES = {"fast": 100, "slow": 25}  # events a second
DEVICES = 50
ORDERINGS = {
    "watermark": OrderSpec(DELAY),
    "sources": OrderSpec(DELAY, by_source=True, expected_sources=("fast", "slow")),
}


@dataclass(frozen=True)
class Outcome:
    """What came of an ordering.

    Attributes:
        matches: sorted by (rule, out_seq).
        late: columns of `spark_pace.core.intake.sift.LATE_SCHEMA`.
        batches: of each batch the greatest event time so far, and the matches of each rule in it.
    """

    matches: pa.Table
    late: pa.Table
    batches: list[tuple[int, Counter[str]]]


def write_batches(directory: Path) -> list[Path]:
    """The events as they arrive, a file for each trigger."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    chance = np.random.default_rng(7)
    parts = []
    for feed, kind, lag in (("fast", "alarm", 0), ("slow", "check", LAG)):
        rows = RATES[feed] * LENGTH // SECOND
        time = np.sort(chance.integers(0, LENGTH, rows))
        arrival = time + lag + chance.integers(0, DELAY, rows)
        kinds = np.where(chance.random(rows) < 0.2, kind, "other")
        parts.append(
            pa.table(
                {
                    "ts": START + time,
                    "feed": [feed] * rows,
                    "kind": kinds,
                    "device": chance.integers(0, DEVICES, rows),
                    "arrival": arrival,
                }
            )
        )
    events = pa.concat_tables(parts).sort_by("arrival")
    batch = events["arrival"].to_numpy() // TRIGGER
    texts = pc.strftime(events["ts"].cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    records = events.set_column(0, "ts", texts).drop_columns(["arrival"])
    paths = []
    for number in range(int(batch[-1]) + 1):
        rows = records.filter(pa.array(batch == number)).to_pylist()
        paths.append(directory / f"{number:03d}.json")
        paths[-1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")
    return paths


def ordered(plain: JobSpec, name: str) -> JobSpec:
    """The job with one of the orderings, one file a batch, and tables of its own."""
    sink = ROOT / "out" / "bench" / "ordering" / name
    order = ORDERINGS[name]
    events = replace(plain.events, order=order, source_column="feed" if order.by_source else None)
    source = replace(plain.files, max_files_per_trigger=1)
    return replace(
        plain, source=source, events=events, sink_path=str(sink), checkpoint_path=str(sink / "_checkpoint")
    )


def in_core(spec: JobSpec, batches: list[pa.Table]) -> Outcome:
    """One ordering through the core."""
    local = LocalRun(build_plan(spec.rules, order=spec.events.order, source_column=spec.events.source_column))
    steps = [local.step(batch) for batch in batches]
    steps.append(local.step(None, finish=True))
    seen = np.maximum.accumulate([pc.max(batch["@time"]).as_py() for batch in batches])
    counts = [
        Counter(
            {entry["values"]: entry["counts"] for entry in pc.value_counts(step.matches["rule"]).to_pylist()}
        )
        for step in steps
    ]
    found = pa.concat_tables(step.matches for step in steps).sort_by(ORDER)
    return Outcome(
        found,
        pa.concat_tables(step.late for step in steps),
        list(zip([*seen.tolist(), int(seen[-1])], counts, strict=True)),
    )


def in_job(spec: JobSpec) -> tuple[pa.Table, int]:
    """The matches of one ordering through the real job, and how many events were late."""
    shutil.rmtree(spec.sink_path, ignore_errors=True)
    seen: list[BatchReport] = []
    summary = run_job(spec, on_progress=seen.append)
    return matches(spec), summary.late


def latencies(outcome: Outcome, rule: str) -> dict[str, float]:
    """Percentiles over a rule's matches, in seconds. The matches come out in the order of their numbers."""
    own = outcome.matches.filter(pc.equal(outcome.matches["rule"], rule))
    when = np.repeat([seen for seen, _ in outcome.batches], [counts[rule] for _, counts in outcome.batches])
    waited = (when - own["matched_at"].cast(pa.int64()).to_numpy()) / SECOND
    return {f"p{q}": round(float(np.percentile(waited, q)), 1) for q in (50, 95, 99)} if len(waited) else {}


def told(outcome: Outcome, rules: list[str]) -> dict[str, Any]:
    """The figures of one ordering."""
    late = Counter(json.loads(event)["feed"] for event in outcome.late["event"].to_pylist())
    found = Counter(outcome.matches["rule"].to_pylist())
    return {
        "late": {feed: late[feed] for feed in RATES},
        "matches": {rule: found[rule] for rule in rules},
        "latency_s": {rule: latencies(outcome, rule) for rule in rules},
    }


def require(same: bool, what: str) -> None:
    """End the program where a result is wrong."""
    if not same:
        raise SystemExit(f"ordering: {what}; nothing was measured")


def measure(*, with_job: bool) -> dict[str, Any]:
    """Run both orderings; the figures, checked."""
    directory = ROOT / "data" / "bench" / "ordering"
    paths = write_batches(directory)
    plain = job("ordering", directory)
    rules = [rule.name for rule in plain.rules]
    batches = [read_events(str(path), "json", plain.events.schema, path.name).events for path in paths]
    whole = concat(batches)
    results: dict[str, Any] = {
        "events": {feed: RATES[feed] * LENGTH // SECOND for feed in RATES},
        "lag_s": LAG // SECOND,
        "delay_s": DELAY // SECOND,
    }
    for name in ORDERINGS:
        spec = ordered(plain, name)
        outcome = in_core(spec, batches)
        on_time = whole.filter(
            pc.invert(
                pc.is_in(positions(whole, "@source", "@offset"), positions(outcome.late, "source", "offset"))
            )
        )
        expected = run(build_plan(plain.rules, order=OrderSpec()), [on_time]).matches
        require(
            outcome.matches.combine_chunks().equals(expected.combine_chunks()),
            f"{name}: the matches are not those of the events that were not late",
        )
        require(name == "watermark" or not outcome.late.num_rows, f"{name}: events were late")
        if with_job:
            found, late = in_job(spec)
            same = (
                found.select(expected.column_names)
                .cast(expected.schema)
                .combine_chunks()
                .equals(expected.combine_chunks())
            )
            require(same and late == outcome.late.num_rows, f"{name}: the job differs from the core")
        results[name] = told(outcome, rules)
    return results


def positions(events: pa.Table, source: str, offset: str) -> pa.Array:
    """File and row as one text."""
    return pc.binary_join_element_wise(
        events[source].cast(pa.string()), events[offset].cast(pa.string()), " "
    ).combine_chunks()


def main() -> None:
    """Print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", action="store_true", help="run the real job as well")
    with_job = parser.parse_args().job
    results = measure(with_job=with_job)
    job_too = "; the real job gives the same" if with_job else ""
    print(
        f"events: {results['events']}; "
        f"the slow producer is {results['lag_s']} s behind, delay {results['delay_s']} s{job_too}"
    )
    for name in ORDERINGS:
        figures = results[name]
        print(f"ordering: {name}: late {figures['late']}")
        for rule, count in figures["matches"].items():
            print(
                f"  {rule}: {count:,} matches, seconds of event time until they are out: "
                f"{figures['latency_s'][rule] or 'none'}"
            )
    path = ROOT / "out" / "bench" / "ordering.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    main()

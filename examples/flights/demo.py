"""The demo: a year of flights through the streaming job, results by SQL, and the same rules without Spark.

``make demo`` runs it. It compares every row of the table `matches` with what the core alone finds in the same
files (less the events that the job counted as late), and exits 1 if one differs. If none does, its last words
are "replay without Spark: identical".
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from examples.flights.events import write_events
from spark_pace.cli.run import run_shown
from spark_pace.core.local import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import SparkPaceError
from spark_pace.io.query import Tables, read_table
from spark_pace.io.replaying import read_all
from spark_pace.job_file import JobSpec, read_job

RESULTS = """
    SELECT rule, count(*) AS matches,
        to_char(min(matched_at), '%Y-%m-%d %H:%M') AS first,
        to_char(max(matched_at), '%Y-%m-%d %H:%M') AS last
    FROM matches GROUP BY rule ORDER BY rule
"""
EXAMPLES = {  # a line about the worst case of each rule
    "three_airports_late": """
        SELECT to_char(started, '%Y-%m-%d %H:%M') || to_char(ended, ' to %H:%M')
            || ', up to ' || worst::int || ' min late'
        FROM three_airports_late ORDER BY worst DESC
    """,
    "knock_on": """
        SELECT tailnum || ' in ' || minutes_in::int || ', out ' || minutes_out::int || ' min late'
        FROM knock_on ORDER BY minutes_out DESC
    """,
    "slow_hour": """
        SELECT origin || to_char(opened_at, ' %Y-%m-%d %H:%M') || ', median ' || median_delay::int || ' min'
        FROM slow_hour ORDER BY median_delay DESC
    """,
}


def main(job: Path) -> int:
    """Run the whole demo; 0 if the results agree, else 1."""
    began = time.monotonic()
    spec = read_job(job)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    if not Path(spec.files.path).exists():
        console.print(f"{write_events(Path(spec.files.path)):,} events written to {spec.files.path}")
    shutil.rmtree(spec.sink_path, ignore_errors=True)  # the demo's own output: each time from the start
    summary = run_shown(spec)
    if summary.stopped_by:
        return 128 + summary.stopped_by
    console.print(results(spec))
    found = read_table(spec.sink_path, "matches")
    late = read_table(spec.sink_path, "late", ["source", "offset"])
    difference = compare(found, replayed(spec, late))
    console.print(
        f"{summary.events:,} events, {summary.late:,} late, {found.num_rows:,} matches; "
        f"job {summary.seconds:.1f} s",
        end=", ",
    )
    console.print(f"everything {time.monotonic() - began:.1f} s")
    console.print(f"replay without Spark: {difference or 'identical'}")
    return 1 if difference else 0


def results(spec: JobSpec) -> Table:
    """What the table `matches` says, rule by rule."""
    shown = Table(
        "rule", "matches", "first", "last", "for example", title=f"SELECT … FROM {spec.sink_path}/matches"
    )
    tables = Tables(spec.sink_path)
    tables.add_rules(" ".join(EXAMPLES))
    for row in tables.query(RESULTS).read_all().to_pylist():
        example = (
            tables.query(f"{EXAMPLES[row['rule']]} LIMIT 1").read_all()[0][0].as_py()
            if row["rule"] in EXAMPLES
            else ""
        )
        shown.add_row(row["rule"], f"{row['matches']:,}", row["first"], row["last"], example)
    return shown


def replayed(spec: JobSpec, late: pa.Table) -> pa.Table:
    """The matches that the core alone finds in the job's files without the late events."""
    events = read_all(Path(spec.files.path), spec.events.schema).events
    positions = set(zip(late["source"].to_pylist(), late["offset"].to_pylist(), strict=True))
    if positions:
        here = zip(events["@source"].to_pylist(), events["@offset"].to_pylist(), strict=True)
        events = events.filter(
            pa.array(np.fromiter((position not in positions for position in here), bool, events.num_rows))
        )
    return run(build_plan(spec.rules, order=OrderSpec()), [events]).matches


def compare(found: pa.Table, expected: pa.Table) -> str | None:
    """None where both tables have the same rows, else the first difference in words."""
    order = [("rule", "ascending"), ("out_seq", "ascending")]
    ours, theirs = (
        rows.sort_by(order).select(expected.column_names).to_pylist() for rows in (found, expected)
    )
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our != their:
            return f"row {number} differs: the job has {our}, the replay {their}"
    return (
        None if len(ours) == len(theirs) else f"the job has {len(ours):,} matches, the replay {len(theirs):,}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main(Path(__file__).parents[2] / "conf" / "jobs" / "flights.yaml"))
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)

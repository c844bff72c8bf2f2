"""The demo: a year of flights through the streaming job, results by SQL, and the same rules without Spark.

``make demo`` runs it. It compares every row of the tables `matches` and `late` with what the core alone
finds in the same files, and exits 1 if one differs. If none does, its last words are "replay without Spark:
identical".
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from examples.flights.events import write_events
from spark_pace.cli.run import run_shown
from spark_pace.core.local_run import LocalResult
from spark_pace.errors import SparkPaceError, counted
from spark_pace.io.query import Tables, read_table
from spark_pace.io.replay import replay_files
from spark_pace.job_file import JobSpec, read_job

ORDERS = {"matches": ("rule", "out_seq"), "late": ("source", "offset")}
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
        console.print(f"{counted(write_events(Path(spec.files.path)), 'event')} written to {spec.files.path}")
    shutil.rmtree(spec.sink_path, ignore_errors=True)  # the demo's own output: each time from the start
    summary = run_shown(spec)
    if summary.stopped_by:
        return 128 + summary.stopped_by
    console.print(results(spec))
    difference = compared(spec)
    matches = sum(summary.matches.values())
    console.print(
        f"{counted(summary.events, 'event')}, {summary.late:,} late, {counted(matches, 'match')}; "
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


def replayed(spec: JobSpec) -> LocalResult:
    """What the core alone finds in the job's files: matches, and late events."""
    return replay_files(spec.rules, Path(spec.files.path), **spec.events.stream).result


def compared(spec: JobSpec, expected: LocalResult | None = None) -> str | None:
    """None where the job's matches and late events are those of the core alone, else the first difference.

    Args:
        spec: the job.
        expected: what the core finds; None: it is asked.
    """
    expected = expected or replayed(spec)
    return compare("matches", read_table(spec.sink_path, "matches"), expected.matches) or compare(
        "late", read_table(spec.sink_path, "late"), expected.late
    )


def compare(name: str, found: pa.Table, expected: pa.Table) -> str | None:
    """None where both tables have the same rows, else the first difference in words."""
    order = [(column, "ascending") for column in ORDERS[name]]
    ours, theirs = (
        rows.sort_by(order).select(expected.column_names).to_pylist() for rows in (found, expected)
    )
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our != their:
            return f"row {number} of {name} differs: the job has {our}, the replay {their}"
    counts = len(ours), len(theirs)
    return None if counts[0] == counts[1] else f"the job has {counts[0]:,} {name}, the replay {counts[1]:,}"


@click.command(help=__doc__)
def command() -> None:
    """Run the demo with its own job."""
    try:
        sys.exit(main(Path(__file__).parents[2] / "conf" / "jobs" / "flights.yaml"))
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    command()

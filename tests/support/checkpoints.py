"""The kept checkpoints of the format version that is read, in `tests/fixtures/checkpoints`.

Each is a job that has read the first half of its files, and in which every rule has something open:

- `version_9`: patterns and an operator;
- `version_9_applications`: folds, rules over rules, panes, and a table that is joined.

``python -m tests.support.checkpoints NAME`` makes one by the build at hand.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.layout import FORMAT_VERSION
from tests.spark.jobs import RULES, make_job, random_events, write_files

FOLDER = Path(__file__).parents[1] / "fixtures" / "checkpoints"
VERSION = f"version_{FORMAT_VERSION}"
FILES, SIZE = 4, 20
EVENTS = """
events:
  schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT, z DOUBLE"
  event_time: t
"""
LOOKUP = (
    '  lookup: {owners: {path: owners.csv, on: k, schema: "owner STRING, least BIGINT", refresh: 1 us}}\n'
)
APPLICATIONS = f"""{EVENTS}{LOOKUP}
rules:
  - name: high
    partition_by: [owners.owner]
    filter: owners is not null
    pattern: {{sequence: [a: x >= owners.least, b: x >= owners.least]}}
    where: a.k <> b.k
    within: 20 s
    context: next, selected
    emit: {{x: b.x, kind: b.kind, least: b.owners.least}}
  - name: moving
    partition_by: [owners.owner]
    span: {{every: 5 s, size: 20 s}}
    emit: {{n: count(*), total: sum(z), spread: stddev(x), began: first(kind)}}
  - name: moving_longer
    partition_by: [owners.owner]
    span: {{every: 5 s, size: 40 s}}
    emit: {{n: count(*), total: sum(z), high: max(owners.least)}}
  - name: door
    partition_by: [k]
    fold:
      initial: closed
      moves:
        - {{from: closed, when: kind = 'a' and owners.least < 5, to: open}}
        - {{from: open, when: x > prev(x), to: ajar, emit: false}}
        - {{from: [open, ajar], when: kind = 'b', to: closed}}
    emit: {{was: state.from, now: state.to, since: state.since, x: x}}
  - name: streaks
    partition_by: [k]
    fold: tests.spark.jobs:streak
    emit: {{label: STRING, number: BIGINT}}
  - name: crowded
    from: [moving, events]
    partition_by: [owners_owner]
    filter: rule = 'moving' or kind <> 'c'
    pattern: {{sequence: [m: "rule = 'moving' and n > 3", s: rule = 'events' and x > 5]}}
    within: 30 s
    context: each, selected
    emit: {{x: s.x, n: m.n}}
  - name: doors
    from: [door]
    span: {{every: 10 s, size: 30 s}}
    emit: {{n: count(*), moved: sum(x), first_now: first(now)}}
  - name: streaks_above
    from: [events, high]
    fold: tests.spark.jobs:streak
    emit: {{label: STRING, number: BIGINT}}
  - name: incident
    from: [crowded, doors, streaks_above]
    pattern: {{sequence: [d: rule = 'doors', c: rule = 'streaks_above']}}
    within: 1 min
    context: next, selected
    emit: {{n: d.n, number: c.number}}
"""
OWNERS = ("k,owner,least\nu,ann,2\nv,bob,6\nw,ann,4\n", "k,owner,least\nu,bob,3\nv,bob,1\n")  # at first, then
RULES_OF = {VERSION: RULES, f"{VERSION}_applications": APPLICATIONS}


def write_input(folder: Path, first: int, last: int) -> None:
    """Some of the files that the job of a kept checkpoint reads."""
    events = [{**event, "z": event["x"] / 4} for event in random_events(20, FILES * SIZE)]
    for number in range(first, last):
        write_files(folder, events[SIZE * number : SIZE * (number + 1)], 1, first=number)


def change_table(folder: Path, place: int) -> None:
    """Let the table that the job may join hold what it holds at first, or then."""
    (folder / "owners.csv").write_text(OWNERS[place])


def keep_checkpoint(name: str) -> Path:
    """Run a job over the first half of its files, and keep what that leaves."""
    kept = FOLDER / name
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = make_job(folder, finish=False, slots=2, buckets=2, rules=RULES_OF[name])
        write_input(folder, 0, FILES // 2)
        change_table(folder, 0)
        run_job(read_job(path))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.crc", ".lock*"))
    return kept


@click.command()
@click.argument("name", type=click.Choice(sorted(RULES_OF)))
def main(name: str) -> None:
    """Keep the checkpoint of this NAME, by the build at hand."""
    print(keep_checkpoint(name))


if __name__ == "__main__":
    main()

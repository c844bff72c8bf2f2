"""Faces and queries, made of chance, and who was seen as a sequential program finds it.

`python -m examples.faces.stream faces.parquet` writes a stream for
`spark-pace replay examples/faces/rule.yaml faces.parquet --operators examples.faces.operators`.

Sources: Mayer, Tariq, Rothermel 2017, section 3.1 (the operator) and 5 (the workload).
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sizing.workloads import QUERY, faces
from examples.faces.operators import VARIANTS
from spark_pace.errors import counted

BEGIN_US = 1_767_225_600_000_000  # 2026-01-01
SCOPE_US = 10_000_000
Seen = tuple[int, int, int, int]


def stream(seconds: float, seed: int) -> pa.Table:
    """Events with the attributes of the rule, in order; a query is for someone who comes or came, or not."""
    work = faces(seconds, seed, persons=3.0, query_gap=2.0, scope=SCOPE_US / 1_000_000)
    chance = np.random.default_rng([seed, 1])
    is_query = work.kind == QUERY
    people = int(work.subject[~is_query].max(initial=0)) + 1
    person = np.where(is_query, chance.integers(0, people, len(work.time)), work.subject)
    # half of the queries are for someone who was seen a moment ago
    last = np.maximum.accumulate(np.where(is_query, 0, np.arange(len(person))))
    person = np.where(is_query & (chance.random(len(person)) < 0.5), person[last], person)
    time_us = BEGIN_US + (work.time * 1_000_000).astype(np.int64)
    until = pa.array(time_us + SCOPE_US, mask=~is_query)
    return pa.table({
        "time": pa.array(time_us).cast(pa.timestamp("us")),
        "kind": np.where(is_query, "query", "face").tolist(),
        "id": work.subject,
        "picture": person * VARIANTS + chance.integers(0, VARIANTS, len(person)),
        "until": until.cast(pa.timestamp("us")),
    })  # fmt: skip


def seen(events: pa.Table) -> list[Seen]:
    """Which persons were seen while they were looked for: each face is compared with each open query.

    It knows who is in a picture, so it does not compare features.

    Returns:
        For each query that found someone: its id, how many faces, and the times of the first and the last.
    """
    found: dict[int, list[int]] = {}
    queries: dict[int, tuple[int, int]] = {}  # those that are open: the person, and until when
    names = ("time", "kind", "id", "picture", "until")
    columns = [events[name].cast(pa.int64()) if name in ("time", "until") else events[name] for name in names]
    for time, kind, number, picture, until in zip(*(column.to_pylist() for column in columns), strict=True):
        queries = {query: (person, end) for query, (person, end) in queries.items() if time < end}
        if kind == "query":
            queries[number] = (picture // VARIANTS, until)
            continue
        for query, (person, _) in queries.items():
            if person == picture // VARIANTS:
                found.setdefault(query, []).append(time)
    return [(query, len(times), times[0], times[-1]) for query, times in sorted(found.items())]


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--seconds", default=300.0, show_default=True, help="How long faces are shown.")
@click.option("--seed", default=1, show_default=True)
def main(out: Path, seconds: float, seed: int) -> None:
    """Write a stream of faces and queries to OUT, a Parquet file."""
    events = stream(seconds, seed)
    pq.write_table(events, out)
    searches = counted(len(seen(events)), "search")
    click.echo(f"{counted(events.num_rows, 'event')}, {searches} that found someone: {out}")


if __name__ == "__main__":
    main()

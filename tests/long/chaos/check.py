"""What must hold of the tables of a job, however often it was killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import read_table
from spark_pace.core.local_run import LocalResult
from tests.long.chaos.stream import BAD, BEAT, LATE, REPEAT, Stream

ORDERS = {
    "matches": ("rule", "out_seq"),
    "late": ("source", "offset"),
    "quarantine": ("kind", "source", "offset", "rule", "key", "selection_id"),
    "metrics": ("batch_id",),
}
Tables = dict[str, pa.Table]


def tables_of(sink: str) -> Tables:
    """A job's tables, each in an order of its own."""
    found = {name: read_table(sink, name) for name in ORDERS}
    found |= {name: found[name].drop_columns(["batch_id"]) for name in ("matches", "late") if name in found}
    return {
        name: table.sort_by([(column, "ascending") for column in ORDERS[name]])
        for name, table in found.items()
    }


def total(metrics: pa.Table, name: str) -> int:
    return int(pc.sum(metrics[name]).as_py() or 0)


@dataclass(frozen=True)
class Wanted:
    """What the tables of a job must have.

    Attributes:
        matches: all rows of the rules that are compared.
        failed: their failed selections.
        late: sources and offsets of late events, and by how much they are late where that is known.
        bad: sources and offsets of bad records.
        counts: sums of `metrics`.
        rules: the names of the rules that are compared; None: all.
    """

    matches: pa.Table
    failed: pa.Table
    late: list[tuple[Any, ...]]
    bad: list[tuple[Any, ...]]
    counts: dict[str, int]
    rules: Sequence[str] | None = None


def differences_from(tables: Tables, wanted: Wanted) -> Iterator[str]:
    """What is not as it must be."""
    quarantine, metrics = tables["quarantine"], tables["metrics"]
    ours, failed = tables["matches"], quarantine.filter(pc.equal(quarantine["kind"], "selection"))
    if wanted.rules is not None:
        names = pa.array(wanted.rules)
        ours, failed = (rows.filter(pc.is_in(rows["rule"], names)) for rows in (ours, failed))
        ours = ours.select(wanted.matches.column_names)
    yield from rows_apart("matches", ours, wanted.matches)
    yield from misnumbered(tables["matches"])
    place = ("source", "offset", "lateness_us")[: len(wanted.late[0]) if wanted.late else 2]
    yield from apart("late", sorted(wanted.late), keys(tables["late"], *place))
    bad = quarantine.filter(pc.equal(quarantine["kind"], "record"))
    yield from apart("bad records", sorted(wanted.bad), keys(bad, "source", "offset"))
    selection = ("rule", "key", "selection_id")
    yield from apart("failed selections", keys(wanted.failed, *selection), keys(failed, *selection))
    yield from apart("metrics: batch ids", list(range(metrics.num_rows)), metrics["batch_id"].to_pylist())
    rows = {"matches": tables["matches"].num_rows, "quarantined": quarantine.num_rows}
    for name, count in {**wanted.counts, **rows}.items():
        yield from apart(f"metrics: {name}", [count], [total(metrics, name)])


def differences(
    tables: Tables, stream: Stream, core: LocalResult, source_of: dict[int, str]
) -> Iterator[str]:
    """What is not as the core and the stream say it must be."""
    roles, places = stream.table, dict[str, list[tuple[Any, ...]]]()
    for role in (LATE, BAD):
        rows = roles.filter(pc.equal(roles["role"], role))
        sources = map(source_of.__getitem__, rows["part"].to_pylist())
        columns = [sources, rows["offset"].to_pylist()]
        if role == LATE and pc.any(pc.greater(roles["behind"], 0)).as_py():  # by source, the stream says it
            columns.append(pc.multiply(rows["behind"], 1_000_000).to_pylist())
        places[role] = list(zip(*columns, strict=True))
    others = {"late": LATE, "bad_records": BAD, "heartbeats": BEAT, "repeats": REPEAT}
    counts = {"records": len(stream.lines), **{name: stream.count(role) for name, role in others.items()}}
    counts["events"] = counts["records"] - sum(counts[name] for name in others)
    yield from differences_from(tables, Wanted(core.matches, core.failed, places[LATE], places[BAD], counts))


def against(reference: Tables, tables: Tables) -> Iterator[str]:
    """What is not as in the tables of another run over the same batches."""
    for name in ("matches", "late", "quarantine"):
        yield from rows_apart(name, tables[name], reference[name])


def misnumbered(matches: pa.Table) -> Iterator[str]:
    for rule in pc.unique(matches["rule"]).to_pylist():
        numbers = matches.filter(pc.equal(matches["rule"], rule))["out_seq"].to_pylist()
        if numbers != list(range(len(numbers))):
            yield f"matches: out_seq of {rule} has gaps or doubles"


def keys(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Some columns of the rows, in order."""
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


def rows_apart(name: str, got: pa.Table, wanted: pa.Table) -> Iterator[str]:
    if wanted.num_columns != got.num_columns:
        yield f"{name}: columns {wanted.column_names} expected, got {got.column_names}"
        return
    wanted = wanted.select(got.column_names).cast(got.schema)
    if not got.equals(wanted):
        yield from apart(name, wanted.to_pylist(), got.to_pylist()) or (f"{name}: differ",)


def apart(name: str, wanted: list[Any], got: list[Any]) -> list[str]:
    """The first place where two lists differ, if they do."""
    if wanted == got:
        return []
    place = next(
        (number for number, (right, ours) in enumerate(zip(wanted, got, strict=False)) if right != ours),
        min(len(wanted), len(got)),
    )
    at = f"{wanted[place : place + 1]} expected, got {got[place : place + 1]}"
    return [f"{name}: {len(wanted)} expected, got {len(got)}; row {place}: {at}"]

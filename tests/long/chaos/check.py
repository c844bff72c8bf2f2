"""What must hold of the tables of a job, however often it was killed."""

from __future__ import annotations

from collections.abc import Iterator
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


def differences(
    tables: Tables, stream: Stream, core: LocalResult, source_of: dict[int, str]
) -> Iterator[str]:
    """What is not as the core and the stream say it must be."""
    yield from rows_apart("matches", tables["matches"], core.matches)
    yield from misnumbered(tables["matches"])
    roles = stream.table
    for name, role, found in (("late", LATE, tables["late"]), ("bad", BAD, _records(tables["quarantine"]))):
        rows = roles.filter(pc.equal(roles["role"], role))
        expected = sorted(
            zip(
                (source_of[part] for part in rows["part"].to_pylist()),
                rows["offset"].to_pylist(),
                strict=True,
            )
        )
        yield from apart(f"positions of {name} records", expected, keys(found, "source", "offset"))
    if pc.any(pc.greater(roles["behind"], 0)).as_py():  # by source, the stream itself says how late
        rows = roles.filter(pc.equal(roles["role"], LATE))
        expected = sorted(pc.multiply(rows["behind"], 1_000_000).to_pylist())
        yield from apart("lateness", expected, sorted(tables["late"]["lateness_us"].to_pylist()))
    selections = tables["quarantine"].filter(pc.equal(tables["quarantine"]["kind"], "selection"))
    names = ("rule", "key", "selection_id")
    yield from apart("failed selections", keys(core.failed, *names), keys(selections, *names))
    yield from _miscounted(tables["metrics"], stream)
    rows = [tables["matches"].num_rows, tables["quarantine"].num_rows]
    yield from apart(
        "metrics: matches and quarantined",
        rows,
        [total(tables["metrics"], name) for name in ("matches", "quarantined")],
    )


def against(reference: Tables, tables: Tables) -> Iterator[str]:
    """What is not as in the tables of another run over the same batches."""
    for name in ("matches", "late", "quarantine"):
        yield from rows_apart(name, tables[name], reference[name])


def misnumbered(matches: pa.Table) -> Iterator[str]:
    for rule in pc.unique(matches["rule"]).to_pylist():
        numbers = matches.filter(pc.equal(matches["rule"], rule))["out_seq"].to_pylist()
        if numbers != list(range(len(numbers))):
            yield f"matches: out_seq of {rule} has gaps or doubles"


def _miscounted(metrics: pa.Table, stream: Stream) -> Iterator[str]:
    yield from apart("metrics: batch ids", list(range(metrics.num_rows)), metrics["batch_id"].to_pylist())
    others = {"late": LATE, "bad_records": BAD, "heartbeats": BEAT, "repeats": REPEAT}
    wanted = {"records": len(stream.lines), **{name: stream.count(role) for name, role in others.items()}}
    wanted["events"] = wanted["records"] - sum(wanted[name] for name in others)
    for name, count in wanted.items():
        yield from apart(f"metrics: {name}", [count], [total(metrics, name)])


def _records(quarantine: pa.Table) -> pa.Table:
    return quarantine.filter(pc.equal(quarantine["kind"], "record"))


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

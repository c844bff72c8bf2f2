"""Makes alerts of rows: JSON objects with the keys that `docs/rules/alerts.md` promises.

Values are written as `replay` writes them: times as ISO text in UTC, decimals as numbers, bytes and numbers
that are not finite as text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.alerts.sender import Alert
from spark_pace.core.operate.match_table import FIXED_COLUMNS, TAKEN_COLUMNS
from spark_pace.core.plan.rule import Rule, column_name
from spark_pace.io.text.value_texts import as_json, fields_as_json, json_objects

SCHEMA = 1  # a number that rises when a key is removed or gets another meaning
_HEAD = [name for name in FIXED_COLUMNS if name not in ("rule", "events")]
_MOST_RAW_BYTES = 4096
# the columns that make up the id of a row, by table
_KEYS = {
    "late": ("source", "offset"),
    "quarantine": ("kind", "rule", "key", "selection_id", "source", "offset"),
}


@dataclass(frozen=True)
class Origin:
    """Where alerts come from.

    Attributes:
        job: the name of the job.
        checkpoint: of the id of its checkpoint, with which numbers of matches begin anew, the beginning.
        fields: of each rule, the columns of its key and the fields that it emits.
    """

    job: str
    checkpoint: str
    fields: Mapping[str, Collection[str]]


def fields_of(rules: Sequence[Rule]) -> dict[str, list[str]]:
    """Of each rule, the columns of its key and the fields that it emits."""
    return {
        rule.name: [*map(column_name, rule.partition_by), *(field.name for field in rule.emit)]
        for rule in rules
    }


def alerts_of(origin: Origin, table: str, rows: pa.Table, *, is_repeat: bool) -> list[Alert]:
    """The alerts of rows of a table, in their order.

    Args:
        origin: where they come from.
        table: the name of the table.
        rows: the rows.
        is_repeat: True if they may have been sent before.
    """
    (batch,) = rows.combine_chunks().to_batches()
    ids, is_match = _ids(origin, table, batch), table == "matches"
    of_all = {"schema": SCHEMA, "id": ids, "repeat": is_repeat, "job": origin.job, "table": table}
    members = {
        name: as_json(pa.array(value if name == "id" else [value] * batch.num_rows))
        for name, value in of_all.items()
    }
    own = _of_match(origin, batch) if is_match else _of_columns(batch)
    members |= {name: values for name, values in own.items() if name not in members}
    keys = batch["rule"].to_pylist() if is_match else [table] * batch.num_rows
    texts = json_objects(members, batch.num_rows).to_pylist()
    return [Alert(*one) for one in zip(ids, keys, texts, strict=True)]


def _of_match(origin: Origin, matches: pa.RecordBatch) -> dict[str, pa.Array]:
    def fields(rule: str, found: pa.RecordBatch) -> Collection[str]:
        if rule in origin.fields:
            return origin.fields[rule]
        own = (name for name in found.schema.names if name not in TAKEN_COLUMNS)  # of a rule that was removed
        return [name for name in own if found[name].null_count < found.num_rows]

    members = {name: _json(matches, name) for name in ["rule", *_HEAD]}
    return {**members, "fields": fields_as_json(matches, fields), "events": _json(matches, "events")}


def _of_columns(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    values = {name: rows[name] for name in rows.schema.names}
    if "raw" in values:
        values["raw"] = pc.binary_slice(values["raw"], 0, _MOST_RAW_BYTES)
    return {name: as_json(column) for name, column in values.items()}


def _json(rows: pa.RecordBatch, name: str) -> pa.Array:
    """The values of a column as JSON; files of before it was added lack it."""
    return as_json(rows[name] if name in rows.schema.names else pa.nulls(rows.num_rows))


def _ids(origin: Origin, table: str, rows: pa.RecordBatch) -> list[str]:
    """The id of each row: job and checkpoint, table, and what names the row in it, each part quoted."""
    names = _KEYS.get(table, ("rule", "out_seq"))
    head = [f"{origin.job}:{origin.checkpoint}", table]
    columns: list[Sequence[object]] = [rows[name].to_pylist() for name in names]
    if table == "quarantine":
        # the number of a selection begins anew with its rule, but then it has other events
        columns.append([sha256(raw or b"").hexdigest()[:8] for raw in rows["raw"].to_pylist()])
    return [_id([*head, *values]) for values in zip(*columns, strict=True)]


def _id(parts: Sequence[object]) -> str:
    return "/".join("" if part is None else quote(str(part), safe=":") for part in parts)

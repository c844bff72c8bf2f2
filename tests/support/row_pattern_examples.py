"""Well-known examples of MATCH_RECOGNIZE, with the rows that their documents show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import yaml

from tests.support.golden_cases import DIRECTORY

TYPES = {
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Example:
    """A query over one table, in a dialect, and the rows of its result."""

    name: str
    dialect: str
    table: pa.Table
    query: str
    rows: list[dict[str, Any]]


def _examples() -> list[Example]:
    told = yaml.safe_load((DIRECTORY / "published" / "queries.yaml").read_text())
    tables = {name: _table(one["types"], one["rows"]) for name, one in told["tables"].items()}
    return [
        Example(
            one["name"],
            one["dialect"],
            tables[one["table"]],
            one["query"],
            _rows(one["columns"], one["rows"]),
        )
        for one in told["examples"]
    ]


def _rows(columns: list[str], rows: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _table(types: dict[str, str], rows: list[list[Any]]) -> pa.Table:
    schema = pa.schema([(name, TYPES[kind]) for name, kind in types.items()])
    return pa.Table.from_pylist(_rows([*types], rows), schema)


EXAMPLES = _examples()
TICKER, V_SHAPE = EXAMPLES[0].table, EXAMPLES[0].query

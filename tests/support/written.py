"""Tables as a job writes them, without a job: its own writer appends what the core finds in some events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace import load_rules
from spark_pace.io.delta_tables import DeltaTables, table_schemas
from spark_pace.io.replay import replay_files


def write_tables(out: Path, rules_file: Path, events: Path, **rows: list[dict[str, Any]]) -> None:
    """The four tables in `out`; `rows` has what else than matches is in them, by table."""
    rules = load_rules(rules_file)
    schemas = table_schemas(rules)
    tables = DeltaTables(str(out), "app")
    tables.prepare(schemas)
    tables.append("matches", replay_files(rules, events).result.matches, 0)
    for name, others in rows.items():
        tables.append(name, pa.Table.from_pylist(others, schemas[name]), 0)

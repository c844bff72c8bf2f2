"""Tables as a job writes them, without a job: its own writer appends what the core finds in some events."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from spark_pace import load_rules
from spark_pace.core.intake.late import LATE_SCHEMA
from spark_pace.core.merger import matches_schema
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.delta import QUARANTINE_SCHEMA, DeltaTables
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.io.replay import replay_files


def write_tables(out: Path, rules_file: Path, events: Path, **rows: list[dict[str, Any]]) -> None:
    """The four tables in `out`; `rows` has what else than matches is in them, by table."""
    rules = load_rules(rules_file)
    schemas = {
        "matches": matches_schema(build_plan(rules, order=OrderSpec())),
        "late": LATE_SCHEMA,
        "quarantine": QUARANTINE_SCHEMA,
        "metrics": METRICS_SCHEMA,
    }
    tables = DeltaTables(cast(Any, None), str(out), "app")
    tables.prepare(schemas)
    tables.append("matches", replay_files(rules, events).result.matches, 0)
    for name, others in rows.items():
        tables.append(name, pa.Table.from_pylist(others, schemas[name]), 0)

"""The columns of `matches`: one list says which there are, and a change that is made by half is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pytest

from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.merger import matches_schema, merge
from spark_pace.core.operate.match_table import FIXED_COLUMNS, Result, decode_result
from spark_pace.core.order import Progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import RuleError
from spark_pace.io.delta_tables import view_sql
from spark_pace.io.event_files import table_events
from spark_pace.rules import load_rules
from tests.support.drive import operate

RULES = """
events: {schema: "time TIMESTAMP, k STRING, x BIGINT", event_time: time}
rules:
  - {name: r, pattern: {sequence: [{a: x > 0}]}, within: 10 s, emit: {doubled: a.x * 2}}
  - {name: of_k, partition_by: [k], pattern: {sequence: [{a: x > 1}]}, within: 10 s, emit: {tripled: a.x * 3}}
"""


def results(plan: Plan) -> list[Result]:
    """What the operators hand over for two events."""
    table = pa.table({"time": [datetime(2024, 1, 1)] * 2, "k": ["u", "v"], "x": [1, 2]})
    events = sift(plan, table_events(table, plan.schema, "s").events, Past()).events
    frames = [frame for _, frame in pack(plan, events)]
    output = SlotSplitter(plan, 0).step(frames, Progress(finish=True))
    return [decode_result(operate(plan, lane)) for lane in output.lanes]


def changed(result: Result, change: Callable[[pa.Table], pa.Table]) -> Result:
    return replace(result, matches=change(result.matches))


def test_the_columns_stand_in_their_order_and_events_last(plan: Plan) -> None:
    schema = matches_schema(planned.rule for planned in plan.rules)
    assert schema.names == [*list(FIXED_COLUMNS)[:-1], "doubled", "tripled", "k", "events"]
    assert [schema.field(name).type for name in FIXED_COLUMNS] == list(FIXED_COLUMNS.values())


def test_a_match_fills_every_column_of_its_rule_and_no_other(plan: Plan) -> None:
    rows = merge(plan, results(plan), {}).matches.to_pylist()
    null = {row["rule"]: {name for name, value in row.items() if value is None} for row in rows}
    assert null == {"r": {"key", "tripled", "k"}, "of_k": {"doubled"}}
    assert [row["out_seq"] for row in rows] == [0, 0, 1]


@pytest.mark.parametrize(
    "name", [name for name in (*FIXED_COLUMNS, "doubled") if name not in ("rule", "out_seq")]
)
def test_a_column_that_nobody_fills_is_refused(plan: Plan, name: str) -> None:
    given = [
        changed(result, lambda table: table.drop_columns([name] if name in table.column_names else []))
        for result in results(plan)
    ]
    wrong = rf'must have each of their columns .* got a difference in {name}$|Field "{name}" does not exist'
    with pytest.raises((ValueError, KeyError), match=wrong):  # by some of them matches are put in order
        merge(plan, given, {})


def test_a_column_that_nobody_knows_is_refused(plan: Plan) -> None:
    given = [
        changed(result, lambda table: table.append_column("new", pa.nulls(table.num_rows)))
        for result in results(plan)
    ]
    with pytest.raises(ValueError, match=r"matches of of_k — must have .* got a difference in new$"):
        merge(plan, given, {})


@pytest.mark.parametrize("name", FIXED_COLUMNS)
def test_no_field_may_have_the_name_of_a_fixed_column(name: str) -> None:
    with pytest.raises(RuleError, match="must not be a column that every match has"):
        load_rules(RULES.replace("doubled", name))


def test_a_view_has_the_columns_that_its_rule_fills(plan: Plan) -> None:
    of_all, of_k = (view_sql(planned.rule, "out") for planned in plan.rules)
    fixed = ", ".join(f"`{name}`" for name in FIXED_COLUMNS if name not in ("rule", "key", "events"))
    assert f"SELECT {fixed}, `doubled`, `events` FROM" in of_all
    assert f"SELECT `key`, {fixed}, `k`, `tripled`, `events` FROM" in of_k

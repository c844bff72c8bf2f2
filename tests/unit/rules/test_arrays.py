"""ARRAY attributes: what a rule asks of them, what becomes of wrong ones, and that they can wait in state."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_pace import replay
from spark_pace.core.intake.sift import late_table
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.split.slot_splitter import SlotSplitter
from spark_pace.errors import ConfigError
from spark_pace.io.event_files import read_events
from spark_pace.rules.document import Place, Report, Scalar
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import event_scope
from tests.support.expression_cases import SCHEMA

RULES = """
events:
  schema: "t TIMESTAMP, n BIGINT, u STRUCT<tags ARRAY<STRING>>, sums ARRAY<DECIMAL(5,2)>, at ARRAY<TIMESTAMP>"
  event_time: t
rules:
  - name: growing
    pattern: {sequence: [a: "array_contains(u.tags, 'x') and size(sums) > 0", b: u.tags is not null]}
    where: size(b.u.tags) > size(a.u.tags) and element_at(b.sums, 1) >= element_at(a.sums, -1)
    within: 1 h
    emit: {tags: size(b.u.tags), last: "element_at(a.sums, -1)", tag: "element_at(b.u.tags, 2)"}
"""
GOOD = [
    {"u": {"tags": ["x"]}, "sums": [1, "2.005"], "at": []},
    {"u": {"tags": ["y", None, "x"]}, "sums": [2.01, 3]},
    {"u": {"tags": None}, "sums": None, "at": ["2024-01-01T00:00:00.5", None]},
    {"u": None, "sums": [None]},
    {"u": {"tags": ["x", "z", "q", "r"]}, "sums": [5.5], "at": None},
]
BAD = {
    "u.tags — must be ARRAY<STRING>": [{"u": {"tags": [1]}}, {"u": {"tags": "x"}}, {"u": {"tags": {"a": 1}}}],
    "sums — must be ARRAY<DECIMAL(5,2)>": [{"sums": [1, 1000]}, {"sums": ["a"]}, {"sums": [[1]]}],
    "at — must be ARRAY<TIMESTAMP>": [{"at": [5]}, {"at": ["yesterday"]}],
}
LINES = [*GOOD, *(line for lines in BAD.values() for line in lines)]


@pytest.fixture
def events(tmp_path: Path, rules: tuple[Rule, ...]) -> pa.Table:
    lines = [{"t": f"2024-01-01T00:00:{n:02d}Z", "n": n} | line for n, line in enumerate(LINES)]
    (tmp_path / "e.json").write_text("\n".join(map(json.dumps, lines)))
    read = read_events(str(tmp_path / "e.json"), "json", rules[0].schema, "e")
    assert [reason.partition(";")[0] for reason in read.bad["reason"].to_pylist()] == [
        must for must, bad in BAD.items() for _ in bad
    ]
    assert read.bad["offset"].to_pylist() == list(range(len(GOOD), len(LINES)))
    return read.events


def test_elements_are_read_as_values_of_their_type(events: pa.Table) -> None:
    assert events["u.tags"].to_pylist() == [["x"], ["y", None, "x"], None, None, ["x", "z", "q", "r"]]
    assert [sums and [str(value) for value in sums] for sums in events["sums"].to_pylist()] == [
        ["1.00", "2.01"],
        ["2.01", "3.00"],
        None,
        ["None"],
        ["5.50"],
    ]
    assert [at and str(at[0]) for at in events["at"].to_pylist()][2] == "2024-01-01 00:00:00.500000"


def test_late_events_show_their_arrays(events: pa.Table, rules: tuple[Rule, ...]) -> None:
    shown = [json.loads(text) for text in late_table(events, 0, False, rules[0].schema)["event"].to_pylist()]
    assert [row["u"] for row in shown] == [
        {"tags": ["x"]},
        {"tags": ["y", None, "x"]},
        {"tags": None},
        None,
        {"tags": ["x", "z", "q", "r"]},
    ]
    assert shown[1]["sums"] == ["2.01", "3.00"]


def test_matches_do_not_depend_on_batches_and_snapshots(events: pa.Table, rules: tuple[Rule, ...]) -> None:
    plan = build_plan(rules, order=OrderSpec())
    expected = run(plan, [events]).matches.to_pylist()
    assert [(row["tags"], str(row["last"]), row["tag"]) for row in expected] == [
        (3, "2.01", None),
        (4, "3.00", "z"),
    ]
    local, found = LocalRun(plan), []
    for row in range(events.num_rows):
        found += local.step(events.slice(row, 1)).matches.to_pylist()
        local.splitters = [
            SlotSplitter(plan, slot, splitter.snapshot()) for slot, splitter in enumerate(local.splitters)
        ]
    assert [*found, *local.step(None, finish=True).matches.to_pylist()] == expected


def test_arrays_of_parquet_and_tables_must_fit(
    events: pa.Table, rules: tuple[Rule, ...], tmp_path: Path
) -> None:
    sums = pa.LargeListArray.from_pandas([[7], None], type=pa.large_list(pa.decimal128(4, 1)))
    table = pa.table({"t": pa.array([0, 1], pa.timestamp("ms")), "sums": sums})
    for column, bad in ((sums, []), (pa.array([[1.5], []]), ["sums — must be ARRAY<DECIMAL(5,2)>"])):
        pq.write_table(table.set_column(1, "sums", column), tmp_path / "e.parquet")
        read = read_events(str(tmp_path / "e.parquet"), "parquet", rules[0].schema, "e")
        assert [reason.partition(";")[0] for reason in read.bad["reason"].to_pylist()] == bad


def test_no_array_orders_events_of_one_time(rules: tuple[Rule, ...]) -> None:
    with pytest.raises(ConfigError, match="tie_break — must name attributes, for an ARRAY orders no events"):
        replay(rules, pa.table({"t": pa.array([0], pa.timestamp("us"))}))


@pytest.mark.parametrize(
    "text",
    [
        "size(i)",
        "li = li",
        "li",
        "coalesce(li, li)",
        "if(p, li, li)",
        "size(coalesce(li, li))",
        "(li) is null",
        "max(li)",
        "array_contains(li, null)",
        "array_contains(li, i)",
        "array_contains(li, 1.5)",
        "array_contains(li, 'a')",
        "array_contains(lm, 1.005)",
        "array_contains(1, li)",
        "element_at(li, 0)",
        "element_at(li, i)",
        "element_at(li, 1.0)",
        "element_at(1, li)",
        "li[0]",
    ],
)
def test_an_array_stands_nowhere_else(text: str) -> None:
    report = Report()
    assert compile_value(Scalar(Place("test"), text, text, None), event_scope(SCHEMA), report) is None
    assert not report.clean

"""Tables that a job has written, read without Spark by `read_table` and `spark-pace sql`."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace import read_table
from spark_pace.cli.show import sql_command
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.errors import ConfigError, StateError
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.io.query import TABLES
from tests.support.commands import SPARK_PACE, called, spark_pace
from tests.support.written import write_tables

UTC = timezone.utc

RULES = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x DOUBLE", event_time: t}
rules:
  - name: Rising
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 10 s
    emit: {rise: b.x - a.x, maxTime: b.t, first_key: a.k}
  - name: keyed
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 10 s
    emit: {big: b.x > 3}
  - name: never
    pattern: {sequence: [{a: "kind = 'none'"}]}
    within: 10 s
    emit: {nothing: a.x}
"""
EVENTS = r"""{"t": "2024-01-01T00:00:00Z", "k": "é\u001b[2J", "kind": "a", "x": 1}
{"t": "2024-01-01T00:00:02.5Z", "k": "é\u001b[2J", "kind": "b", "x": 5}
"""
BAD = {"kind": "record", "reason": "no \x1b[2J JSON", "source": "[red]", "offset": 7, "raw": b'\xff{"\x1b[2J'}
COUNTS = [("Rising", 1), ("keyed", 1)]
BATCH = {"batch_id": 0, "matches_by_rule": COUNTS, "finished": True, "seconds": 0.5, "state_bytes": 3}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    rules, events = folder / "rules.yaml", folder / "events.json"
    rules.write_text(RULES)
    events.write_text(EVENTS)
    write_tables(folder / "out", rules, events, quarantine=[BAD], metrics=[BATCH])
    return folder / "out"


def sql(out: str | Path, query: str, *options: str) -> subprocess.CompletedProcess[str]:
    return spark_pace("sql", out, query, *options)


def rows(out: str | Path, query: str) -> list[dict[str, object]]:
    answer = sql(out, query, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.mark.parametrize("runs", [2, pytest.param(10, marks=pytest.mark.long)])
def test_a_script_that_reads_tables_ends_well_each_time(out: Path, runs: int) -> None:
    """It loads no file system in Python: with one, Arrow's threads abort a script at its end now and then."""
    script = (
        "import sys, spark_pace\n"
        "matches = spark_pace.read_table(sys.argv[1], 'matches', ['rule', 'out_seq'])\n"
        "metrics = spark_pace.read_table(sys.argv[1], 'metrics')\n"
        "print(len(matches.to_pylist()), metrics.num_rows, 'pyarrow.fs' in sys.modules)\n"
    )
    ends = [called(sys.executable, "-c", script, out) for _ in range(runs)]
    assert [(end.returncode, end.stdout, end.stderr) for end in ends] == [(0, "2 1 False\n", "")] * runs


def test_a_table_is_read_with_the_types_it_was_written_with(out: Path) -> None:
    matches = read_table(out, "matches").sort_by("rule")
    assert matches.schema.field("rule").type == pa.string()
    assert matches.schema.field("matched_at").type == pa.timestamp("us", "UTC")
    assert matches["rise"].to_pylist() == [4.0, None]
    assert [event["component"] for event in matches["events"][0].as_py()] == ["a", "b"]
    assert read_table(out, "quarantine")["raw"].to_pylist() == [BAD["raw"]]
    assert read_table(str(out), "metrics")["matches_by_rule"].to_pylist() == [BATCH["matches_by_rule"]]


def test_columns_are_read_in_the_order_they_are_named(out: Path) -> None:
    found = read_table(out, "matches", ["out_seq", "maxTime"])
    assert found.column_names == ["out_seq", "maxTime"]
    assert datetime(2024, 1, 1, 0, 0, 2, 500_000, UTC) in found["maxTime"].to_pylist()


def test_a_table_or_a_column_that_is_not_there_is_named(out: Path) -> None:
    do = r"Use one of: matches, late, quarantine, metrics, rule_changes\.$"
    with pytest.raises(
        ConfigError, match=r"^read_table — must be given the name of a table; got matched\. " + do
    ):
        read_table(out, "matched")
    do = "Use some of: rule, .*maxTime"
    with pytest.raises(
        ConfigError, match=r"^read_table — must be given columns of matches; got maxtime\. " + do
    ):
        read_table(out, "matches", ["rule", "maxtime"])
    must = "must be the `sink: path:` of a job that has run"
    with pytest.raises(ConfigError, match=f"nowhere — {must}; got no Delta table matches there"):
        read_table(out / "nowhere", "matches")


def test_a_rule_is_a_view_with_the_columns_that_it_fills(out: Path) -> None:
    filled = {
        "out_seq": 0,
        "selection_id": 0,
        "seq": 1,
        "opened_at": "2024-01-01T00:00:00Z",
        "matched_at": "2024-01-01T00:00:02.500000Z",
    }
    place = {"source": "events.json"}
    events = [
        {"component": "a", "seq": 0, "event_time": filled["opened_at"], **place, "offset": 0},
        {"component": "b", "seq": 1, "event_time": filled["matched_at"], **place, "offset": 1},
    ]
    emitted = {"rise": 4.0, "maxTime": filled["matched_at"], "first_key": "é\x1b[2J"}
    fixed = [name for name in FIXED_COLUMNS if name not in ("rule", "key", "events")]
    (row,) = rows(out, "SELECT * FROM Rising")
    assert row | filled | emitted | {"events": events} == row
    assert list(row) == [*fixed, *emitted, "events"]
    assert list(rows(out, "\nselect * from keyed;")[0]) == ["key", *fixed, "big", "k", "events"]
    both = "SELECT maxTime AS t FROM Rising UNION ALL SELECT matched_at FROM keyed"
    assert rows(out, f"WITH both AS ({both}) SELECT count(*) AS n FROM both") == [{"n": 2}]


def test_values_of_every_type_are_text(out: Path) -> None:
    assert rows(out, 'SELECT raw, "offset" FROM quarantine') == [{"raw": '\\xff{"\x1b[2J', "offset": 7}]
    assert rows(out, "SELECT matches_by_rule AS m, frontier FROM metrics") == [
        {"m": {"Rising": 1, "keyed": 1}, "frontier": None}
    ]
    query = (
        "SELECT 1.5 / 0 AS inf, matched_at - opened_at AS took, DATE '2024-02-29' AS day,"
        " CAST(1.50 AS DECIMAL(5, 2)) AS exact, [1, NULL] AS list,"
        " opened_at AT TIME ZONE 'Asia/Tokyo' AS there, true AS yes, upper(first_key) AS text,"
        " arrow_cast('x', 'Dictionary(Int32, Utf8)') AS code FROM Rising"
    )
    assert rows(out, query) == [
        {
            "inf": "inf", "took": "0:00:02.500000", "day": "2024-02-29", "exact": 1.5, "list": [1, None],
            "there": "2024-01-01T00:00:00Z", "yes": True, "text": "É\x1b[2J", "code": "x",
        }
    ]  # fmt: skip


def test_an_answer_is_a_table_csv_or_json_lines(out: Path) -> None:
    query = "SELECT rule, key, big, events[1] AS first FROM matches ORDER BY rule"
    lines = list(csv.reader(io.StringIO(sql(out, query, "--format", "csv").stdout)))
    first = (
        '{"component": "a", "seq": 0, "event_time": "2024-01-01T00:00:00Z", '
        '"source": "events.json", "offset": 0}'
    )
    key = '{"k":"é\\u001b[2J"}'
    assert lines == [
        ["rule", "key", "big", "first"],
        ["Rising", "", "", first],
        ["keyed", key, "True", first],
    ]
    assert [list(row) for row in rows(out, query)] == [["rule", "key", "big", "first"]] * 2
    shown = sql(out, query).stdout.splitlines()
    assert [cell.strip() for cell in shown[4].split("│")[1:-1]] == ["keyed", key, "True", first]
    assert len(shown) == 6


def test_a_table_shows_the_first_rows_and_says_that_there_are_more(out: Path) -> None:
    numbers = "SELECT value FROM generate_series(1, {})"
    assert len(sql(out, numbers.format(40)).stdout.splitlines()) == 44
    shown = sql(out, numbers.format(41)).stdout.splitlines()
    assert (len(shown), shown[-1]) == (45, "and more rows: --format csv or --format json has them all")
    assert len(sql(out, numbers.format(20_000), "--format", "csv").stdout.splitlines()) == 20_001
    assert "offset" in sql(out, 'SELECT "offset" FROM late').stdout


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_what_events_hold_is_no_order_to_the_terminal(out: Path, form: str) -> None:
    terminal, ours = pty.openpty()
    query = 'SELECT raw, source, reason, k AS "\x1b[2J" FROM quarantine CROSS JOIN keyed'
    answer = subprocess.Popen([SPARK_PACE, "sql", out, query, "--format", form], stdout=ours)
    os.close(ours)
    shown = b""
    try:
        while part := os.read(terminal, 10_000):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert answer.wait() == 0
    assert b"\x1b[2J" not in shown and b"[red]" in shown
    assert (b"\\u001b[2J" if form == "json" else b"\\x1b") in shown


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT nothing FROM never",
            "got Error during planning: table 'never' not found. If never is a rule, no match of it was "
            "written yet. The tables are",
        ),
        (
            "SELECT count(*) FROM matches WHERE matched_at > '2026-01-31 12:00'",
            "Error parsing timestamp from '2026-01-31 12:00'",
        ),
        (
            "SELECT * FROM rising",
            "as views the rules that have matches: Rising, keyed. Names are case-sensitive.\n",
        ),
        (
            "SELECT nope FROM keyed",
            "got Schema error: No field named nope. Valid fields are keyed.key, keyed.out_seq",
        ),
        ("SELECT (", "got SQL error: "),
        ("SELECT 1; COPY keyed TO 'x.csv'", "only supports a single SQL statement"),
        (
            "SELEC 1",
            "must be a query that begins with SELECT, WITH or VALUES; got SELEC. The tables are only read.\n",
        ),
        ("", "got nothing. The tables are only read.\n"),
    ],
)
def test_a_query_that_is_wrong_is_one_line(out: Path, query: str, message: str) -> None:
    answer = sql(out, query)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("SQL — must be a query that ")
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO late SELECT * FROM late",
        "WITH x AS (SELECT 1) INSERT INTO late SELECT * FROM late",
        "COPY matches TO '{}/copy.csv'",
        "\n-- SELECT\nCOPY matches TO '{}/copy.csv'",
        "\n-- \rSELECT\nCOPY matches TO '{}/copy.csv'",
        "/* /* */ SELECT */ COPY matches TO '{}/copy.csv'",
        "EXPLAIN ANALYZE COPY matches TO '{}/copy.csv'",
        "(COPY matches TO '{}/copy.csv')",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}/copy.csv'",
        "DELETE FROM late",
        "UPDATE late SET source = ''",
        "DROP TABLE late",
        "SET datafusion.execution.batch_size = 1",
    ],
)
def test_sql_writes_nothing(out: Path, tmp_path: Path, statement: str) -> None:
    versions = [DeltaTable(out / name).version() for name in ("matches", "late")]
    with pytest.raises(ConfigError, match=r"^SQL — must be a query that .*\.$"):
        sql_command(out, statement.format(tmp_path), "table")
    assert list(tmp_path.iterdir()) == []
    assert [DeltaTable(out / name).version() for name in ("matches", "late")] == versions


def test_a_query_that_fails_on_its_way_is_one_line(out: Path) -> None:
    answer = sql(out, "SELECT out_seq / 0 FROM matches")
    got = "External error: Arrow error: Divide by zero error"
    message = f"the query — must come to its end; got: {got}. Change the query.\n"
    assert (answer.returncode, answer.stderr) == (1, message)


def test_the_changes_of_rules_are_a_table_where_there_is_one(tmp_path: Path) -> None:
    for name in (*TABLES, "rule_changes"):
        if name == "rule_changes":
            answer = sql(tmp_path, "SELECT rule FROM rule_changes")
            assert "The tables are matches, late, quarantine, metrics; as views" in answer.stderr
        write_deltalake(tmp_path / name, pa.table({"rule": ["high"]}))
    assert rows(tmp_path, "SELECT rule FROM rule_changes") == [{"rule": "high"}]
    assert "rule_changes" in sql(tmp_path, "SELECT rule FROM changes").stderr


def test_a_query_needs_only_the_tables_that_it_names(tmp_path: Path) -> None:
    for name in ("matches", "late", "quarantine", "metrics"):
        write_deltalake(tmp_path / name, pa.table({"rule": ["Rising"], "events": ["e"]}))
    for file in (tmp_path / "matches").glob("*.parquet"):
        file.unlink()
    assert rows(tmp_path, "SELECT * FROM late") == [{"rule": "Rising", "events": "e"}]
    for query in ("SELECT * FROM matches", "SELECT * FROM Rising"):
        answer = sql(tmp_path, query)
        assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)
        assert answer.stderr.startswith("a table — must have all its files as they were written; got: ")


def test_a_sink_may_be_an_address(out: Path, tmp_path: Path) -> None:
    assert rows(f"file://{out}", "SELECT big FROM keyed") == [{"big": True}]
    times = pa.array([0], pa.timestamp("us", "UTC"))
    matches = {"rule": ["keyed"], "opened_at": times, "matched_at": times}
    write_deltalake(tmp_path / "matches", pa.table(matches))
    write_deltalake(tmp_path / "metrics", METRICS_SCHEMA.empty_table())
    for sink in (f"file://{tmp_path}", f"{tmp_path}/"):
        answer = spark_pace("status", sink)
        assert answer.returncode == 0 and "│ keyed │ 1 " in answer.stdout


def test_an_address_that_cannot_be_read_is_named_as_it_was_given() -> None:
    for command in (["sql", "memory://x/out", "SELECT 1"], ["status", "memory://x/out"]):
        answer = spark_pace(*command)
        assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)
        assert answer.stderr.startswith("memory://x/out/m")
        got = "Generic URL error: Unable to recognise URL "
        must = "must be a place in a store that answers and that this job may read"
        assert f" — {must}; got: {got}" in answer.stderr


def test_a_folder_without_tables_is_named(tmp_path: Path) -> None:
    answer = sql(tmp_path, "SELECT 1")
    must = "must be the `sink: path:` of a job that has run; got no Delta table matches there"
    message = f"{tmp_path} — {must}. Name the folder with the tables.\n"
    assert (answer.returncode, answer.stderr) == (2, message)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "metrics", METRICS_SCHEMA.empty_table())
    log = tmp_path / "metrics" / "_delta_log" / "00000000000000000000.json"
    log.write_text("{nonsense")
    message = r"metrics — must be a Delta table with a whole log; got: .*\. Restore the table\.$"
    with pytest.raises(StateError, match=message):
        read_table(tmp_path, "metrics")

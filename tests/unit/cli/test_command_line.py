"""The command line as a user meets it: `spark-pace replay` on golden cases, its outputs, and its refusals."""

import csv
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import spark_pace as package
from spark_pace import __version__
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace_bench.job import COMMAND
from tests.spark.jobs import make_job
from tests.support.commands import RUNS, SPARK_PACE, called, message_of, spark_pace
from tests.support.golden_cases import GoldenCase, golden_cases

TABLE = [case for case in golden_cases() if case.name.startswith(("two_steps-1-", "two_steps-2-"))]
NEEDED_BY_REPLAY = {
    *("click", "numpy", "pyarrow", "rich", "spark_pace", "sqlglot", "yaml"),
    *("dateutil", "pandas", "pytz"),  # Arrow loads them for a list of Python's
    "mypy_extensions",  # sqlglot does
}
REPLAYED = """
import sys
before = set(sys.modules)
from spark_pace.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
from importlib.metadata import packages_distributions
print(*loaded & set(packages_distributions()))
"""

RULES = """
events: {schema: "t TIMESTAMP, type STRING, x BIGINT", event_time: t}
rules:
  - name: a_then_b
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    within: 10 s
    emit: {rise: b.x - a.x}
"""
EVENTS = """{"t": "2024-01-01T00:00:00Z", "type": "a", "x": 1}
{"t": "2024-01-01T00:00:02Z", "type": "b", "x": 5}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "events.json").write_text(EVENTS)
    return tmp_path


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_replay_gives_the_golden_table(case: GoldenCase, tmp_path: Path):
    out = tmp_path / "out.json"
    answer = spark_pace("replay", case.write_rules(tmp_path), case.write_events(tmp_path), "-o", out)
    assert answer.returncode == 0, answer.stderr
    matches = [json.loads(line) for line in out.read_text().splitlines()]
    ids = [event.row["id"] for event in case.events]
    assert [tuple(ids[event["offset"]] for event in match["events"]) for match in matches] == [
        events for _, events in case.matches
    ]
    assert [match["out_seq"] for match in matches] == list(range(len(matches)))


def test_the_golden_table_covers_all_contexts():
    contexts = {case.rule["context"] for case in TABLE}
    policies = {
        f"{selection}, {consumption}"
        for selection in ("each", "latest", "next", "earliest")
        for consumption in ("zero", "selected")
    }
    assert contexts == policies | {"all, selected"}


def test_a_short_replay_loads_what_it_needs_and_nothing_else(files: Path):
    command = ["replay", str(files / "rules.yaml"), str(files / "events.json")]
    told = called(sys.executable, "-c", REPLAYED, *command)
    assert told.returncode == 0, told.stderr
    assert set(told.stdout.splitlines()[-1].split()) <= NEEDED_BY_REPLAY


def test_replay_writes_one_json_object_a_line(files: Path):
    assert spark_pace("replay", "rules.yaml", "events.json", "-o", "out.json", cwd=files).returncode == 0
    match = json.loads((files / "out.json").read_text())
    first, second = "2024-01-01T00:00:00Z", "2024-01-01T00:00:02Z"
    shown = {
        "rule": "a_then_b",
        "key": None,
        "out_seq": 0,
        "selection_id": 0,
        "seq": 1,
        "opened_at": first,
        "matched_at": second,
        "fields": {"rise": 4},
        "events": [
            {"component": "a", "seq": 0, "event_time": first, "source": "events.json", "offset": 0},
            {"component": "b", "seq": 1, "event_time": second, "source": "events.json", "offset": 1},
        ],
    }
    assert match | shown == match and set(match) - set(shown) <= set(FIXED_COLUMNS)


def test_replay_writes_csv(files: Path):
    assert spark_pace("replay", "rules.yaml", "events.json", "-o", "out.csv", cwd=files).returncode == 0
    with (files / "out.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    shown = [row[name] for name in ("rule", "out_seq", "rise", "matched_at")]
    assert shown == ["a_then_b", "0", "4", "2024-01-01T00:00:02Z"]
    assert [event["component"] for event in json.loads(row["events"])] == ["a", "b"]


def test_replay_shows_a_table_and_counts(files: Path):
    answer = spark_pace("replay", "rules.yaml", "events.json", cwd=files)
    assert "a_then_b" in answer.stdout and "rise=4" in answer.stdout and "a#0 b#1" in answer.stdout
    assert answer.stderr == "2 records; matches: a_then_b 1\n"


def test_replay_names_attributes_that_no_record_has(files: Path):
    rules = files / "rules.yaml"
    rules.write_text(rules.read_text().replace("x BIGINT", "x BIGINT, why STRING, zz DOUBLE"))
    answer = spark_pace("replay", "rules.yaml", "events.json", cwd=files)
    assert answer.stderr.splitlines()[1:] == [
        "why, zz: null in every record; a name in the schema that no record has?"
    ]


def test_replay_tells_of_bad_records(files: Path):
    with (files / "events.json").open("a") as file:
        file.write("{nonsense\n")
    answer = spark_pace("replay", "rules.yaml", "events.json", cwd=files)
    assert answer.returncode == 0
    assert "3 records; matches: a_then_b 1\nbad record: events.json:L3 " in answer.stderr


def test_replay_reads_a_directory_of_files(files: Path):
    events = files / "events"
    events.mkdir()
    for name, line in zip(("1.json", "2.json"), EVENTS.splitlines(), strict=True):
        (events / name).write_text(line + "\n")
    assert spark_pace("replay", "rules.yaml", "events", "-o", "out.json", cwd=files).returncode == 0
    match = json.loads((files / "out.json").read_text())
    assert [event["source"] for event in match["events"]] == ["1.json", "2.json"]


OPERATOR_RULES = """
events: {schema: "t TIMESTAMP, type STRING, x BIGINT", event_time: t}
rules:
  - name: totals
    span: {every: 10 s, size: 10 s}
    operator: my_operators:total
    emit: {total: BIGINT}
"""


@pytest.fixture
def operator_files(files: Path) -> Path:
    (files / "rules.yaml").write_text(OPERATOR_RULES)
    (files / "my_operators.py").write_text(
        "def total(span):\n    yield {'total': sum(span.events['x'].to_pylist())}\n"
    )
    return files


def test_replay_runs_an_operator_that_is_allowed(operator_files: Path):
    files = ("rules.yaml", "events.json")
    answer = spark_pace("replay", *files, "--operators", "my_operators", "-o", "out.json", cwd=operator_files)
    assert answer.returncode == 0, answer.stderr
    assert json.loads((operator_files / "out.json").read_text())["fields"] == {"total": 6}


SHADOWS = "raise SystemExit('of the working folder')"


def test_a_file_of_the_working_folder_is_not_taken_for_a_library(operator_files: Path):
    (operator_files / "pandas.py").write_text(SHADOWS)
    (operator_files / "my_operators.py").write_text(
        "def total(span):\n    return [{'total': int(span.to_pandas()['x'].sum())}]\n"
    )
    asked = ("replay", "rules.yaml", "events.json", "--operators", "my_operators", "-o", "out.json")
    for command in ([SPARK_PACE], [sys.executable, "-c", COMMAND]):
        answer = called(*command, *asked, cwd=operator_files)
        assert (answer.returncode, "failed" in answer.stderr) == (0, False), answer.stderr
        assert json.loads((operator_files / "out.json").read_text())["fields"] == {"total": 6}


def test_a_command_that_starts_another_takes_no_library_of_the_working_folder(tmp_path: Path):
    (tmp_path / "click.py").write_text(SHADOWS)
    answer = called(sys.executable, "-c", COMMAND, "--version", cwd=tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert __version__ in answer.stdout


ENDS = """
import os

def total(span):
    os._exit(3)

def count(state, event):
    os._exit(0)
"""


def test_replay_says_which_function_has_ended_its_process(operator_files: Path):
    (operator_files / "my_operators.py").write_text(ENDS)
    asked = ("replay", "rules.yaml", "events.json", "--operators", "my_operators")
    answer = spark_pace(*asked, cwd=operator_files)
    assert answer.returncode == 0
    assert "failed selection: totals 0 the operator's process ended with exit code 3\n" in answer.stderr
    fold = OPERATOR_RULES.replace("operator: my_operators:total", "fold: my_operators:count")
    rules = fold.replace("    span: {every: 10 s, size: 10 s}\n", "")
    (operator_files / "rules.yaml").write_text(rules)
    answer = spark_pace(*asked, cwd=operator_files)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "rule totals seq 0 — its fold my_operators:count must return; got the operator's process ended with "
        "exit code 0. No state has changed: mend the function and start again.\n"
    )


def test_a_module_that_ends_the_process_when_it_is_imported_is_named(operator_files: Path):
    (operator_files / "my_operators.py").write_text("import sys\nsys.exit(4)\n")
    answer = spark_pace(
        "replay", "rules.yaml", "events.json", "--operators", "my_operators", cwd=operator_files
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    must = "must be importable where the operators run; got SystemExit: 4."
    assert answer.stderr.startswith(f"operator my_operators:total — {must}")


def test_replay_refuses_an_operator_that_is_not_allowed(operator_files: Path):
    answer = spark_pace("replay", "rules.yaml", "events.json", cwd=operator_files)
    assert answer.returncode == 2
    assert answer.stderr == (
        'rule totals — must name an operator of an allowed module; got "my_operators:total". '
        "Allow it with --operators my_operators.\n"
    )


def test_why_takes_the_option_of_replay_for_operators(operator_files: Path):
    asked = ("--rule", "totals", "--at", "0", "--operators", "my_operators")
    answer = spark_pace("why", "rules.yaml", "events.json", *asked, cwd=operator_files)
    assert answer.returncode == 0, answer.stderr
    assert "not told     what the operator makes of a span" in answer.stdout
    (operator_files / "job.yaml").write_text("source: {kind: files}\n")
    for command in (
        ("replay", "job.yaml", "events.json", *asked[4:]),
        ("why", "job.yaml", "events.json", *asked),
    ):
        answer = spark_pace(*command, cwd=operator_files)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert "--operators — must be given with a rule file only; got my_operators beside" in answer.stderr


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            "none.json",
            "none.json — must be a file or directory of events; got nothing there. "
            "Give JSON lines, CSV with a header, or Parquet; for lines of text, events needs the key text.\n",
        ),
        (
            "events.txt",
            "events.txt — must be a file that ends in .json, .jsonl, .ndjson, .csv, .parquet; got .txt. "
            "Give JSON lines, CSV with a header, or Parquet; for lines of text, events needs the key "
            "text.\n",
        ),
    ],
)
def test_replay_says_what_is_wrong_with_the_events(files: Path, events: str, message: str):
    (files / "events.txt").touch()
    answer = spark_pace("replay", "rules.yaml", events, cwd=files)
    assert (answer.returncode, answer.stderr) == (2, message)


def test_replay_refuses_an_output_it_cannot_write(files: Path):
    answer = spark_pace("replay", "rules.yaml", "events.json", "-o", "out.txt", cwd=files)
    message = "--out — must end in .json or .jsonl or .csv; got out.txt. Choose one of them.\n"
    assert (answer.returncode, answer.stderr) == (2, message)


def test_a_function_of_the_package_can_be_called_twice(files: Path):
    """No module that it loads may take its name."""
    events = pa.table({"t": pa.array([0, 1_000_000], pa.timestamp("us")), "type": ["a", "b"], "x": [1, 2]})
    rules = package.load_rules(files / "rules.yaml")
    assert [package.replay(rules, events).matches["rise"].to_pylist() for _ in range(2)] == [[1], [1]]
    assert all(callable(getattr(package, name)) for name in ("load_rules", "replay", "detect", "read_table"))


def test_check_is_silent_about_good_files():
    answer = spark_pace("check", "conf/rules/flights.yaml", "conf/jobs/flights.yaml")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "2 files: no problems\n", "")


def test_check_lists_every_problem(files: Path):
    wrong = RULES.replace("10 s", "10 parsecs").replace("b.x - a.x", "b.y")
    (files / "rules.yaml").write_text(wrong)
    answer = spark_pace("check", "rules.yaml", cwd=files)
    assert answer.returncode == 2
    assert [line.split(" — ")[0] for line in answer.stderr.splitlines()] == [
        "rules.yaml:6:13 rules[0].within",
        "rules.yaml:7:18 rules[0].emit.rise",
    ]


def test_a_command_that_is_wrong_ends_with_2():
    assert spark_pace("replay").returncode == 2
    assert spark_pace("fly").returncode == 2


def test_the_version_is_the_package_s():
    assert spark_pace("--version").stdout == f"spark-pace, version {__version__}\n"


def test_explain_names_each_rule():
    answer = spark_pace("explain", "conf/rules/flights.yaml")
    assert answer.returncode == 0
    assert all(name in answer.stdout for name in ("three_airports_late", "knock_on", "slow_hour"))


def test_replay_refuses_a_folder_that_is_not_there_before_it_runs(tmp_path):
    out = tmp_path / "absent" / "out.json"
    answer = spark_pace("replay", "conf/rules/flights.yaml", "conf", "-o", out)
    assert answer.returncode == 2
    assert answer.stderr.startswith("--out — must lie in a folder that is there; got ")


@pytest.mark.parametrize("command", RUNS.values(), ids=RUNS)
def test_a_rule_to_reset_that_the_job_does_not_have_is_named(tmp_path: Path, command: list[str]):
    job = make_job(tmp_path)
    answer = called(*command, job, "--reset-rule", "keyed", "--reset-rule", "pears")
    must = "must name a rule of the job that is not paused"
    message = f"--reset-rule — {must}; got pears. Choose from pairs, keyed, sums.\n"
    assert (answer.returncode, answer.stdout, message_of(answer.stderr)) == (2, "", message)
    assert f"Z {job} (checkpoint {tmp_path}/checkpoint): --reset-rule" in answer.stderr

"""A job file where a rule file may stand: in `spark-pace replay` and `load_rules`."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import spark_pace as package
from spark_pace.errors import ConfigError
from tests.support.commands import spark_pace

JOB = """
name: job
source: {kind: files, format: json, path: elsewhere}
events: {schema: "t TIMESTAMP, type STRING, x BIGINT", event_time: t, \
heartbeat: type = 'alive', deduplicate_on: [type, x], delay: 10 s}
rules: [rules/job_rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
operators: [totals]
"""
KAFKA = "kind: kafka, format: json, servers: 'localhost:9092', topics: [t]"
JOB_RULES = """
rules:
  - {name: next_to_a, pattern: {sequence: [a: type = 'a', any: "true"]}, within: 10 s,
     context: "next, zero", emit: {type: any.type}}
  - {name: totals, span: {every: 10 s, size: 10 s}, operator: "totals:total", emit: {total: BIGINT}}
"""
JOB_EVENTS = """{"t": "2024-01-01T00:00:00Z", "type": "a", "x": 1}
{"t": "2024-01-01T00:00:01Z", "type": "alive"}
{"t": "2024-01-01T00:00:02Z", "type": "a", "x": 1}
{"t": "2024-01-01T00:00:03Z", "type": "b", "x": 5}
"""


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "job_rules.yaml").write_text(JOB_RULES)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "events.json").write_text(JOB_EVENTS)
    (tmp_path / "totals.py").write_text(
        "def total(span):\n    yield {'total': sum(span.events['x'].to_pylist())}\n"
    )
    return tmp_path


def test_replay_takes_a_job_file_with_its_schema_operators_heartbeats_and_repeats(job_file: Path):
    answer = spark_pace("replay", "job.yaml", "events.json", "-o", "out.json", cwd=job_file)
    assert (answer.returncode, answer.stderr) == (
        0,
        "4 records; matches: next_to_a 1, totals 1 (1 of them because the input ends); "
        "1 selection closed by the end of the input\n",
    )
    rows = [json.loads(line) for line in (job_file / "out.json").read_text().splitlines()]
    assert [(row["rule"], row["fields"]) for row in rows] == [
        ("next_to_a", {"type": "b"}),
        ("totals", {"total": 6}),
    ]


def test_replay_refuses_a_job_file_that_is_wrong(job_file: Path):
    (job_file / "job.yaml").write_text(JOB.replace("[totals]", "[others]"))
    answer = spark_pace("replay", "job.yaml", "events.json", cwd=job_file)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(
        "job.yaml:8:1 operators — must name the modules of all operators, "
        'for the rule "totals" too; got "totals".'
    )


def test_replay_refuses_operators_beside_a_job_file(job_file: Path):
    answer = spark_pace("replay", "job.yaml", "events.json", "--operators", "others", cwd=job_file)
    assert (answer.returncode, answer.stdout) == (2, "")
    message = "--operators — must be given with a rule file only; got others beside the job file job.yaml."
    assert answer.stderr == f"{message} Leave it out: the job file's own `operators` count.\n"


def test_load_rules_refuses_events_beside_a_job_file(job_file: Path):
    schema = package.load_rules(job_file / "job.yaml")[0].schema
    with pytest.raises(
        ConfigError,
        match=r"job\.yaml — must be loaded without `events`, for .*; got both\. Leave `events` out\.$",
    ):
        package.load_rules(job_file / "job.yaml", events=schema)


def test_load_rules_takes_a_job_file(job_file: Path):
    rules = package.load_rules(job_file / "job.yaml")
    assert [rule.name for rule in rules] == ["next_to_a", "totals"]
    assert package.load_rules([job_file / "job.yaml"]) == rules
    events = pa.table({"t": pa.array([0, 1_000_000], pa.timestamp("us")), "type": ["a", "b"], "x": [1, 2]})
    assert package.replay(rules[:1], events).matches["type"].to_pylist() == ["b"]
    with pytest.raises(ConfigError, match="must have the key"):
        (job_file / "job.yaml").write_text(JOB.replace("name: job", ""))
        package.load_rules(str(job_file / "job.yaml"))


LATE_FILES = {
    "a.json": ["2024-01-01T00:01:00Z a 1", "2024-01-01T00:00:00Z a 2"],
    "b.json": ["2024-01-01T00:00:30Z b 3", "2024-01-01T00:00:55Z b 4"],
}


@pytest.fixture
def late_job(job_file: Path) -> Path:
    """The job, and a folder of two files; an event of the second is far behind the first."""
    (job_file / "files").mkdir()
    for name, events in LATE_FILES.items():
        rows = (event.split() for event in events)
        lines = [json.dumps({"t": time, "type": kind, "x": int(x)}) for time, kind, x in rows]
        (job_file / "files" / name).write_text("\n".join(lines))
    return job_file


def test_replay_tells_the_events_that_are_late_in_the_job(late_job: Path):
    answer = spark_pace("replay", "job.yaml", "files", "-o", "out.json", cwd=late_job)
    assert answer.returncode == 0
    assert answer.stderr.splitlines()[1:] == ["late: b.json:L1 the frontier had passed 2024-01-01T00:00:50Z"]


def test_why_tells_that_an_event_is_late_and_calls_no_operator(late_job: Path):
    (late_job / "totals.py").write_text("raise SystemExit('it was called')\n")
    for rule in ("next_to_a", "totals"):
        answer = spark_pace("why", "job.yaml", "files", "--rule", rule, "--at", "b.json:L1", cwd=late_job)
        assert (answer.returncode, answer.stderr) == (0, "")
        told = "not in the rule's stream: it is late: the frontier had passed 2024-01-01T00:00:50Z"
        assert told in answer.stdout


def without_operator(folder: Path, before: str = "", after: str = "") -> Path:
    """The job without its rule of a Python operator, with a piece of its text replaced."""
    (folder / "rules" / "job_rules.yaml").write_text(JOB_RULES.rsplit("  - ", 1)[0])
    text = JOB.replace("operators: [totals]\n", "").replace(before, after)
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


def test_replay_and_why_of_python_take_the_settings_of_a_job_file_as_the_commands_do(late_job: Path):
    job = without_operator(late_job)
    rules = package.load_rules(job)
    found = package.replay(job, late_job / "files")
    assert found.late.select(["source", "offset"]).to_pylist() == [{"source": "b.json", "offset": 0}]
    assert package.replay(rules, late_job / "files").late.num_rows == 0
    asked = ("--rule", "next_to_a", "--at", "b.json:0")
    answer = package.why(str(job), late_job / "files", rule="next_to_a", at="b.json:0")
    assert spark_pace("why", "job.yaml", "files", *asked, cwd=late_job).stdout == f"{answer}\n"


@pytest.mark.parametrize("ordering", ["watermark", "sources, idle_after: 1 min, source_column: type"])
def test_of_a_table_a_job_file_drops_repeats_and_heartbeats_and_no_row_is_late(job_file: Path, ordering: str):
    job = without_operator(job_file, "delay: 10 s", f"delay: 10 s, ordering: {ordering}")
    text = job.read_text().replace("kind: files, format: json, path: elsewhere", KAFKA)
    job.write_text(text)
    events = [json.loads(line) for line in JOB_EVENTS.splitlines()]
    late = {"t": "2023-12-31T00:00:00Z", "type": "b", "x": 7}
    for table in ([*events, late], pa.Table.from_pylist([*events, late]).to_pandas().astype({"x": "Int64"})):
        found = package.replay(job, table)
        assert found.stats | {"events": 3, "heartbeats": 1, "repeats": 1, "late": 0} == found.stats
        (events_of_match,) = found.matches["events"].to_pylist()
        assert [event["offset"] for event in events_of_match] == [0, 3]
        answer = package.why(job, table, rule="next_to_a", at="table:2")
        assert "repeat" in str(answer)

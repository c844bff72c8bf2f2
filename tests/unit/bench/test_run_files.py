"""Run files of the load driver: what is wrong in them is told in one line, and those of conf/bench work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from spark_pace.core.local_run import run as run_core
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import ConfigError, SetupError
from spark_pace.job_file import read_job
from spark_pace_bench import command
from spark_pace_bench.job import DrivenJob
from spark_pace_bench.records import make_records
from spark_pace_bench.run_file import KEYS, read_run_file
from spark_pace_bench.schedule import schedule
from spark_pace_bench.spec import RunSpec
from spark_pace_bench.targets import Folder
from tests.unit.bench.test_load_driver import JOB, RULES, RUN, run_of

CONF = Path(__file__).parents[3] / "conf" / "bench"
RUN_FILES = sorted(path for path in CONF.glob("*.yaml") if "\nphases:" in path.read_text())
EVEN = "{name: even, seconds: 2, rate: 100}"
WRONG = [
    ("seed: 3", "sede: 3", '11 sede — must be a known key; got "sede". Did you mean "seed"?'),
    (
        "job: job.yaml",
        "job: none.yaml",
        '3 job — must name a job file; got none at "none.yaml". '
        "Correct the path; it is relative to the run file.",
    ),
    (
        EVEN,
        "{name: even, seconds: 2, rate: [1, 2, 3]}",
        "8 phases[1].rate — must be one rate, or the first and the last; got a list of 3. "
        "Write for example rate: [100, 1000].",
    ),
    (
        EVEN,
        "{name: even, seconds: 0, rate: 100}",
        "8 phases[1] — must send one event or more; got a phase without events. "
        "Make it longer, or raise its rate.",
    ),
    (
        EVEN,
        "{name: warm, seconds: 2, rate: 100}",
        '8 phases[1] — must have a name of its own; got "warm". Rename one.',
    ),
    (
        EVEN,
        "{name: even, seconds: 2, rate: 100, role: warm_up}",
        "9 phases[2] — must follow a steady phase, which it is compared with; got none. "
        "Put a steady phase in front of it.",
    ),
    (
        ", role: recovery}",
        ", role: warm_up}",
        "9 phases[2] — must be followed by its recovery; got none. "
        "Put a phase with role: recovery behind it.\n"
        "10 phases[3] — must stand in front of all that is measured; got a warm_up behind it. "
        "Put it in front, or leave out role.",
    ),
    (
        "rate: 150, role: peak",
        "rate: 150",
        "10 phases[3] — must follow a peak; got a recovery from nothing. Add a peak, or leave out role.",
    ),
    (
        "{uniform: [0, 1]}",
        "{uniform: [1, 0]}",
        "5 events.generate.x.uniform — must be the least and the greatest value, as in [1, 1000]; "
        "got a list of 2. Correct the numbers.",
    ),
    (
        "x: {uniform: [0, 1]}",
        "y: {uniform: [0, 1]}",
        "5 events.generate — must say how x is made; got nothing. Add for example x: {uniform: [1, 1000]}.\n"
        '5 events.generate.y — must be an attribute of the job\'s events; got "y". '
        "Use one of: number, name, x.",
    ),
    (
        "number: {counter: [5, 2]}",
        "number: {normal: [5, 2]}",
        '5 events.generate.number.normal — must be a way to make a BIGINT; got "normal". '
        "Use one of: uniform, choice, constant, counter.",
    ),
    (
        "events:\n",
        "rules: [pairs]\nevents:\n",
        '4 rules[0] — must be a rule of the job; got "pairs". Did you mean "pair"?',
    ),
    (
        "seed: 3",
        "variants: [{name: a, seed: 1}]",
        '11 variants[0].seed — must be a known key; got "seed". '
        "Use one of: name, job, rules, copies, phases, events.",
    ),
    (
        "  - {name: even, seconds: 2, rate: 100}",
        "  - {name: even, seconds: 2, rate: 100}\n  - {name: long, seconds: 86400, rate: 1000}",
        "6 phases — must send at most 20,000,000 events; got 86,400,600. "
        "Shorten the phases, or lower their rates.",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG, ids=[wrong for _, wrong, _ in WRONG])
def test_what_is_wrong_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB % "json")
    Path("rules.yaml").write_text(RULES)
    assert right in RUN
    Path("run.yaml").write_text(RUN.replace(right, wrong))
    with pytest.raises(ConfigError) as caught:
        read_run_file("run.yaml")
    told = [str(problem).removeprefix("run.yaml:").split(" ", 1) for problem in caught.value.problems]
    assert "\n".join(f"{place.split(':')[0]} {rest}" for place, rest in told) == message


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("trigger: 1 s", "", "goes on; got one with trigger: available_now. Give it a trigger such as 1 s."),
        ("format: json", "format: parquet", "reads JSON or CSV; got one that reads parquet. Choose another"),
        (
            "{kind: files, format: json, path: events}",
            "{kind: kafka, format: json, servers: 'localhost:1', topics: [a, b]}",
            "reads one topic; got one that reads 2. Name one in its source.topics.",
        ),
        (
            "{kind: files, format: json, path: events}",
            "{kind: delta, path: events}",
            "reads JSON or CSV; got one that reads parquet. Choose another",
        ),
    ],
)
def test_a_job_that_cannot_be_driven_is_refused(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    (tmp_path / "job.yaml").write_text((JOB % "json").replace(right, wrong))
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "run.yaml").write_text(RUN)
    with pytest.raises(ConfigError, match="must name a job that " + message):
        read_run_file(tmp_path / "run.yaml")


def test_a_job_that_joins_tables_is_refused(tmp_path: Path) -> None:
    rules = RULES.replace(
        "event_time: t", "event_time: t, lookup: {more: {path: a, on: number, schema: x INT}}"
    )
    (tmp_path / "job.yaml").write_text(JOB % "json")
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "run.yaml").write_text(RUN)
    with pytest.raises(ConfigError, match="must name a job that joins no tables"):
        read_run_file(tmp_path / "run.yaml")


def test_a_replayed_file_must_be_long_enough(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"t": "2024-01-01T00:00:00Z", "number": 1}\n')
    events = "events: {replay: {path: old.json}}\nphases:"
    run = run_of(tmp_path, text=RUN.split("events:")[0] + events + RUN.split("phases:")[1])
    with pytest.raises(ConfigError, match="must have the 2 events that the phases send; got 1"):
        make_records(run, 2)


def test_a_variant_takes_the_place_of_what_the_file_says(tmp_path: Path) -> None:
    phases = "phases: [{name: one, seconds: 1, rate: 5}]"
    variants = f"variants:\n  - {{name: plain}}\n  - {{name: many, copies: 3, rules: 1, {phases}}}\n"
    run_of(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN + variants)
    plain, many = read_run_file(tmp_path / "run.yaml")
    assert (plain.variant, plain.copies, len(plain.phases), plain.rules) == ("plain", 1, 4, None)
    assert (many.variant, many.copies, len(many.phases), many.rules) == ("many", 3, 1, ("pair",))


def test_the_job_that_runs_is_a_copy_with_its_own_places(tmp_path: Path) -> None:
    run_of(tmp_path)
    (tmp_path / "run.yaml").write_text(RUN + "copies: 2\n")
    (run,) = read_run_file(tmp_path / "run.yaml")
    (tmp_path / "out").mkdir()
    job = DrivenJob(run, tmp_path / "out", {})
    job.events.mkdir()
    spec = read_job(job.file)
    assert [rule.name for rule in spec.rules] == ["pair_1", "pair_2"]
    assert spec.files.path == str(tmp_path / "out" / "events")
    assert spec.sink_path == str(job.tables) and spec.checkpoint_path == str(job.checkpoint)
    assert spec.trigger_us == 1_000_000
    assert read_job(tmp_path / "out" / "job_end.yaml").finish


def test_a_job_whose_rules_are_in_a_table_is_not_driven(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    run = run_of(tmp_path / "old")
    rules = yaml.safe_load((tmp_path / "old" / "rules.yaml").read_text())
    [rule] = rules["rules"]
    write_deltalake(tmp_path / "table", pa.table({"name": [rule["name"]], "text": [json.dumps(rule)]}))
    job = yaml.safe_load(run.job_file.read_text())
    of_table = {**job, "events": {**rules["events"], **job.get("events", {})}, "rules": {"table": "table"}}
    (tmp_path / "job.yaml").write_text(json.dumps(of_table))
    (tmp_path / "run.yaml").write_text(RUN)
    [run] = read_run_file(tmp_path / "run.yaml")
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="must name rule files to be driven; got a table of rules"):
        DrivenJob(run, tmp_path / "out", {})


@pytest.mark.parametrize("path", RUN_FILES, ids=lambda path: path.stem)
def test_a_run_file_of_the_project_has_matches_of_each_rule(path: Path, tmp_path: Path) -> None:
    runs = read_run_file(path)
    assert len({run.variant for run in runs}) == len(runs)
    assert max(sum(phase.seconds for phase in run.phases) for run in runs) <= 30
    run = runs[0]
    found = matches_of(run, tmp_path / "events")
    names = [rule.name for rule in run.job.rules if run.rules is None or rule.name in run.rules]
    assert {name: (found["rule"].to_pylist().count(name) > 0) for name in names} == dict.fromkeys(names, True)


def test_the_documents_have_every_key_and_every_run_file() -> None:
    text = (CONF.parents[1] / "docs" / "sizing.md").read_text()
    assert [key for key in KEYS if f"| `{key}` |" not in text] == ["name"]
    assert [path.name for path in RUN_FILES if f"`conf/bench/{path.name}`" not in text] == []


def matches_of(run: RunSpec, folder: Path, most: int = 8_000) -> pa.Table:
    """What the core finds in the first events of a run."""
    due_us = (schedule(run.phases, run.seed).due[:most] * 1e6).astype(np.int64)
    target = Folder(folder, make_records(run, len(due_us)), 0.1)
    target.send(0, due_us)
    rules = tuple(rule for rule in run.job.rules if run.rules is None or rule.name in run.rules)
    return run_core(build_plan(rules, order=run.job.events.order), [target.events(folder)]).matches


def test_without_the_packages_of_the_driver_the_command_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "psutil" else name)
    message = (
        r"^spark-pace bench — must be installed with what the driver needs; got no psutil\. "
        r"pip install 'spark-pace\[bench\]' brings it\.$"
    )
    with pytest.raises(SetupError, match=message):
        command.bench_command(CONF / "burst.yaml", None, ())

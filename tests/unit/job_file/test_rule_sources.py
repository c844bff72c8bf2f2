"""Where the rules of a job may come from: files, folders and Delta tables; see the golden bad files too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.errors import ConfigError
from spark_pace.job_file import JobSpec, check_files, read_job, rule_sources
from spark_pace.rules.document import MAX_BYTES
from spark_pace.rules.rule_file import MAX_RULES

EVENTS = 'events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}\n'
JOB = """
name: test
source: {kind: files, format: json, path: in}
RULES
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
"""
TEXT = "pattern: {sequence: [a: x > 5]}"


def job(folder: Path, rules: str, events: str = EVENTS) -> JobSpec:
    (folder / "job.yaml").write_text(events + JOB.replace("RULES", f"rules: {rules}"))
    return read_job(folder / "job.yaml")


def problems(folder: Path, rules: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        job(folder, rules)
    assert list(caught.value.problems) == check_files([folder / "job.yaml"])
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def table(folder: Path, **columns: Any) -> None:
    write_deltalake(folder / "rules", pa.table(columns))


def names(spec: JobSpec) -> list[str]:
    return [rule.name for rule in spec.rules]


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "rules" / "below").mkdir(parents=True)
    for name in ("b.yaml", "a.yml", ".hidden.yaml", "notes.md", "below/c.yaml", "Z.yaml", "d.yaml.bak"):
        rule = Path(name).stem.strip(".").lower()
        (tmp_path / "rules" / name).write_text(f"rules:\n  - {{name: {rule}, {TEXT}}}\n")
    (tmp_path / "first.yaml").write_text(f"rules:\n  - {{name: first, {TEXT}}}\n")
    assert names(job(tmp_path, "[first.yaml, rules]")) == ["first", "z", "a", "b"]


def test_a_folder_with_the_job_file_in_it_is_refused(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, '["."]')
    assert "must name a rule file; got the job file itself" in problem


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules").mkdir()

    def refused(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(rule_sources.os, "listdir", refused)
    assert problems(tmp_path, "[rules]") == [
        "job.yaml:5:9 rules[0] — must be a folder that can be read; got permission denied. Check its rights."
    ]


def test_a_table_gives_its_rules_in_the_order_of_their_names(tmp_path: Path) -> None:
    over = "from: [first, events]\npattern: {sequence: [a: x > 7]}"
    named = "name: first\nemit: {x: a.x}\n" + TEXT
    table(tmp_path, name=["second", "first", "off"], text=[over, named, TEXT], enabled=[None, True, False])
    spec = job(tmp_path, "{table: rules}")
    assert names(spec) == ["first", "second"] and spec.paused == ("off",)
    assert [one.name for one in spec.rules[1].reads] == ["first", "events of second"]


def test_a_table_need_not_say_which_rules_run(tmp_path: Path) -> None:
    table(tmp_path, name=["one", "two"], text=[TEXT, f"enabled: false\n{TEXT}"], by=["me", "you"])
    spec = job(tmp_path, "{table: rules}")
    assert names(spec) == ["one"] and spec.paused == ("two",)


def test_a_problem_is_at_the_line_of_its_text(tmp_path: Path) -> None:
    table(tmp_path, name=["a\x1b" * 50], text=[f"description: wrong\n{TEXT.replace('x', 'y')}"])
    shown = r"a\x1b" * 40 + "…"
    assert problems(tmp_path, "{table: rules}") == [
        f"rules[{shown}]:1:1 name — must be a letter, then letters, digits and _ (64 at most); "
        f'got "{shown}". Rename the rule.',
        f"rules[{shown}]:2:25 pattern.sequence[0].a — must name an attribute of the events; "
        'got "y". Use one of: t, x. If it is a text, write '
        "'y' in quotes.",
    ]


def test_a_table_has_no_more_than_a_rule_file_may_hold(tmp_path: Path) -> None:
    table(tmp_path, name=["long"], text=["# long\n" * MAX_BYTES])
    assert problems(tmp_path, "{table: rules}") == [
        "rules[long]:1:1 — must be at most 1 MiB; got a longer text. Shorten it."
    ]
    rows = {"name": [f"r{number}" for number in range(MAX_RULES + 1)], "text": [TEXT] * (MAX_RULES + 1)}
    write_deltalake(tmp_path / "rules", pa.table(rows), mode="overwrite")
    [problem] = problems(tmp_path, "{table: rules}")
    assert problem == (
        f"job.yaml:5:16 rules.table — must hold at most {MAX_RULES} rules; got more. "
        "Run them as several jobs."
    )


def test_a_table_that_is_damaged_is_named(tmp_path: Path) -> None:
    table(tmp_path, name=["one"], text=[TEXT])
    [file] = (tmp_path / "rules").glob("*.parquet")
    os.remove(file)
    [problem] = problems(tmp_path, "{table: rules}")
    assert problem.startswith("job.yaml:5:16 rules.table — must be a table that can be read; got ")
    assert problem.endswith(". Check the path and the way to it.") and file.name in problem

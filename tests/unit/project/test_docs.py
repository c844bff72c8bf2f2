"""What the documents show is what happens: snippets run, tables equal the golden cases, named files exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import spark_pace
from spark_pace.job_file.alerts import TARGET_KEYS
from spark_pace.job_file.keys import known, names
from spark_pace.job_file.reader import JOB_KEYS
from spark_pace.job_file.source import KINDS
from spark_pace.job_file.spec import Parallelism
from spark_pace.rules import load_rules
from spark_pace.rules.cost import METHODS
from spark_pace.rules.execution import IN_ORDER, IN_SPANS, explain_as_json
from spark_pace.rules.schema import OF_JOBS, PRESETS, SCHEMA_KEYS
from tests.support.documents import RULE_PAGES, fences
from tests.support.golden_cases import golden_cases, parse_events, parse_matches
from tests.support.written import write_tables

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#:]+)\)")
NAMED = re.compile(r"`((?:spark_pace|spark_pace_bench|tests|conf|jobs|examples|benchmarks)/[\w/.-]*)`")
CASES = {case.name: case for case in golden_cases()}


def table_rows(document: Path, first_header: str) -> list[dict[str, str]]:
    """The rows of every table whose first header is that, as header to cell."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for line in document.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not header:
            header = cells if cells[:1] == [first_header] else []
        elif not cells:
            header = []
        elif not set(cells[0]) <= {"-"}:
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


SHOWN = table_rows(ROOT / "docs" / "semantics.md", "case")


def test_the_snippets_of_the_readme_run(tmp_path: Path):
    commands = 0
    for fence in fences(ROOT / "README.md"):
        if fence.file:
            (tmp_path / fence.file).write_text(fence.text)
        elif fence.language == "console":
            command, _, output = fence.text.partition("\n")
            assert run(command.removeprefix("$ "), tmp_path) == output
            commands += 1
        elif fence.language == "python":
            subprocess.run([sys.executable, "-c", fence.text], cwd=tmp_path, check=True)
            commands += 1
    assert commands == 3


def test_the_sessions_of_the_rules_run(tmp_path: Path):
    """With the files of the README."""
    for fence in fences(ROOT / "README.md"):
        if fence.file:
            (tmp_path / fence.file).write_text(fence.text)
    shown = [fence for fence in fences(ROOT / "docs" / "rules" / "explain.md") if fence.language == "console"]
    assert len(shown) == 2
    for fence in shown:
        command, _, output = fence.text.partition("\n")
        assert run(command.removeprefix("$ "), tmp_path) == output


def test_the_session_of_the_row_patterns_runs(tmp_path: Path):
    shown = fences(ROOT / "docs" / "match_recognize.md")
    for fence in shown:
        if fence.file:
            (tmp_path / fence.file).write_text(fence.text)
    (session,) = (fence for fence in shown if fence.language == "console")
    command, _, output = session.text.partition("\n")
    assert run(command.removeprefix("$ "), tmp_path) == output


def test_the_job_of_the_readme_is_right(tmp_path: Path):
    for fence in fences(ROOT / "README.md"):
        if fence.file:
            (tmp_path / fence.file).write_text(fence.text)
    assert run("spark-pace check job.yaml", tmp_path) == "1 file: no problems\n"


def test_the_tables_of_the_operations_are_read_as_they_say(tmp_path: Path):
    """They are those that a job with the README's rules writes of its events."""
    for fence in fences(ROOT / "README.md"):
        if fence.file:
            (tmp_path / fence.file).write_text(fence.text)
    write_tables(tmp_path / "out" / "cards", tmp_path / "rules.yaml", tmp_path / "events.json")
    shown = [
        fence for fence in fences(ROOT / "docs" / "operations.md") if fence.language in ("console", "python")
    ]
    for fence in shown:
        if fence.language == "python":
            subprocess.run([sys.executable, "-c", fence.text], cwd=tmp_path, check=True)
        else:
            command, _, output = fence.text.partition("\n")
            assert run(command.removeprefix("$ "), tmp_path) == output
    assert [fence.language for fence in shown] == ["console", "console", "python"]


def test_the_snippets_for_python_run(tmp_path: Path):
    shown = [fence.text for fence in fences(ROOT / "docs" / "python.md") if fence.language == "python"]
    assert len(shown) == 3
    subprocess.run([sys.executable, "-c", "\n".join(shown)], cwd=tmp_path, check=True)


def run(command: str, directory: Path) -> str:
    program, *arguments = shlex.split(command)
    return subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row["case"])
def test_a_row_of_the_semantics_is_a_golden_case(row: dict[str, str]):
    for header, cell in row.items():
        if header in ("case", "rule", "stream"):
            continue
        if header == "fields":
            assert yaml.safe_load(f"[{cell}]") == CASES[row["case"]].beside["fields"]
            continue
        context = "" if header == "matches" else "-" + header.replace(", ", "-").replace(" ", "-")
        case = CASES[row["case"] + context]
        assert case.events == parse_events(row["stream"])
        shown = parse_matches(cell)
        assert [events for _, events in shown] == [events for _, events in case.matches]
        assert all(
            said in (None, selection) for (said, _), (selection, _) in zip(shown, case.matches, strict=True)
        )


def test_the_semantics_show_all_contexts():
    assert len(SHOWN) > 10
    assert len([name for name in SHOWN[0] if name not in ("case", "stream")]) == 10


EXPLAINED = """
events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}
rules:
  - {name: low, pattern: {sequence: [a: x = 1, b: x = 2]}, where: a.x < b.x, within: 5 s, emit: {x: a.x}}
  - {name: high, from: low, pattern: {sequence: [a: x = 1]}}
"""


def keys_in(told: Any, before: str = "") -> Iterator[str]:
    """The keys of what `explain` gives, such as ``cost.search``, those of objects inside too."""
    for key, value in told.items() if isinstance(told, dict) else ():
        yield before + key
        for held in value if isinstance(value, list) else [value]:
            yield from keys_in(held, f"{before}{key}.")


def test_the_keys_and_words_of_explain_are_all_told():
    """A key stands in the row of its own, or in that of an object which holds it."""
    told = {
        key: row["holds"]
        for row in table_rows(ROOT / "docs" / "rules" / "explain.md", "key of the object")
        for key in re.findall("`([^`]+)`", row["key of the object"])
    }
    keys = {key for rule in load_rules(EXPLAINED) for key in keys_in(explain_as_json(rule))}
    assert len(keys) > 40
    for key in keys - told.keys():
        parents = [key.rsplit(".", number)[0] for number in range(1, key.count(".") + 1)]
        row = next(parent for parent in parents if parent in told)
        assert f"`{key.rpartition('.')[2]}`" in told[row], f"{key} in the row {row}"
    assert [method for method in METHODS if f"`{method}`" not in told["cost.search"]] == []
    assert [place for place in (IN_ORDER, IN_SPANS) if f"`{place}`" not in told["conditions"]] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_names_only_what_exists(document: Path):
    text = document.read_text()
    missing = [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    missing += [name for name in NAMED.findall(text) if "*" not in name and not (ROOT / name).exists()]
    assert missing == []


def test_the_architecture_says_what_to_open_first_for_at_least_twelve_changes():
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split("| to change | open first | then |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    first = [re.findall(r"`((?:spark_pace|spark_pace_bench|benchmarks)/[\w/.]+)`", row[1]) for row in rows]
    assert len(rows) >= 12 and all(first)
    assert [name for names in first for name in names if not (ROOT / name).exists()] == []


def test_where_over_a_group_chooses_among_candidates_as_the_rules_say():
    (text,) = (
        fence.text for fence in fences(ROOT / "docs" / "rules.md") if "small_orders_only" in fence.text
    )
    kinds = zip(("order", "order", "payment"), (100.0, 1.0, 50.0), strict=True)
    events = [
        {"time": f"2024-01-01T00:00:0{second}Z", "kind": kind, "amount": amount}
        for second, (kind, amount) in enumerate(kinds)
    ]
    found = spark_pace.replay(text, events).matches
    assert found.by_rule == {"payment": 1, "small_order": 1}
    assert found["orders"].drop_null().to_pylist() == [1]
    only_small = spark_pace.replay(text, events[1:]).matches
    assert only_small.by_rule == {"payment": 1, "small_order": 1, "small_orders_only": 1}


def test_a_table_of_the_rules_has_every_key_of_a_job():
    text = "\n".join(page.read_text() for page in RULE_PAGES)
    keys = {
        *JOB_KEYS,
        *OF_JOBS,
        *SCHEMA_KEYS,
        *(key for kind in KINDS.values() for key in names(known(kind))),
        *names(known(Parallelism)),
        *TARGET_KEYS,
    }
    assert len(keys) > 35
    assert [key for key in sorted(keys) if not re.search(rf"^\|.*`{key}[`:]", text, re.MULTILINE)] == []


def test_the_presets_of_lines_of_text_are_shown_as_they_are():
    shown = [
        yaml.safe_load(fence.text)
        for fence in fences(ROOT / "docs" / "rules" / "events.md")
        if fence.text.startswith("# preset: ")
    ]
    presets = [PRESETS[name] for name in ("syslog", "combined")]
    assert [set(form) for form in shown] == [{"text", "timestamp_format"}] * 2
    regexes = [form["text"]["regex"] for form in shown]
    assert regexes == [presets[0].regex, [*presets[1].regexes]]
    assert [tuple(form["timestamp_format"]) for form in shown] == [preset.time_formats for preset in presets]
    assert [name for name, preset in PRESETS.items() if preset.regex] == ["syslog", "combined"]

"""The page that compares us with others: our rules give what it shows, the others' results were measured."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest
import yaml

from benchmarks.compared import (
    ENGINES,
    PAGE,
    PEERS,
    RESULTS,
    Section,
    events_of,
    ids_of,
    methods,
    sections,
    shown,
    tidy,
)
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.support.golden_cases import GoldenCase, parse_events
from tests.support.results import from_core, table_of

SECTIONS = sections(PAGE.read_text())
MEASURED = json.loads(RESULTS.read_text())


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_rule_gives_what_the_page_shows(section: Section) -> None:
    (written,) = yaml.safe_load(section.texts["yaml"])
    cells = {row: cell for row, cell in section.shown.items() if row.startswith("spark_pace")}
    assert "spark_pace" in cells
    for row, cell in cells.items():
        changed = yaml.safe_load(row.removeprefix("spark_pace").strip(", `")) or {}
        assert matches_of(section, written | changed) == cell


def matches_of(section: Section, written: dict[str, Any]) -> str:
    case = GoldenCase(section.name, written, parse_events(section.stream), (), {}, {})
    rule = case.load_rule()
    result = run(build_plan([rule], order=OrderSpec(3_600_000_000)), [table_of(rule, case.events)])
    ids = ids_of(section.stream)
    matches = [
        [ids[offset] for *_, offset in row["events"]] or [str(value) for value in row["fields"].values()]
        for row in from_core(rule, result.matches)
    ]
    return shown(tidy(matches, ids))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_others_were_given_the_same_stream(section: Section) -> None:
    events = [{**event.row, "time": event.time // 1000} for event in parse_events(section.stream)]
    assert events_of(section.stream) == events


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_others_gave_what_the_page_shows(section: Section) -> None:
    assert [row for row in section.shown if not row.startswith("spark_pace")] == list(ENGINES)
    measured = {engine: MEASURED.get(section.name, {}).get(engine) for engine in ENGINES}
    for engine, (language, _) in ENGINES.items():
        if language not in section.texts:
            assert measured[engine] is None
            assert section.shown[engine].startswith("–")
            continue
        matches = measured[engine]["matches"]
        assert measured[engine] == section.entry(engine, matches), "run `make compared`"
        assert section.shown[engine] == shown(matches)


def test_the_page_shows_the_patterns_that_were_run() -> None:
    written = {name: " ".join(textwrap.dedent(body).split()) for name, body in methods().items()}
    on_page = {s.name: " ".join(s.texts["java"].split()) for s in SECTIONS if "java" in s.texts}
    assert on_page == written


def test_the_results_are_those_of_the_page() -> None:
    assert list(MEASURED) == [section.name for section in SECTIONS]
    assert len(SECTIONS) >= 15


def test_the_page_names_the_versions_that_were_run() -> None:
    pom = (PEERS / "pom.xml").read_text()
    text = PAGE.read_text()
    for engine in ("Flink", "Esper"):
        (version,) = re.findall(rf"<{engine.lower()}\.version>(.*)</", pom)
        assert re.findall(rf"{engine} (\d+\.\d+\.\d+)", text) == [version]

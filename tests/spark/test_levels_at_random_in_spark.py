"""Random rules over rules in jobs that are stopped between batches and in them: the core's matches."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from spark_pace.core.plan.lower_rules import handing_on, levels_of, over_input
from spark_pace.core.plan.rule import Rule
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import in_core, make_job, matches, stop_at
from tests.support.graph_strategies import graphs
from tests.support.strategies import ATTRIBUTES
from tests.support.streams import dense

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

GRAPHS = 4  # in each job
FILES, EVENTS = 5, 8  # files of so many events
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in ATTRIBUTES.items())
RULES = f"""
events: {{schema: "{SCHEMA}", event_time: time, tie_break: [id]}}
rules:
  - {{name: all, pattern: {{sequence: [a: "true"]}}}}
"""


def graphs_of(start: int) -> list[list[Rule]]:
    """So many graphs, each with its own names; the same seed, the same graphs."""
    drawn: list[list[Rule]] = []

    @seed(start)
    @settings(
        max_examples=5 * GRAPHS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs())
    def draw(graph: list[Rule]) -> None:
        drawn.append(graph)

    draw()  # the first ones are simple
    return [named(graph, f"g{number}_".__add__) for number, graph in enumerate(drawn[-GRAPHS:])]


def named(rules: list[Rule], rename: Callable[[str], str]) -> list[Rule]:
    """The rules under other names, which none of them mentions but in `from`."""
    known: dict[str, Rule] = {}

    def of(rule: Rule, reader: str) -> Rule:
        if rule.hands_on:
            return replace(rule, name=handing_on(reader, rule.schema).name)
        if rule.name not in known:
            name = rename(rule.name)
            known[rule.name] = replace(rule, name=name, reads=tuple(of(one, name) for one in rule.reads))
        return known[rule.name]

    return [of(rule, "") for rule in rules]


def write_events(folder: Path, start: int) -> None:
    """Files of events near each other, which are less simple than those of other jobs."""
    events = dense(Random(start), FILES * EVENTS)
    for number in range(FILES):
        rows = []
        for event in events[number * EVENTS : (number + 1) * EVENTS]:
            time = datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=event.time)
            z = None if event.row["x"] is None else event.row["x"] + 0.1
            rows.append(json.dumps(event.row | {"time": time.isoformat(), "z": z}))
        (folder / "in" / f"{number}.json").write_text("\n".join(rows) + "\n")


def move(source: Path, target: Path, first: int, last: int) -> None:
    target.mkdir(exist_ok=True)
    for number in range(first, last):
        (source / f"{number}.json").rename(target / f"{number}.json")


def job_of(folder: Path, graphs: list[list[Rule]], slots: int) -> JobSpec:
    path = make_job(folder, rules=RULES, slots=slots, events="delay: 2 s", finish=False)
    path.write_text(path.read_text().replace("tests.spark.jobs", "tests.support.operators"))
    spec = read_job(path)
    rules = [rule for graph in graphs for rule in graph]
    return replace(spec, rules=over_input(rules, spec.events.schema))


def job_with_upper_matches(folder: Path, start: int, slots: int) -> JobSpec:
    """A job whose rules over rules find something.

    What a seed draws depends on the modules that are loaded too, for Hypothesis takes constants from them.
    """
    (folder / "in").mkdir()
    write_events(folder, start)
    for further in range(start, start + 1_000, 50):
        spec = job_of(folder, graphs_of(further), slots)
        levels = levels_of(spec.rules)
        if {levels[row["rule"]] for row in in_core(spec).matches.to_pylist()} - {0}:
            return spec
    raise AssertionError("no rule over rules of twenty seeds has a match")


@pytest.mark.parametrize("start", [2, 12, 14])
def test_random_rules_over_rules_find_in_a_stopped_job_what_the_core_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    chance = Random(start)
    spec = job_with_upper_matches(tmp_path, start, chance.choice([1, 2]))
    arriving, waiting = tmp_path / "in", tmp_path / "waiting"
    first = chance.randrange(1, FILES - 1)
    move(arriving, waiting, first, FILES)
    run_job(spec)
    move(waiting, arriving, first, FILES)
    # a batch without a match does not write `matches`, but every one writes `metrics`
    stop_at(
        monkeypatch, chance.choice(["matches", "metrics"]), "metrics", batch_id=chance.randrange(first, FILES)
    )
    with pytest.raises(Exception, match="the disk is full"):
        run_job(spec)
    monkeypatch.undo()
    run_job(replace(spec, finish=True))
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert found == in_core(spec, whole=True).matches.to_pylist()

"""A parameter context is one object: nothing else in the package knows it by its name."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from spark_pace.core.local_run import run
from spark_pace.core.match.contexts import CONTEXTS, by_name
from spark_pace.core.match.contexts.contexts import ParameterContext
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Context, Rule
from spark_pace.rules import load_rules
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import from_core, table_of

EACH_ZERO = CONTEXTS["each, zero"]
NAMES = [name for name, context in CONTEXTS.items() if name == str(context.value)]
STREAM = (
    "a1=1 a2=2 b1=2 c1=2 a3@5=1 b2@5=1 b3=1 c2=1 a4=2 a5=2 "
    "b4=1 c3=1 b5=2 c4=2 a6=1 c5@40=1 a7=1 b6=1 c6=1 a8@70=1"
)
WHERE = {"where": "a.x = b.x", "within": "10 s"}


def load(context: str, more: dict[str, str]) -> Rule:
    components = [{name: f"type = '{name}'"} for name in "abc"]
    rule = {"name": "r", "pattern": {"sequence": components}, "context": context, **more}
    (loaded,) = load_rules({"events": SCHEMA, "rules": [rule]})
    return loaded


@pytest.mark.parametrize("more", [{"within": "10 s"}, WHERE, {**WHERE, "merge": "detection"}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_a_context_under_another_name_gives_the_same_matches(
    monkeypatch: pytest.MonkeyPatch, name: str, more: dict[str, str]
) -> None:
    copy = replace(CONTEXTS[name], value=Context("copied", "policy"), snoop_name=None)
    monkeypatch.setitem(CONTEXTS, "copied, policy", copy)
    results = []
    for context in (name, "copied, policy"):
        rule = load(context, more)
        events = table_of(rule, parse_events(STREAM))
        plan = build_plan([rule], order=OrderSpec(), lanes=3, least_lane_rows=1)
        for rows in (events.num_rows, 1):
            batches = [events.slice(first, rows) for first in range(0, events.num_rows, rows)]
            results.append(from_core(rule, run(plan, batches).matches))
    assert results[0] and results == [results[0]] * 4


def test_a_copy_may_close_by_its_window_if_the_context_may(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = replace(EACH_ZERO, value=Context("copied", "policy"))
    monkeypatch.setitem(CONTEXTS, "copied, policy", copy)
    pattern = load("copied, policy", {"within": "10 s", "close": "window"}).pattern
    assert pattern is not None and pattern.close == "window"


@pytest.mark.parametrize("name", [field.name for field in fields(ParameterContext)])
def test_a_context_must_say_everything(name: str) -> None:
    said = {field.name: getattr(EACH_ZERO, field.name) for field in fields(ParameterContext)}
    assert ParameterContext(**said) == EACH_ZERO
    del said[name]
    with pytest.raises(TypeError, match=name):
        ParameterContext(**said)


def test_a_context_must_say_what_it_carries_without_a_window() -> None:
    with pytest.raises(ValueError, match="earliest, zero — must have a tail or need within; got neither"):
        replace(CONTEXTS["earliest, zero"], why_within=None)


@pytest.mark.parametrize(
    "other",
    [replace(EACH_ZERO, snoop_name="every"), replace(CONTEXTS["recent"], value=Context("last", "zero"))],
    ids=["by policies", "by Snoop's name"],
)
def test_two_contexts_of_one_name_are_refused(other: ParameterContext) -> None:
    with pytest.raises(ValueError, match="must have names of their own"):
        by_name([EACH_ZERO, CONTEXTS["recent"], other])

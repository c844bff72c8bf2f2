"""Kernels give the oracle's matches as plain Python, too, as they run where no machine code is to be had."""

from __future__ import annotations

import pytest

from spark_pace import ways
from spark_pace.cli.kernels import SEARCHES
from spark_pace.machine_code import kernel
from tests.long.differential.chunk import Tally, a_rule_of_each_kind, run_to_match
from tests.support.golden_cases import golden_cases
from tests.support.row_pattern_cases import difference
from tests.unit.core import test_golden_cases

FIRST = 5  # of the rules: with every 24th one from there on, all kernels run soon


@pytest.mark.parametrize(("step", "clauses"), [(24, 20), pytest.param(1, 200, marks=pytest.mark.long)])
def test_the_source_of_kernels_gives_the_oracles_matches(
    monkeypatch: pytest.MonkeyPatch, step: int, clauses: int
) -> None:
    """For each kind of rules, or for every 24th one and as many more as are needed to run all kernels."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", 1 << 62)
    monkeypatch.setattr(kernel, "kept_code", lambda name: None)
    for one in SEARCHES:
        monkeypatch.setattr(one, "runs", {})
    for case in golden_cases():  # what is rarely drawn
        if case.name.startswith(("three_steps", "optional_last", "folds", "negated_first")):
            test_golden_cases.test_the_core_and_the_oracle_give_the_golden_matches(case)
            test_golden_cases.test_the_core_gives_the_golden_matches_event_by_event(case)
    assert [found for seed in range(clauses) if (found := difference(seed))] == []  # row patterns
    tally = Tally()
    rules = a_rule_of_each_kind(90)
    for number in sorted(range(len(rules)), key=lambda number: (number - FIRST) % step):
        if (number - FIRST) % step == 0 or not all(one.runs for one in SEARCHES):
            tally.add(run_to_match(rules[number], number))
    assert not tally.differing, tally.differing[0]
    assert tally.matched > tally.pairs / 2
    assert not any(any(one.runs.values()) for one in SEARCHES)
    assert [one.function.__name__ for one in SEARCHES if not one.runs] == []

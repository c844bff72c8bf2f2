"""Short runs of the differential test: no pair differs, and every cell that can be filled is."""

from __future__ import annotations

import pytest

from spark_pace import ways
from spark_pace.cli.kernels import KERNELS, use_all
from spark_pace.errors import counted
from tests.long.differential.aims import full_run
from tests.long.differential.choices import WAYS
from tests.long.differential.chunk import Tally, a_rule_of_each_kind, run_to_match
from tests.long.differential.forms import FORMS
from tests.long.differential.table import as_text, empty_cells, impossible, taken_though_impossible


def test_no_pair_of_any_kind_differs() -> None:
    make_all_ahead()
    tally = Tally()
    for number, rule in enumerate(a_rule_of_each_kind(0)):
        tally.add(run_to_match(rule, number))
    assert_right(tally)
    assert {form for _, form in tally.taken} == set(FORMS)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_cell_that_can_be_is_filled_with_a_match() -> None:
    make_all_ahead()
    tally = full_run(start=0, rules=2, tries=60)
    print(f"{counted(tally.pairs, 'pair')}, {tally.matched} with a match\n{as_text(tally.taken)}")
    assert_right(tally)
    assert not empty_cells(tally.taken)


def make_all_ahead() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "FEW_NUMBERS", -1)
        use_all()


def assert_right(tally: Tally) -> None:
    """No pair differs, and what was made ahead as machine code is all that was ever made."""
    assert not tally.differing, tally.differing[0]
    assert tally.matched > tally.pairs / 2
    assert not taken_though_impossible(tally.taken)
    assert [len(one.runs) for one in KERNELS] == [1] * len(KERNELS)
    assert all(any(one.runs.values()) for one in KERNELS)


def test_no_cell_that_is_called_impossible_is_of_an_unknown_way_or_form() -> None:
    assert impossible() <= {(way, form) for way in WAYS for form in FORMS}

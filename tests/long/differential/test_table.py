"""A short run of the differential test: no pair differs, and every way is taken for some form with a match.

So few pairs leave some cells of the table empty; `make differential` demands all of them.
"""

from __future__ import annotations

from tests.long.differential.choices import WAYS
from tests.long.differential.chunk import full_run
from tests.long.differential.forms import FORMS, KINDS_OF_RULES
from tests.long.differential.table import as_text, empty_cells, impossible

MOST_EMPTY = 45  # cells of the kinds of rules that so few pairs may leave empty: a twentieth


def test_no_pair_differs_and_every_way_is_taken_with_a_match() -> None:
    tally = full_run(start=0, rules=3, most=0)
    print(f"{tally.pairs} pairs, {tally.matched} with a match\n{as_text(tally.taken)}")
    assert not tally.differing, tally.differing[0]
    assert tally.matched > tally.pairs / 2
    assert {way for way, _ in tally.taken} == set(WAYS)
    assert {form for _, form in tally.taken} == set(FORMS)
    empty = empty_cells(tally.taken, KINDS_OF_RULES)
    print(len(empty), "empty cells:", empty)
    assert len(empty) <= MOST_EMPTY, empty


def test_no_cell_that_is_called_impossible_is_of_an_unknown_way_or_form() -> None:
    assert impossible() <= {(way, form) for way in WAYS for form in FORMS}

"""A short run of the differential test: no pair differs, and no way is left out of the table."""

from __future__ import annotations

from tests.long.differential.chunk import full_run
from tests.long.differential.table import as_text, empty_cells


def test_no_pair_differs_and_every_way_is_taken_for_every_form() -> None:
    tally = full_run(start=0, rules=3, most=120)
    print(f"{tally.pairs} pairs, {tally.matched} with a match\n{as_text(tally.taken)}")
    assert not tally.differing, tally.differing[0]
    assert tally.matched > tally.pairs / 2
    assert empty_cells(tally.taken) == []

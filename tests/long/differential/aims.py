"""Pairs that are aimed at the cells of the table that others have left empty.

They have rules of the cell's form, and of no form that cannot take its way; and settings that lead to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from random import Random

from spark_pace.core.plan.rule import Rule
from tests.long.differential.choices import ALWAYS, NEVER, SIZES, WAYS, Settings
from tests.long.differential.chunk import KINDS, Tally, count, for_rules, run_chunk, seed_of
from tests.long.differential.forms import FORMS, forms_of
from tests.long.differential.pair import Pair, pair_of
from tests.long.differential.table import Cell, Cells, empty_cells, impossible

ROUND = 8  # rules that are drawn of each kind at once
MOST_ROUNDS = 3
ENOUGH = 3  # rules that fit a cell
SEARCHED: Settings = {"is_much_carried": ALWAYS}
# what leads to where a choice is asked, or a size is read
LEADING: dict[str, Settings] = {
    "is_rid_of_closed": SEARCHED,
    "FIRST_UNRESOLVED": SEARCHED,
    "is_shared": {"is_looked_up": ALWAYS},
}


def full_run(start: int, rules: int, tries: int) -> Tally:
    """A chunk of each kind with so many rules; then pairs for each empty cell, until it is filled.

    Where no rule of a round fills it, those of another round are tried.
    """
    total, known = Tally(), _Known(start)
    for number in range(len(KINDS)):
        total.add(run_chunk(start, number, rules))
    for cell in empty_cells(total.taken):
        tried: list[Rule] = []
        for rounds in range(1, MOST_ROUNDS + 1):
            if total.taken[cell]:  # an aim at another cell may have filled it
                break
            rules_of_cell = [rule for rule in known.fitting(cell, rounds) if rule not in tried]
            total.add(_aimed_at(cell, _likely(rules_of_cell, cell[0], total.taken), start, tries))
            tried += rules_of_cell
    return total


def _likely(rules: Sequence[Rule], way: str, taken: Cells) -> list[Rule]:
    """First those that have a form of which most pairs have taken the way."""
    most = {form: max(taken[other, form] for other in WAYS) for form in FORMS}
    share = {form: taken[way, form] / max(1, most[form]) for form in FORMS}
    return sorted(rules, key=lambda rule: max(share[form] for form in forms_of(rule)), reverse=True)


def _aimed_at(cell: Cell, rules: Sequence[Rule], start: int, tries: int) -> Tally:
    """Pairs of these rules until one with a match takes the way for the form, or so many were tried."""
    tally = Tally()
    for seed, rule in zip(range(start, start + tries), cycle(rules), strict=False):
        count(tally, _led_to(cell[0], pair_of(rule, seed)), f"aimed at {cell}")
        if tally.taken[cell]:
            break
    return tally


@dataclass
class _Known:
    """Rules of all kinds, of which some fit a cell; more are drawn while too few do."""

    start: int
    rules: list[tuple[Rule, set[str]]] = field(default_factory=list)
    rounds: int = 0

    def fitting(self, cell: Cell, rounds: int) -> list[Rule]:
        """Rules of the cell's form, and of no form that cannot take its way, of so many rounds at least."""
        way, form = cell
        unable = {other for other in FORMS if (way, other) in impossible()}
        while True:
            found = [rule for rule, forms in self.rules if form in forms and not forms & unable]
            enough = len(found) >= ENOUGH and self.rounds >= rounds
            if enough or self.rounds == MOST_ROUNDS:
                return found
            self._draw()

    def _draw(self) -> None:
        for number, kind in enumerate(KINDS, self.rounds * len(KINDS)):
            for_rules(kind, seed_of(self.start, number), ROUND, self._add)
        self.rounds += 1

    def _add(self, rule: Rule, _: int) -> None:
        self.rules.append((rule, forms_of(rule)))


def _led_to(way: str, pair: Pair) -> Pair:
    """The pair with settings that lead to a way."""
    name, _, answer = way.partition(": ")
    if name in SIZES:
        said: str | int = Random(pair.seed).choice(SIZES[name])
    else:
        said = ALWAYS if answer == "yes" else NEVER
    return replace(pair, settings={**pair.settings, **LEADING.get(name, {}), name: said})

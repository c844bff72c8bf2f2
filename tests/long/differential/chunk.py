"""Pairs of some rules of one kind: the same seed and number, the same pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Rule
from tests.long.differential.forms import KINDS_OF_RULES, drawn_rules, forms_of
from tests.long.differential.pair import pair_of, smaller
from tests.long.differential.table import empty_cells

STREAMS = 2  # of each rule
RULES = 25  # of each chunk, where nothing else is said
CARRYING = 24  # kinds of rules of which much may be carried: the last ones
KINDS = drawn_rules()


@dataclass
class Tally:
    """What pairs came to.

    Attributes:
        pairs: how many there were.
        matched: how many had a match.
        taken: for each way and form, in how many pairs with a match it was taken.
        forms: in how many pairs with a match each form was.
        differing: what those were that differed.
    """

    pairs: int = 0
    matched: int = 0
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count the others' too."""
        self.pairs += other.pairs
        self.matched += other.matched
        self.taken += other.taken
        self.forms += other.forms
        self.differing += other.differing


def run_chunk(start: int, number: int, rules: int = RULES) -> Tally:
    """The pairs of chunk `number` of the run with the seed `start`."""
    tally = Tally()
    told = f"python -m tests.long.differential --seed {start} --first {number} --pairs 1 --rules {rules}"

    @seed((start << 32) + number)
    @settings(
        max_examples=rules,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[number % len(KINDS)], st.integers(0, 2**32 - 1))
    def compare(rule: Rule, chance: int) -> None:
        for each in range(STREAMS):
            _count(tally, rule, chance + each, told)

    compare()
    return tally


def _count(tally: Tally, rule: Rule, chance: int, told: str) -> None:
    pair = pair_of(rule, chance)
    problem, taken = pair.run()
    tally.pairs += 1
    if pair.expected:
        tally.matched += 1
        forms = forms_of(rule)
        tally.forms.update(forms)
        tally.taken.update((way, form) for way in taken for form in forms)
    if problem:
        least = smaller(pair)
        tally.differing.append(f"{told}\n{least.shown()}\n{least.run()[0]}")


def full_run(start: int, rules: int, most: int) -> Tally:
    """A chunk of each kind, then at most so many more, of kinds that may fill what is empty in the table.

    The last kinds, of which much may be carried, have two chunks at once: the ways of these are seldom taken.
    """
    kinds = [run_chunk(start, number, rules) for number in range(len(KINDS))]
    runs, total = [1] * len(KINDS), Tally()
    for tally in kinds:
        total.add(tally)
    for number in range(len(KINDS) - CARRYING, len(KINDS)):
        total.add(run_chunk(start, number + len(KINDS), 2 * rules))
        runs[number] += 1
    for turn in range(most):
        if not (empty := empty_cells(total.taken, KINDS_OF_RULES)):
            break
        way, form = empty[turn % len(empty)]

        def promises(kind: int, way: str = way, form: str = form) -> float:
            """How often its pairs have the form and take the way, though not both as yet."""
            of_form = kinds[kind].forms[form]
            ways = sum(count for (taken, _), count in kinds[kind].taken.items() if taken == way)
            return of_form * (1 + ways) / runs[kind] ** 2

        kind = max(range(len(KINDS)), key=promises)
        tally = run_chunk(start, kind + runs[kind] * len(KINDS), rules)
        runs[kind] += 1
        kinds[kind].add(tally)
        total.add(tally)
    return total

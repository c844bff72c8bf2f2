"""Pairs of some rules of one kind: the same seed and number, the same pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Rule
from tests.long.differential.forms import drawn_rules, forms_of
from tests.long.differential.pair import Pair, pair_of, smaller

STREAMS = 2  # of each rule; or until one has a match
RULES = 25  # of each chunk, where nothing else is said
KINDS = drawn_rules()


@dataclass
class Tally:
    """What pairs came to.

    Attributes:
        pairs: how many there were.
        matched: how many had a match.
        taken: for each way and form, in how many pairs with a match it was taken.
        differing: what those were that differed.
    """

    pairs: int = 0
    matched: int = 0
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count the others' too."""
        self.pairs += other.pairs
        self.matched += other.matched
        self.taken += other.taken
        self.differing += other.differing


def run_chunk(start: int, number: int, rules: int = RULES) -> Tally:
    """The pairs of chunk `number` of the run with the seed `start`."""
    tally = Tally()
    told = f"python -m tests.long.differential --seed {start} --first {number} --pairs 1 --rules {rules}"

    def compare(rule: Rule, chance: int) -> None:
        for each in range(STREAMS):
            count(tally, pair_of(rule, chance + each), told)

    for_rules(KINDS[number % len(KINDS)], seed_of(start, number), rules, compare)
    return tally


def a_rule_of_each_kind(start: int) -> list[Rule]:
    """The second rule that is drawn of each kind: the first is the simplest."""
    found = list[Rule]()
    for number, kind in enumerate(KINDS):
        drawn = list[Rule]()
        for_rules(kind, seed_of(start, number), 2, lambda rule, _, own=drawn: own.append(rule))
        found.append(drawn[-1])
    return found


def run_to_match(rule: Rule, start: int) -> Tally:
    """Pairs of the rule, with the seeds from `start` on, until one has a match."""
    tally = Tally()
    for each in range(start, start + STREAMS):
        count(tally, pair_of(rule, each), f"the pair of the rule with the seed {each}:")
        if tally.matched:
            break
    return tally


def seed_of(start: int, number: int) -> int:
    """That of the rules of a chunk."""
    return (start << 32) + number


def for_rules(
    kinds: st.SearchStrategy[Rule], start: int, rules: int, call: Callable[[Rule, int], None]
) -> None:
    """Call something with so many rules and the seeds of their streams."""

    @seed(start)
    @settings(
        max_examples=rules,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(kinds, st.integers(0, 2**32 - 1))
    def drawn(rule: Rule, chance: int) -> None:
        call(rule, chance)

    drawn()


def count(tally: Tally, pair: Pair, told: str) -> None:
    """Run a pair, and count it; `told` says how it is run again."""
    problem, taken = pair.run()
    tally.pairs += 1
    if pair.expected:
        tally.matched += 1
        forms = forms_of(pair.rule)
        tally.taken.update((way, form) for way in taken for form in forms)
    if problem:
        least = smaller(pair)
        tally.differing.append(f"{told}\n{least.shown()}\n{least.run()[0]}")

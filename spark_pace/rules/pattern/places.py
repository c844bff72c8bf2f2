"""Checks where repeated, optional and negated components stand in a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from spark_pace.core.plan.rule import Component, Order
from spark_pace.core.plan.shape import alternatives_among
from spark_pace.rules.document import Place, Report, quote


@dataclass(frozen=True)
class Listed:
    """The components of a pattern.

    Attributes:
        order: sequence, conjunction, or disjunction of sequences.
        components: the components in the order of the file.
        leading: the first of them, as long as they are negated, in a sequence.
        sequences: the sequences in a conjunction or disjunction: of each the indices of its components.
        misspelt: True if the key of a conjunction or disjunction was misspelt; `order` is the one meant.
    """

    order: Order
    components: Sequence[Component]
    leading: Sequence[Placed] = ()
    sequences: Sequence[Sequence[int]] = ()
    misspelt: bool = False

    @property
    def alternatives(self) -> Sequence[Sequence[int]]:
        """The alternatives of a disjunction; of other patterns all components."""
        if self.order != "disjunction":
            return (range(len(self.components)),)
        return alternatives_among(len(self.components), self.sequences)

    @property
    def behind(self) -> Sequence[Component]:
        """The components behind the leading ones."""
        return self.components[len(self.leading) :]


@dataclass(frozen=True)
class Placed:
    """A component and its place in the file.

    Attributes:
        component: the component.
        place: its place.
        times: the place of its ``times``, or its own if that is missing.
        within: the place of its ``within``; None if that is missing.
        within_us: the length of time there; None if it is missing or wrong.
    """

    component: Component
    place: Place
    times: Place
    within: Place | None = None
    within_us: int | None = None


def check_places(found: Sequence[Placed], sequence: Place, report: Report) -> None:
    """Report components in places where they are not allowed.

    Args:
        found: the components, in the order of the sequence.
        sequence: the place of the whole sequence.
        report: gets the problems.
    """
    positive = [placed for placed in found if not placed.component.negated]
    if not positive:
        report.add(
            sequence,
            "must have a component that is not negated",
            "negated ones only",
            "A match is made of events: add a component that stands for some.",
        )
        return
    leading = leading_of(found)
    _check_windows(found[len(leading) :], report)
    times = positive[0].component.times
    if leading and times is not None and times.least == 0:
        report.add(
            positive[0].times,
            "must begin at 1 or more behind a negated component in first place",
            quote(str(times)),
            "Where it has no event nothing says what the other forbids: write two rules.",
        )
    _check_follows(found[len(leading) :], report)
    _check_optional_last(found, positive, report)
    _check_neighbours(positive, report)


def leading_of(found: Sequence[Placed]) -> Sequence[Placed]:
    """The components before the first one that is not negated."""
    return [*takewhile(lambda placed: placed.component.negated, found)]


def check_plain(found: Sequence[Placed], order: Order, report: Report) -> None:
    """Report components of a conjunction, or disjunction, that are repeated, negated, or follow others."""
    _check_windows(found, report)
    alone = f"The components of a {order} stand for single events, with any between"
    do = f"{alone}: write a sequence, or two rules."
    for placed in found:
        component = placed.component
        if component.follows == "strict":
            must, got = f'must not have "follows: strict" in a {order}', quote(component.name)
            report.add(placed.place, must, got, do)
        if component.negated or component.times is not None:
            what = "negated" if component.negated else f"times: {component.times}"
            must, got = f"must stand for one event in a {order}", f"{quote(component.name)}, {what}"
            report.add(placed.times, must, got, do)


def _check_windows(found: Sequence[Placed], report: Report) -> None:
    """Report components with a window of their own, which only negated ones in first place have."""
    for placed in found:
        if placed.within is not None:
            report.add(
                placed.within,
                "must belong to a component with not: true in first place of a sequence",
                quote(placed.component.name),
                "Leave it out: for all other components the within of the rule holds.",
            )


def _check_follows(found: Sequence[Placed], report: Report) -> None:
    """Report components that are to follow directly where nothing is, or where something is forbidden."""
    for before, placed in pairwise([None, *found]):
        if placed is None or placed.component.follows != "strict":
            continue
        if before is None and placed.component.times is None:
            report.add(
                placed.place,
                'must not have "follows: strict" in first place',
                quote(placed.component.name),
                "No event of the match comes before it: leave it out.",
            )
        elif before is not None and before.component.negated:
            report.add(
                placed.place,
                'must not have "follows: strict" behind a negated component',
                quote(placed.component.name),
                "No event stands between neighbours that could be forbidden: leave one of the two out.",
            )


def _check_optional_last(found: Sequence[Placed], positive: Sequence[Placed], report: Report) -> None:
    """Report an optional component in last place with nothing before it, or beside a negated one."""
    last = positive[-1]
    times = last.component.times
    if times is None or times.least > 0:
        return
    place = found.index(last)
    if len(positive) == 1:
        report.add(
            last.times,
            "must begin at 1 or more in the only component that is not negated",
            quote(str(times)),
            f"A match has an event: write {_from_one(times.most)}.",
        )
    elif any(one.component.negated for one in found[place - 1 :]):
        report.add(
            last.times,
            "must begin at 1 or more in last place beside a negated component",
            quote(str(times)),
            "Where it has no event nothing says from where, or up to where, the other forbids: write two "
            "rules.",
        )


def _from_one(most: int | None) -> str:
    return "1+" if most is None else "1" if most == 1 else f"1..{most}"


def _check_neighbours(positive: Sequence[Placed], report: Report) -> None:
    """Report repeated or optional components that cannot directly follow another such component."""
    for before, after in pairwise(positive):
        if before.component.times is None or after.component.times is None:
            continue
        got = f"{quote(after.component.name)} after {quote(before.component.name)}"
        if before is positive[0] and before.component.times.least == 0:
            report.add(
                after.times,
                "must stand for one event behind an optional component in first place",
                got,
                "A match begins with that event where the optional one has none: put a component that stands "
                "for one event between them.",
            )
        elif after.component.times.least == 0 and after is positive[-1]:
            report.add(
                after.times,
                "must begin at 1 or more in last place behind a repeated or optional component (negated ones "
                "aside)",
                got,
                "In last place an optional component stands behind one for one event: "
                f"write {_from_one(after.component.times.most)}, or put a component between them.",
            )
        elif after.component.until is not None or after.component.follows == "strict":
            report.add(
                after.times,
                "must have no until and no follows: strict behind a repeated or optional component (negated "
                "ones aside)",
                got,
                "Its events say where the group before ends, and those keys where it ends itself: put a "
                "component that stands for one event between them.",
            )

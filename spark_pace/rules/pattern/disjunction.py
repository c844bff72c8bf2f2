"""Reads disjunctions: a place of a pattern for an event of any of several components; or whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.plan.component import Component, Contiguity, Member
from spark_pace.core.plan.members import disjunction
from spark_pace.rules.document.document import Listing, Mapping, Node, describe
from spark_pace.rules.document.report import Place, Report, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.pattern.places import Placed

DISJUNCTION = "disjunction"
KEYS = ("name", DISJUNCTION, "follows")
_EXAMPLE = "disjunction: [card: kind = 'card', transfer: kind = 'transfer']"
NO_PATTERN = dict.fromkeys(
    ("sequence", "conjunction", "permute"),
    "A component stands for events, not for a pattern: for either of two sequences write a disjunction of "
    "them as the whole pattern, or two rules.",
)
_ELSEWHERE = {
    "not": "For no event of either kind write one component: {name: n, not: true, when: x = 1 or x = 2}.",
    "times": "For several of either kind write one component: {name: g, times: 2+, when: x = 1 or x = 2}.",
    "when": "Each of its components has a condition of its own.",
    **NO_PATTERN,
}


def members_listed(mapping: Mapping, report: Report) -> tuple[Section, Sequence[Node]]:
    """The keys of a disjunction, and the nodes of its members; none if they are no list of two or more."""
    fields = Section(mapping, report, KEYS, _ELSEWHERE)
    node = fields.node(DISJUNCTION)
    if isinstance(node, Listing) and len(node.items) > 1:
        return fields, node.items
    if node is not None:
        got = f"a list of {len(node.items)}" if isinstance(node, Listing) else describe(node)
        must = "must be a list of 2 or more components"
        report.add(node.place, must, got, f"Write for example {_EXAMPLE}.")
    return fields, ()


def check_single(members: Sequence[Placed], report: Report) -> None:
    """Report members that do not stand for one event, follow others, or are disjunctions."""
    for placed in members:
        component = placed.component
        got = quote(component.name)
        if component.members:
            do = "List its components in the outer one."
            report.add(placed.place, "must not be a disjunction in a disjunction", got, do)
        elif component.negated or component.times is not None:
            what = "negated" if component.negated else f"times: {component.times}"
            do = "A disjunction is the place of one event: leave it out, or write two rules."
            report.add(placed.times, "must stand for one event in a disjunction", f"{got}, {what}", do)
        elif component.follows == "strict":
            do = "Write it beside the disjunction: {follows: strict, disjunction: [...]}."
            report.add(placed.place, 'must not have "follows: strict" in a disjunction', got, do)


def check_alternatives(found: Sequence[Placed], sequences: Sequence[Sequence[int]], report: Report) -> None:
    """Report alternatives of a disjunction of sequences that are disjunctions."""
    inside = {index for one in sequences for index in one}
    for index, placed in enumerate(found):
        if placed.component.members and index not in inside:
            got, do = quote(placed.component.name), "List its components in the outer one."
            report.add(placed.place, "must not be a disjunction in a disjunction", got, do)


def as_one(name: str | None, members: Sequence[Placed], place: Place, follows: Contiguity) -> Placed:
    """The one component that a disjunction is; without a name it is called by its members' names."""
    listed = [Member(one.component.name, one.component.predicate, 0) for one in members]
    whole = disjunction(name or " or ".join(member.name for member in listed), listed)
    return Placed(replace(whole, follows=follows), place, place)


def check_members(found: Sequence[Placed], most: int, report: Report) -> None:
    """Report disjunctions and ends of groups that leave the pattern with more than `most` conditions."""
    count = len(found)
    for placed in found:
        component = placed.component
        count += len(component.members) + (component.until is not None)
        if count <= most:
            continue
        if component.members:
            must = f"must leave the pattern with at most {most} components, disjunctions and theirs counted"
            do = "Join conditions by or, as in paid: kind = 'card' or kind = 'cash'; or write two rules."
            report.add(placed.place, must, f"{count}", do)
        if component.until is not None:
            must = f"must leave the pattern with at most {most} components, each until counted as one"
            report.add(placed.place, must, f"{count}", "Leave one out, or write two rules.")


def with_bits(components: Sequence[Component]) -> list[Component]:
    """The components, each end of a group and each member with a bit of its own.

    The bits of ends stand behind those of components, those of members behind all.
    """
    found, bit = list[Component](), len(components)
    for component in components:
        until = None if component.until is None else replace(component.until, bit=bit)
        bit += until is not None
        found.append(replace(component, until=until))
    for place, component in enumerate(found):
        members = tuple(replace(one, bit=bit + index) for index, one in enumerate(component.members))
        bit += len(members)
        found[place] = replace(component, members=members)
    return found

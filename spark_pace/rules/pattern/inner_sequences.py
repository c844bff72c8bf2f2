"""Reads sequences in a conjunction or a disjunction: components of it whose events come in order."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.plan.rule import Order
from spark_pace.rules.document.document import Listing, Mapping, Node
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.document.section import Section

SEQUENCE = "sequence"
_ONLY_COMPONENTS = "Its components have names and conditions, the sequence has none: leave it out."
_ELSEWHERE = {
    **dict.fromkeys(("name", "when", "times", "until", "not", "follows"), _ONLY_COMPONENTS),
    **dict.fromkeys(("within", "where", "contiguity"), "Write it in the rule, beside pattern."),
}


def has_sequence(listing: Node) -> bool:
    """True for a list of which an item is a sequence."""
    return isinstance(listing, Listing) and any(_inner(item) is not None for item in listing.items)


def flattened(
    listing: Listing, most: int, order: Order, report: Report
) -> tuple[Listing | None, Sequence[range]]:
    """All components of the pattern as one list, and the places in it of those of each sequence.

    None for the list if it is reported as too long: it may have `most` components.
    """
    items, sequences = list[Node](), list[range]()
    for item in listing.items:
        inner = _inner(item)
        if inner is None:
            items.append(item)
            continue
        own = _components(item, inner, order, report)
        sequences.append(range(len(items), len(items) + len(own)))
        items += own
    if len(items) > most:
        must = f"must have at most {most} components, those of its sequences counted"
        report.add(listing.place, must, f"{len(items)}", "Leave some out, or write two rules.")
        return None, ()
    return Listing(listing.place, tuple(items)), sequences


def _inner(item: Node) -> Listing | None:
    """The list of a sequence; None if the item is a component, perhaps of that name."""
    node = item.entries.get(SEQUENCE, (None, None))[1] if isinstance(item, Mapping) else None
    return node if isinstance(node, Listing) else None


def _components(item: Node, inner: Listing, order: Order, report: Report) -> list[Node]:
    """The components of a sequence; one inside it is reported, and taken as the advice says."""
    assert isinstance(item, Mapping)
    Section(item, report, (SEQUENCE,), _ELSEWHERE)
    if len(inner.items) < 2:
        do = f"For one component leave the word sequence out: it stands in the {order} itself."
        report.add(inner.place, "must be a list of 2 or more components", f"a list of {len(inner.items)}", do)
    found = list[Node]()
    for each in inner.items:
        nested = _inner(each)
        if nested is not None:
            do = "List its components in the outer one."
            report.add(each.place, "must not be a sequence in a sequence", quote(SEQUENCE), do)
        found += [each] if nested is None else nested.items
    return found

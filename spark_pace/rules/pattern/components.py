"""Reads the components of a pattern, alone or in sequences and disjunctions: names, conditions and times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_pace.core.expr import Aggregate, Expr, conjunction, walk
from spark_pace.core.plan.conditions import conjuncts, named
from spark_pace.core.plan.members import disjunction, names_of
from spark_pace.core.plan.rule import Component, Contiguity, Ending, EventSchema, Member, Order, Times
from spark_pace.core.tables import MOST_COMPONENTS, MOST_IN_OPENED_SPANS
from spark_pace.rules.document import (
    Listing,
    Mapping,
    Node,
    Place,
    Report,
    Scalar,
    Section,
    as_mapping,
    describe,
    quote,
)
from spark_pace.rules.expressions.compile import read_condition
from spark_pace.rules.expressions.parsing import parse_expression
from spark_pace.rules.expressions.scopes import Scope, event_scope, own_group_scope
from spark_pace.rules.lengths import MAX_EVENTS, read_duration
from spark_pace.rules.pattern.places import Listed, Placed, check_places, check_plain, leading_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONG_KEYS = ("name", "when", "times", "until", "not", "follows", "within")
_EXAMPLE = "sequence: [a: x = 1, b: x = 2]"
_ELSEWHERE = {
    "permute": "Write conjunction: its events come in any order.",
    "follows": "Write it in a component, or contiguity: strict in the rule, for all of them.",
    "contiguity": "Write it in the rule, beside pattern.",
    "within": "Write it in the rule, beside pattern.",
    "where": "Write it in the rule, beside pattern.",
}
_RANGE = re.compile(r"([0-9]{1,999})(?:\.\.([0-9]{1,999})|(\+))?")
_GROUP = Times(1, 1)  # used if the key is wrong; still a group, so that no further problem follows
SEQUENCE = "sequence"
_ONLY_COMPONENTS = "Its components have names and conditions, the sequence has none: leave it out."
_NOT_OF_SEQUENCES = {
    **dict.fromkeys(("name", "when", "times", "until", "not", "follows"), _ONLY_COMPONENTS),
    **dict.fromkeys(("within", "where", "contiguity"), "Write it in the rule, beside pattern."),
}
DISJUNCTION = "disjunction"
_ORDERS: dict[str, Order] = {"sequence": "sequence", "conjunction": "conjunction", DISJUNCTION: "disjunction"}
_DISJUNCTION_KEYS = ("name", DISJUNCTION, "follows")
_EITHER = "disjunction: [card: kind = 'card', transfer: kind = 'transfer']"
NO_PATTERN = dict.fromkeys(
    ("sequence", "conjunction", "permute"),
    "A component stands for events, not for a pattern: for either of two sequences write a disjunction of "
    "them as the whole pattern, or two rules.",
)
_NO_KEYS = {
    **dict.fromkeys(("count", "min", "max", "repeat", "quantifier"), "times"),
    **dict.fromkeys(("condition", "where", "if", "filter"), "when"),
    **dict.fromkeys(("negated", "absent"), "not"),
    "contiguity": "Write follows: strict.",
    "optional": "Write times: 0..1.",
    **NO_PATTERN,
}
_NOT_OF_DISJUNCTIONS = {
    "not": "For no event of either kind write one component: {name: n, not: true, when: x = 1 or x = 2}.",
    "times": "For several of either kind write one component: {name: g, times: 2+, when: x = 1 or x = 2}.",
    "when": "Each of its components has a condition of its own.",
    **NO_PATTERN,
}


def read_components(rule: Section, schema: EventSchema, *, opened: bool) -> Listed | None:
    """Read the components; None if their names, which conditions need, cannot be read.

    `opened`: an event opens the rule's span, so that conditions may name it.
    """
    mapping = rule.mapping("pattern", _EXAMPLE)
    if mapping is None:
        return None
    fields = Section(mapping, rule.report, tuple(_ORDERS), _ELSEWHERE)
    if any(key in _ELSEWHERE for key in mapping.entries):
        return None
    order, node = _listing(fields, opened=opened)
    if node is None:
        return None
    most = MOST_IN_OPENED_SPANS if opened else MOST_COMPONENTS
    listed, sequences = (node, ()) if order == "sequence" else flattened(node, most, order, rule.report)
    scope = event_scope(schema, opened=opened, looks_back=True)
    found = None if listed is None else _read_list(listed, scope, rule.report)
    if found is None:
        return None
    check_members(found, most, rule.report)
    components = with_bits([placed.component for placed in found])
    if order != "sequence":
        check_plain(found, order, rule.report)
        if order == "disjunction":
            alone = {*range(len(found))} - {index for one in sequences for index in one}
            check_single([found[one] for one in sorted(alone) if found[one].component.members], rule.report)
        misspelt = order not in mapping.entries
        return Listed(order, components, sequences=sequences, misspelt=misspelt)
    check_places(found, node.place, rule.report)
    leading = leading_of(found)
    return Listed(order, components, leading if len(leading) < len(found) else ())


def _listing(fields: Section, *, opened: bool) -> tuple[Order, Listing | None]:
    """Whether components come in order, and the list of them; None if it is reported as wrong.

    A disjunction of components by itself is a sequence of one component.
    """
    there = [order for order in _ORDERS if fields.has(order)]
    either = "A pattern is one or the other: write two rules."
    if DISJUNCTION in there:
        either = "A pattern is one of them: write two rules, or put the disjunction into the other list."
    fields.refuse(there[1:], either)
    if not there:
        fields.require("sequence", _EXAMPLE)
        there = ["sequence"]
    node, order = fields.node(there[0]), there[0]
    most = MOST_IN_OPENED_SPANS if opened else MOST_COMPONENTS
    if node is None:
        return "sequence", None
    if order == DISJUNCTION and not has_sequence(node):
        place = fields.key_place(DISJUNCTION)
        return "sequence", Listing(place, (Mapping(place, {DISJUNCTION: (place, node)}),))
    if isinstance(node, Listing) and 1 <= len(node.items) <= most:
        return _ORDERS[order], node
    must = f"must be a list of 1 to {most} components{' in a span with open' if opened else ''}"
    do = _EXAMPLE.replace("sequence", order)
    fields.report.add(node.place, must, describe(node), f"Write for example {do}.")
    return "sequence", None


def _read_list(listing: Listing, scope: Scope, report: Report) -> list[Placed] | None:
    found: list[Placed] = []
    for item in listing.items:
        placed = _read_component(item, scope, report)
        if placed is None:
            continue
        known = {name for other in found for name in names_of(other.component)}
        own = names_of(placed.component)
        for name in dict.fromkeys(name for name in own if name in known or own.count(name) > 1):
            report.add(item.place, "must name a component once", quote(name), "Rename one.")
        found.append(placed)
    return found if len(found) == len(listing.items) else None


def _read_component(item: Node, scope: Scope, report: Report) -> Placed | None:
    """Read the short form ``name: predicate`` or the long form with `_LONG_KEYS`; None without a name."""
    mapping = as_mapping(item, report, "a: x = 1")
    if mapping is None:
        return None
    if DISJUNCTION in mapping.entries:
        return _read_disjunction(mapping, scope, report)
    if len(mapping.entries) == 1 and not set(mapping.entries) & set(_LONG_KEYS):
        ((name, (place, node)),) = mapping.entries.items()
        if name in NO_PATTERN and isinstance(node, Listing):
            report.add(place, "must be a component", quote(name), NO_PATTERN[name])
            return None
        _check_name(Scalar(place, name, name, place.column), scope, report)
        return Placed(Component(name, _read_predicate(node, scope, report)), place, place)
    return _read_long(mapping, scope, report)


def _read_disjunction(mapping: Mapping, scope: Scope, report: Report) -> Placed | None:
    """Read ``disjunction: [...]``, with or without a name; None if its members' names cannot be read."""
    fields, items = members_listed(mapping, report)
    name = fields.text("name", "name: payment")
    follows = _read_follows(fields)
    found = [_read_component(item, scope, report) for item in items]
    members = [placed for placed in found if placed is not None]
    if name is not None:
        _check_name(name, scope, report)
    check_single(members, report)
    if not items or len(members) < len(items):
        return None
    return as_one(None if name is None else name.text, members, mapping.place, follows)


def _read_long(mapping: Mapping, scope: Scope, report: Report) -> Placed | None:
    fields = Section(mapping, report, _LONG_KEYS, _NO_KEYS)
    name = fields.text("name", "name: a", "name: and the component's name")
    negated = fields.has("not") and fields.flag("not", True, "Write not: true, and the condition under when.")
    if negated:
        fields.refuse(
            ["times", "until"], "The events of a negated component are forbidden, however many come."
        )
    node = None if negated else fields.node("times")
    times = None if node is None else read_times(node, report)
    until = None if negated else _read_until(fields, scope, grouped=times is not None)
    follows = _read_follows(fields, negated=negated)
    when, further = fields.node("when", "when: and a condition"), None
    if times is not None and name is not None:
        predicate, further = _read_of_group(when, scope, name.text, report)
    else:
        predicate = _read_predicate(when, scope, report)
    if name is None:
        return None
    _check_name(name, scope, report)
    place = mapping.place if node is None else node.place
    within_us = read_duration(fields.node("within"), report)
    component = Component(name.text, predicate, times, negated, follows, until=until, further=further)
    return Placed(
        component,
        mapping.place,
        place,
        fields.key_place("within") if fields.has("within") else None,
        within_us,
    )


def _read_follows(fields: Section, *, negated: bool = False) -> Contiguity:
    """Read ``follows``, which a negated component does not have."""
    follows = fields.choice("follows", ("relaxed", "strict"), "relaxed") == "strict"
    if follows and negated:
        fields.refuse(
            ["follows"],
            "It says that an event of the match directly follows another, and a negated component has none.",
        )
    return "strict" if follows and not negated else "relaxed"


def _read_until(fields: Section, scope: Scope, *, grouped: bool) -> Ending | None:
    """Read ``until``, the condition at which a group ends; None if there is none."""
    if not fields.has("until"):
        return None
    if not grouped:
        do = "It says where a group ends: write times, such as times: 1+, or leave until out."
        if fields.has("times"):
            do = "One event is no group that could end: write times: 1+, or leave until out."
        fields.refuse(["until"], do)
        return None
    return Ending(_read_predicate(fields.node("until"), scope, fields.report), 0)


def _read_predicate(node: Node | None, scope: Scope, report: Report) -> Expr:
    """Read a component's condition; ``true`` if it is missing or wrong."""
    return read_condition(node, scope, report) or conjunction([])


def _read_of_group(
    node: Node | None, scope: Scope, component: str, report: Report
) -> tuple[Expr, Expr | None]:
    """Read a group's condition: what is asked of every event, and what of those behind the first.

    The parts that read the group so far are asked of the latter.
    """
    whole = read_condition(node, own_group_scope(scope, component), report)
    if whole is None:
        return conjunction([]), None
    further = [one for one in conjuncts(whole) if any(isinstance(part, Aggregate) for part in walk(one))]
    if not further:
        return whole, None
    alone = conjunction([one for one in conjuncts(whole) if one not in further])
    return alone, conjunction([named(one, component) for one in further])


def _check_name(name: Scalar, scope: Scope, report: Report) -> None:
    if name.text in {*scope.schema.structs, *scope.names}:
        must = "must not be the name of a STRUCT, or of the opening event, as well"
        do = f"Rename the component: {name.text}.x could mean either."
        report.add(name.place, must, quote(name.text), do)
        return
    if not _NAME.fullmatch(name.text):
        report.add(
            name.place, "must be a name of letters, digits and _", quote(name.text), "Rename the component."
        )
        return
    text = f"{name.text}.x = 1"
    tree = parse_expression(Scalar(name.place, text, text, None), Report())
    usable = isinstance(tree, exp.EQ) and isinstance(tree.this, exp.Column) and tree.this.table == name.text
    if not usable:
        report.add(
            name.place,
            "must not be a word of the expression language",
            quote(name.text),
            "Rename the component.",
        )


def read_times(node: Node, report: Report) -> Times | None:
    """Read a range; None for 1, which is no repetition. A wrong one is reported."""
    match = _RANGE.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    if match is None:
        do = "Write a whole number, a range or a least number with +."
        report.add(node.place, "must be a number of events such as 3, 2..5, 1+ or 0..1", describe(node), do)
        return _GROUP
    least = int(match[1])
    most = None if match[3] else int(match[2] or match[1])
    if max(least, most or 0) > MAX_EVENTS:
        must, do = f"must be at most {MAX_EVENTS} events", "Correct the number."
        report.add(node.place, must, describe(node), do)
        return _GROUP
    if most == 0:
        do = "Write 0..1 or 0+ if there may be none, not: true if there must be none."
        report.add(node.place, "must allow at least one event", describe(node), do)
        return _GROUP
    if most is not None and most < least:
        do = f"Write {most}..{least}."
        report.add(node.place, "must be a range from the smaller number to the greater", describe(node), do)
        return Times(most, least)
    return None if least == most == 1 else Times(least, most)


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
    Section(item, report, (SEQUENCE,), _NOT_OF_SEQUENCES)
    if len(inner.items) < 2:
        do = f"For one component leave the word sequence out: it stands in the {order} itself."
        report.add(inner.place, "must be a list of 2 or more components", describe(inner), do)
    found = list[Node]()
    for each in inner.items:
        nested = _inner(each)
        if nested is not None:
            do = "List its components in the outer one."
            report.add(each.place, "must not be a sequence in a sequence", quote(SEQUENCE), do)
        found += [each] if nested is None else nested.items
    return found


def members_listed(mapping: Mapping, report: Report) -> tuple[Section, Sequence[Node]]:
    """The keys of a disjunction, and the nodes of its members; none if they are no list of two or more."""
    fields = Section(mapping, report, _DISJUNCTION_KEYS, _NOT_OF_DISJUNCTIONS)
    node = fields.node(DISJUNCTION)
    if isinstance(node, Listing) and len(node.items) > 1:
        return fields, node.items
    if node is not None:
        must = "must be a list of 2 or more components"
        report.add(node.place, must, describe(node), f"Write for example {_EITHER}.")
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

"""Reads the key ``from``, the rules that a rule reads, and orders rules so that lower ones come first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.lower_rules import (
    EVENTS,
    MATCH_FIELDS,
    given_by,
    handing_on,
    levels_of,
    name_in_from,
)
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.rules.document.document import Scalar, Section
from spark_pace.rules.document.report import Place, Report, nearest, quote

MOST_LEVELS = 8
MOST_READ = 32


@dataclass
class Entry:
    """A rule of a file before and after it is read.

    Attributes:
        fields: its keys.
        name: its name; None if that is wrong.
        reads: the names in ``from``, in order; empty if it reads the events of the input.
        problems: the number of problems in its name and its ``from``.
        enabled: False if it is paused.
        read: the rule as far as it could be read; None if its attributes are not known.
        rule: the rule, once it is read without a problem.
    """

    fields: Section
    name: Scalar | None
    reads: list[Scalar] = field(default_factory=list)
    problems: int = 0
    enabled: bool = True
    read: Rule | None = None
    rule: Rule | None = None


def read_from(fields: Section) -> list[Scalar]:
    """Read the names in ``from``; none if it names only the events of the input."""
    example = "from: my_rule, or from: [my_rule, other_rule]"
    items = fields.texts("from", example, alone=True)
    if len(items) > MOST_READ:
        place, must = fields.key_place("from"), f"must name at most {MOST_READ} rules"
        fields.report.add(place, must, f"{len(items)}", "Name fewer, or read rules that read them.")
    found: dict[str, Scalar] = {}
    for item in items[:MOST_READ]:
        if found.setdefault(item.text, item) is not item:
            fields.report.add(item.place, "must name a rule once", quote(item.text), "Remove one.")
    return [] if list(found) == [EVENTS] else list(found.values())


def lower_first(entries: Sequence[Entry], report: Report) -> Iterable[Entry]:
    """Each rule after those that it reads; a circle is reported, and its rules come anyway."""
    by_name = {entry.name.text: entry for entry in entries if entry.name is not None}
    _check_names(entries, by_name, report)
    numbers = {id(entry): number for number, entry in enumerate(entries)}
    reads = {
        number: [numbers[id(by_name[item.text])] for item in entry.reads if item.text in by_name]
        for number, entry in enumerate(entries)
    }
    try:
        return [entries[number] for number in TopologicalSorter(reads).static_order()]
    except CycleError as error:
        lower, reader, *_ = circle = [entries[number] for number in error.args[1]]
        names = [one.name.text for one in circle[::-1] if one.name]
        item = next(one for one in reader.reads if by_name.get(one.text) is lower)
        got, do = " reads ".join(map(quote, names)), "Take one of these names out."
        report.add(item.place, "must not lead back to a rule itself", got, do)
        reader.problems += 1
        return entries


def _check_names(entries: Sequence[Entry], by_name: Mapping[str, Entry], report: Report) -> None:
    known = [*by_name, EVENTS]
    reads_events = False
    for entry in entries:
        for item in entry.reads:
            reads_events |= item.text == EVENTS
            if item.text not in known:
                must = f"must name a rule that runs with this one, or {EVENTS}"
                others = [name for name in known if entry.name is None or name != entry.name.text]
                report.add(item.place, must, quote(item.text), nearest(item.text, others))
                entry.problems += 1
    for entry in entries:
        if reads_events and entry.name is not None and entry.name.text.lower() == EVENTS:
            must = f'must be another name than "{EVENTS}", which is the events of the input in a "from"'
            report.add(entry.name.place, must, quote(entry.name.text), "Rename the rule.")
            entry.problems += 1


def lower_rules(entry: Entry, rules: Mapping[str, Rule], schema: EventSchema) -> tuple[Rule, ...] | None:
    """The rules that a rule reads; None if one of them has problems, or must not be read.

    Args:
        entry: the rule.
        rules: the rules without problems, by name.
        schema: the schema of the input's events.
    """
    reader = entry.name.text if entry.name is not None else ""
    found = []
    for item in entry.reads:
        if item.text == EVENTS:
            found.append(handing_on(reader, schema))
        elif item.text in rules:
            found.append(rules[item.text])
    if len(found) < len(entry.reads):
        return None
    before, report = entry.fields.report.count, entry.fields.report
    if found and max(levels_of(found).values()) == MOST_LEVELS:
        must = f"must be at most {MOST_LEVELS} levels above the events of the input"
        do = "Let a rule read several others at once."
        report.add(entry.fields.key_place("from"), must, "more", do)
    for item, rule in zip(entry.reads, found, strict=True):
        if entry.enabled and not rule.enabled:
            do = "Pause this rule too (enabled: false), or take the name out."
            report.add(item.place, "must name rules that are not paused", quote(item.text), do)
        _check_delay(item.place, rule, report)
        _check_attributes(item.place, rule, found, report)
    return None if report.count > before else tuple(found)


def _check_delay(place: Place, rule: Rule, report: Report) -> None:
    if delay_us(rule) is not None:
        return
    must = "must name rules whose matches go out a known time behind their last event"
    got = f"{quote(rule.name)}, whose matches wait for a number of events, or the end of a session"
    do = f"Write within: 5 min, or another length of time, in {rule.name} or its span."
    if delay_us(replace(rule, merge="detection")) is not None:
        do = f"Write merge: detection in {rule.name}."
    report.add(place, must, got, do)


def _check_attributes(place: Place, rule: Rule, reads: Sequence[Rule], report: Report) -> None:
    """Report names that mean one thing in events and another in matches; `check_columns` compares rules."""
    if not rule.hands_on:
        return
    known: dict[str, tuple[str, str, str]] = {
        one.name: (one.name, one.type, "every match") for one in MATCH_FIELDS
    }
    for other in reads:
        if not other.hands_on:
            where = f"the matches of {name_in_from(other)}"
            known |= {name.lower(): (name, kind, where) for name, kind in given_by(other).items()}
    for name, kind in given_by(rule).items():
        other_name, other_kind, where = known.get(name.lower(), (name, kind, ""))
        if where == "every match" or (other_name, other_kind) != (name, kind):
            must = "must read one thing under a name"
            got = f"{other_name} {other_kind} in {where}, {name} {kind} in the events"
            do = "Rename the attribute of the events" + (
                ", or leave out events." if where == "every match" else ", or the field in emit."
            )
            report.add(place, must, got, do)

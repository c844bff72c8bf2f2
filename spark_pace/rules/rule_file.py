"""Reads rule files: returns immutable rules, or every problem of every file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

import yaml

from spark_pace.core.expr import Expr
from spark_pace.core.match.delay import delay_us
from spark_pace.core.plan.conditions import mentions_previous
from spark_pace.core.plan.lower_rules import (
    EVENTS,
    MATCH_FIELDS,
    given_by,
    handing_on,
    levels_of,
    match_schema,
    name_in_from,
    with_what_is_used,
)
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.errors import RuleError
from spark_pace.rules.columns import check_columns, read_emit, read_forgetting, read_partition
from spark_pace.rules.document import (
    Listing,
    Node,
    Place,
    Report,
    Scalar,
    Section,
    TooManyError,
    as_mapping,
    describe,
    nearest,
    parse_document,
    quote,
    read_document,
)
from spark_pace.rules.expressions.compile import read_condition
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.expressions.types import UNKNOWN_EVENTS
from spark_pace.rules.fold import read_fold, says_form
from spark_pace.rules.match_recognize import read_row_rule
from spark_pace.rules.pattern.pattern import read_pattern
from spark_pace.rules.rule_kinds import check_keys, kind_of, read_operator
from spark_pace.rules.schema import IN_JOBS, SCHEMA_KEYS, read_schema, show_schema
from spark_pace.rules.span import check_windows, read_having, read_span

MOST_LEVELS = 8
MOST_READ = 32
RULE_KEYS = (
    "name", "enabled", "description", "from", "filter", "partition_by", "forget_key_after", "pattern",
    "where", "within", "contiguity", "context", "strategy", "close", "merge", "span", "operator", "fold",
    "match_recognize", "emit",
)  # fmt: skip
_IN_LONG_FORM = "It belongs to a component: write {name: b, when: x = 1, %s}."
_IN_PATTERN = "Write filter for all events, or a component of pattern: {sequence: [a: x = 1, b: x = 2]}."
_NO_KEYS = {
    "follows": "Write contiguity: strict, or for one component {name: b, when: x = 1, follows: strict}.",
    "times": _IN_LONG_FORM % "times: 2+",
    "not": _IN_LONG_FORM % "not: true",
    "until": _IN_LONG_FORM % "times: 1+, until: x = 2",
    **dict.fromkeys(("when", "condition"), _IN_PATTERN),
    **dict.fromkeys(("window", "timeout", "duration"), "within"),
    **dict.fromkeys(("select", "output", "fields"), "emit"),
    **dict.fromkeys(("group_by", "key", "keys", "by"), "partition_by"),
    "having": "where",
    **dict.fromkeys(("paused", "disabled", "active"), "Write enabled: false to pause the rule."),
}
MAX_RULES = 1_000
_DECLARE = (
    'Add events: {schema: "time TIMESTAMP, ...", event_time: time}, here or in the job file; '
    "then name that one."
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True)
class _RuleFile:
    """A rule file before its rules are read."""

    keys: Section
    schema: EventSchema | None
    rules: Listing | None


RuleSource = str | Path | dict[str, Any]


def load_rules(
    paths: RuleSource | Sequence[RuleSource], *, events: EventSchema | None = None
) -> tuple[Rule, ...]:
    """Read and check rule files that are to run together, and return the rules that are not paused.

    Args:
        paths: one file or several; a text of several lines counts as the content of a file, and a dict as its
            parsed content. Their rules share one stream of events and one table of matches.
        events: the schema of events, if the files do not declare it.

    Raises:
        RuleError: with the problems of all files, `MOST_PROBLEMS` at most.
    """
    report = Report()
    rules: tuple[Rule, ...] = ()
    with suppress(TooManyError):
        every, _ = read_rules([paths] if isinstance(paths, (str, Path, dict)) else paths, events, report)
        rules = those_that_run(every, Place("rules"), report)
    if not report.clean:
        raise RuleError(report.problems)
    return rules


def read_rules(
    paths: Iterable[RuleSource], events: EventSchema | None, report: Report, rules_apart: Iterable[Node] = ()
) -> tuple[tuple[Rule, ...], EventSchema | None]:
    """Read rules as `load_rules` does, but add problems to `report`.

    Args:
        paths: the files, as for `load_rules`.
        events: the schema of events, if the files do not declare it.
        report: gets the problems.
        rules_apart: rules that stand in no file.

    Returns:
        The rules without problems, paused ones too, and the schema of all; None if none declares it, or it
        is wrong.

    Raises:
        TooManyError: there are too many problems.
    """
    files = [file for path in paths if (file := _open(path, report)) is not None]
    schema = _common_schema(files, events, report)
    names: dict[str, Place] = {}
    nodes = [node for file in files for node in (file.rules.items if file.rules else ())] + [*rules_apart]
    entries = [entry for node in nodes if (entry := _entry(node, names, report)) is not None]
    rules: dict[str, Rule] = {}
    for entry in lower_first(entries, report):
        _read_rule(entry, schema, rules)
    check_columns([(entry.read, entry.name.place) for entry in entries if entry.read and entry.name], report)
    return tuple(entry.rule for entry in entries if entry.rule), schema


def those_that_run(rules: Sequence[Rule], place: Place, report: Report) -> tuple[Rule, ...]:
    """The rules that are not paused; if all are, and nothing is wrong, that is reported at `place`."""
    running = tuple(rule for rule in rules if rule.enabled)
    if rules and not running and report.clean:
        must, do = "must have a rule that is not paused", "Remove enabled: false from one, or stop the job."
        report.add(place, must, "enabled: false in each", do)
    return running


def _open(path: RuleSource, report: Report) -> _RuleFile | None:
    if isinstance(path, dict):
        try:
            path = yaml.safe_dump(path, sort_keys=False, allow_unicode=True)
        except yaml.YAMLError as error:
            do = "Use texts, numbers, true and false, lists and dicts."
            report.add(Place("rules"), "must be a dict that YAML can say", str(error.args[0]), do)
            return None
    is_text = isinstance(path, str) and "\n" in path
    document = parse_document(str(path), "rules", report) if is_text else read_document(path, report)
    root = as_mapping(document, report, "rules: and a list of rules")
    if root is None:
        return None
    if "source" in root.entries or "sink" in root.entries:
        report.add(root.place, "must be a rule file", "a job file", "Name a file that holds rules.")
        return None
    keys = Section(root, report, ("events", "rules"))
    section = keys.mapping("events", "{schema: ..., event_time: ...}")
    schema = None if section is None else read_schema(Section(section, report, SCHEMA_KEYS, IN_JOBS))
    node = keys.node("rules", "rules: and a list of rules")
    if node is not None and not (isinstance(node, Listing) and node.items):
        report.add(
            node.place,
            "must be a list of rules",
            describe(node),
            "Write one or more rules, each with a name.",
        )
    if isinstance(node, Listing) and len(node.items) > MAX_RULES:
        must, got = f"must hold at most {MAX_RULES} rules", f"{len(node.items)}"
        report.add(node.place, must, got, "Run them as several jobs.")
        return None
    return _RuleFile(keys, schema, node if isinstance(node, Listing) else None)


def _common_schema(
    files: Sequence[_RuleFile], events: EventSchema | None, report: Report
) -> EventSchema | None:
    """The schema of events that all files agree on; None if none declares it."""
    common = events
    for file in files:
        if file.schema is None:
            continue
        common = common or file.schema
        if file.schema != common:
            place = file.keys.key_place("events")
            must = f"must declare the same events as the job or the other files: {show_schema(common)}"
            do = "Rules that run together see one stream; keep one declaration."
            report.add(place, must, "another declaration", do)
    if common is None:
        for file in files:
            if not file.keys.has("events"):
                report.add(file.keys.place, "must say what an event looks like", "no events", _DECLARE)
    return common


def _entry(node: Node, names: dict[str, Place], report: Report) -> Entry | None:
    """The entry of a rule, before its values are read; None if the node is no mapping.

    The name is added to `names`, so that a second rule with this name is found.
    """
    mapping = as_mapping(node, report, "- name: and the keys of a rule")
    if mapping is None:
        return None
    before = report.count
    fields = Section(mapping, report, RULE_KEYS, _NO_KEYS)
    name = _read_name(fields, names)
    enabled = fields.flag("enabled", True)
    return Entry(fields, name, read_from(fields), report.count - before, enabled)


def _read_rule(entry: Entry, schema: EventSchema | None, rules: dict[str, Rule]) -> None:
    """Read a rule; if it has no problems, store it in its entry and in `rules`."""
    fields, report = entry.fields, entry.fields.report
    before = report.count
    check_keys(fields, reads=bool(entry.reads))
    reads = None if schema is None else lower_rules(entry, rules, schema)
    if schema is None or reads is None:
        # problems of the events, or of the rules that it reads, were reported
        _read_body(entry, UNKNOWN_EVENTS, ())
        return
    rule = _read_body(entry, schema, reads)
    entry.read = rule
    if entry.name is not None and not entry.problems and report.count == before:
        entry.rule = with_what_is_used(rule)
        rules[entry.name.text] = entry.rule


def _read_body(entry: Entry, of_input: EventSchema, reads: tuple[Rule, ...]) -> Rule:
    fields = entry.fields
    schema, kind = match_schema(reads) if reads else of_input, kind_of(fields)
    if kind == "match_recognize":
        return _read_rows(entry, schema, reads)
    partition_by = read_partition(fields, schema)
    span = read_span(fields, schema)
    fold = read_fold(fields, schema)
    pattern = read_pattern(fields, schema) if kind == "pattern" else None
    readable = kind != "fold" or says_form(fields)
    rule = Rule(
        name=entry.name.text if entry.name else "",
        schema=schema,
        filter=_read_filter(fields, schema),
        partition_by=partition_by,
        pattern=pattern,
        span=span,
        operator=read_operator(fields) if kind == "operator" else None,
        merge="detection" if fold is not None else _read_merge(fields),
        emit=read_emit(fields, schema, pattern, partition_by) if readable else (),
        description=_read_description(fields),
        forget_key_after_us=read_forgetting(fields, pattern, span),
        having=read_having(fields, schema, partition_by) if kind == "aggregates" else None,
        fold=fold,
        reads=reads,
        enabled=entry.enabled,
    )
    check_windows(fields, rule)
    return rule


def _read_rows(entry: Entry, schema: EventSchema, reads: tuple[Rule, ...]) -> Rule:
    fields, name = entry.fields, entry.name.text if entry.name else ""
    passes, told = _read_filter(fields, schema), _read_description(fields)
    rule = Rule(name, schema, passes, (), None, None, None, "detection", (), told, reads=reads)
    return read_row_rule(fields, replace(rule, enabled=entry.enabled))


def _read_merge(fields: Section) -> Literal["selection", "detection"]:
    merge = fields.choice("merge", ("selection", "detection"), "selection")
    return "detection" if merge == "detection" else "selection"


def _read_name(fields: Section, names: dict[str, Place]) -> Scalar | None:
    name = fields.text("name", "name: my_rule", "name: and the rule's name")
    if name is None:
        return None
    if not _NAME.fullmatch(name.text):
        must = "must be a letter, then letters, digits and _ (64 at most)"
        fields.report.add(name.place, must, quote(name.text), "Rename the rule.")
        return None
    first = names.setdefault(name.text.lower(), name.place)
    if first is not name.place:
        got = f"{quote(name.text)}, which is also at {first.file}:{first.line}"
        fields.report.add(
            name.place, "must be a name of its own (letter case aside)", got, "Rename one of the rules."
        )
    return name


def _read_description(fields: Section) -> str:
    text = fields.text("description", "description: What the rule is for")
    return text.text.strip() if text else ""


def _read_filter(fields: Section, schema: EventSchema) -> Expr | None:
    condition = read_condition(fields.node("filter"), event_scope(schema, looks_back=True), fields.report)
    if condition is not None and mentions_previous(condition) and fields.has("forget_key_after"):
        must, got = "must be left out beside a filter with prev", '"forget_key_after"'
        do = "What does not pass the filter would keep a key alive: use prev in the condition of a component."
        fields.report.add(fields.key_place("forget_key_after"), must, got, do)
    return condition


# ---------------------------------------------------------------- rules over rules


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

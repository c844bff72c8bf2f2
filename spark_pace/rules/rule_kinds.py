"""The kinds of rules, and the keys that each of them takes; and the names of Python functions."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from spark_pace.rules.document import Mapping, Report, Scalar, Section, quote

Kind: TypeAlias = Literal["pattern", "aggregates", "operator", "fold", "match_recognize"]

_OF_PATTERNS = ("where", "within", "contiguity", "context", "strategy", "close")
# the keys that a kind of rule does not take, and why
_REFUSED: dict[Kind, dict[tuple[str, ...], str]] = {
    "pattern": {},
    "aggregates": {
        _OF_PATTERNS[1:]: "It belongs to a pattern; a rule without one aggregates all events of each span."
    },
    "operator": {
        ("pattern",): "A rule has either a pattern or an operator.",
        _OF_PATTERNS: "It belongs to a pattern; a Python operator decides by itself.",
    },
    "fold": {
        ("pattern", "operator", "span"): "A fold goes from event to event, and needs none of these.",
        _OF_PATTERNS: "It belongs to a pattern; in a fold the moves or the function decide.",
        ("merge",): "The matches of a fold come in the order of their events.",
    },
    "match_recognize": {
        ("pattern", "operator", "span", "fold"): "MATCH_RECOGNIZE has a pattern of its own.",
        _OF_PATTERNS: "It belongs to pattern; write PATTERN, DEFINE and WITHIN in the clause.",
        ("partition_by",): "Write PARTITION BY in the clause.",
        ("emit",): "The fields of a match are its MEASURES.",
        ("merge",): "The matches of a row pattern come in the order in which they are decided.",
    },
}
_AGGREGATES = "emit: {number: count(*), mean: avg(x)}"
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def kind_of(rule: Section) -> Kind:
    """The kind of a rule, by the keys that it has; a pattern if it has none of them."""
    named: tuple[Kind, ...] = ("match_recognize", "fold", "operator", "pattern")
    found = next((kind for kind in named if rule.has(kind)), None)
    return found or ("aggregates" if rule.has("span") else "pattern")


def check_keys(rule: Section, *, reads: bool) -> None:
    """Report keys that the kind of rule does not take or lacks; `reads`: it reads matches of other rules."""
    kind = kind_of(rule)
    for keys, why in _REFUSED[kind].items():
        rule.refuse(keys, why)
    if kind == "pattern" and not rule.has("pattern"):
        do = "Add for example pattern: {sequence: [a: x = 1, b: x = 2]}."
        must = 'must have a "pattern", an "operator", a "span", a "fold" or "match_recognize"'
        rule.report.add(rule.place, must, "none", do)
    if kind == "operator" and reads:
        rule.refuse(["from"], "A Python operator works on events, where they are read.")
    if kind == "operator" and not rule.has("span"):
        do = "Add for example span: {every: 10 s, size: 60 s}."
        rule.report.add(rule.place, 'must have the key "span", for an operator works on spans', "none", do)
    if kind == "aggregates" and rule.require("emit", _AGGREGATES):
        node = rule.node("emit")
        if isinstance(node, Mapping) and not node.entries:
            do = f"Write for example {_AGGREGATES}."
            rule.report.add(node.place, "must have at least one field", "none", do)


def read_operator(rule: Section) -> str | None:
    """Read the key ``operator``; None if it is missing or wrong."""
    text = rule.text("operator", "operator: my_module:my_function")
    return function_name(text, rule.report, "my_rules.traffic:overtakers")


def function_name(text: Scalar | None, report: Report, example: str) -> str | None:
    """Read the name of a function, ``module:function``; None if it is missing or wrong."""
    if text is None:
        return None
    if _FUNCTION.fullmatch(text.text):
        return text.text
    report.add(text.place, "must be module:function", quote(text.text), f"Write for example {example}.")
    return None

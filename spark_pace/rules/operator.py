"""Reads the key ``operator``: the name of a Python function, ``module:function``."""

from __future__ import annotations

import re

from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.document.section import Section

KEYS_OF_PATTERNS = ("where", "within", "contiguity", "context", "strategy", "close")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def read_operator(fields: Section, *, reads: bool) -> str | None:
    """Read the key ``operator``; None if it is missing or wrong.

    Args:
        fields: the keys of the rule.
        reads: True if the rule reads matches of other rules.
    """
    text = fields.text("operator", "operator: my_module:my_function")
    if fields.has("operator"):
        fields.refuse(["from"] if reads else [], "A Python operator works on events, where they are read.")
        fields.refuse(["pattern"], "A rule has either a pattern or an operator.")
        if not fields.has("pattern"):
            fields.refuse(KEYS_OF_PATTERNS, "It belongs to a pattern; a Python operator decides by itself.")
        if not fields.has("span"):
            do = "Add for example span: {every: 10 s, size: 60 s}."
            must = 'must have the key "span", for an operator works on spans'
            fields.report.add(fields.place, must, "none", do)
    return None if text is None else function_name(text, fields.report, "my_rules.traffic:overtakers")


def function_name(text: Scalar, report: Report, example: str) -> str | None:
    """Read the name of a function; None if it is wrong."""
    if _FUNCTION.fullmatch(text.text):
        return text.text
    report.add(text.place, "must be module:function", quote(text.text), f"Write for example {example}.")
    return None

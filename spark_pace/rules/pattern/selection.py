"""Reads the keys that say which events a selection may use: context, close, within, contiguity."""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.match.contexts.context import ParameterContext
from spark_pace.core.plan.component import Contiguity
from spark_pace.core.plan.rule import Close, Strategy, Within
from spark_pace.rules.contexts import read_context
from spark_pace.rules.document.section import Section
from spark_pace.rules.lengths import read_window
from spark_pace.rules.pattern.strategy import read_strategy


@dataclass(frozen=True)
class Selecting:
    """The keys context, strategy, close, within and contiguity.

    Attributes:
        context: the parameter context.
        strategy: how matches are found; None: in the best way.
        close: what closes a selection.
        within: the length of the window; None if it is missing or wrong.
        says_within: True if the key ``within`` is there.
        contiguity: says if other events may stand between those of a match.
    """

    context: ParameterContext
    strategy: Strategy | None
    close: Close
    within: Within | None
    says_within: bool
    contiguity: Contiguity


def read_selecting(rule: Section) -> Selecting:
    """Read these keys, with defaults for those that are missing or wrong."""
    context = read_context(rule)
    strategy = read_strategy(rule, context)
    close = _read_close(rule, context)
    node = rule.node("within")
    within = None if node is None else read_window(node, rule.report)
    contiguity = rule.choice("contiguity", ("relaxed", "strict"), "relaxed")
    return Selecting(
        context,
        strategy,
        close,
        within,
        rule.has("within"),
        "strict" if contiguity == "strict" else "relaxed",
    )


def _read_close(rule: Section, context: ParameterContext) -> Close:
    if rule.choice("close", ("completion", "window"), "completion") == "completion":
        return "completion"
    if not context.window_may_close:
        report, place = rule.report, rule.key_place("close")
        report.add(
            place,
            'must be "completion" in this context',
            f'"window" with "{context.value}"',
            'Use context "each, zero", or leave "close" out.',
        )
    return "window"

"""Reads the key ``times``, how many events a component stands for: ``3``, ``2..5``, ``1+``, ``0..1``."""

from __future__ import annotations

import re

from spark_pace.core.plan.component import Times
from spark_pace.rules.document.document import Node, Scalar, describe
from spark_pace.rules.document.report import Report
from spark_pace.rules.lengths import MAX_EVENTS

_RANGE = re.compile(r"([0-9]+)(?:\.\.([0-9]+)|(\+))?")
_MOST_DIGITS = 20
_GROUP = Times(1, 1)  # used if the key is wrong; still a group, so that no further problem follows


def read_times(node: Node, report: Report) -> Times | None:
    """Read a range; None for 1, which is no repetition. A wrong one is reported."""
    match = _RANGE.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    if match is None:
        do = "Write a whole number, a range or a least number with +."
        report.add(node.place, "must be a number of events such as 3, 2..5, 1+ or 0..1", describe(node), do)
        return _GROUP
    if max(len(match[1]), len(match[2] or "")) > _MOST_DIGITS:
        return _too_many(node, report)
    least = int(match[1])
    most = None if match[3] else int(match[2] or match[1])
    if max(least, most or 0) > MAX_EVENTS:
        return _too_many(node, report)
    if most == 0:
        do = "Write 0..1 or 0+ if there may be none, not: true if there must be none."
        report.add(node.place, "must allow at least one event", describe(node), do)
        return _GROUP
    if most is not None and most < least:
        do = f"Write {most}..{least}."
        report.add(node.place, "must be a range from the smaller number to the greater", describe(node), do)
        return Times(most, least)
    return None if least == most == 1 else Times(least, most)


def _too_many(node: Node, report: Report) -> Times:
    report.add(node.place, f"must be at most {MAX_EVENTS} events", describe(node), "Correct the number.")
    return _GROUP

"""Reads durations and counts of rule files: ``30 min``, ``500 ms``, ``1000 events``."""

from __future__ import annotations

import re

from spark_pace.core.plan.meaning import UNITS_US
from spark_pace.core.plan.rule import Within
from spark_pace.rules.document import Mapping, Node, Report, Scalar, Section, describe

MAX_DURATION_US = 36_500 * UNITS_US["d"]  # so that no sum of a time and a duration overflows
MAX_EVENTS = 1_000_000_000
_AMOUNT = re.compile(r"(-?[0-9]{1,20})\s*([a-zA-Z]+)")


def read_duration(
    node: Node | None, report: Report, must: str = "a duration such as 10 min", *, least: int = 0
) -> int | None:
    """Read a duration of at least `least` microseconds, as microseconds; report anything else."""
    length = _read(node, report, must, "us, ms, s, min, h or d", counts=False, least=least)
    return None if length is None else length.time_us


def read_bounded(keys: Section, key: str, example: str, bounds: tuple[int, int], told: str) -> int | None:
    """Read the duration under a key, in microseconds, if there is one within bounds (inclusive).

    Args:
        keys: the section.
        key: the key.
        example: a duration that may stand there.
        bounds: the least and the greatest, in microseconds.
        told: the bounds as the message has them, such as ``1 s to 1 h``.

    Returns:
        None if there is none, or one that cannot be read. One that is out of bounds is reported and returned.
    """
    node = keys.node(key)
    length_us = read_duration(node, keys.report, f"a duration such as {example}")
    if node is not None and length_us is not None and not bounds[0] <= length_us <= bounds[1]:
        keys.report.add(node.place, f"must be from {told}", describe(node), "Correct the duration.")
    return length_us


def read_window(node: Node | None, report: Report) -> Within | None:
    """Read what `read_length` reads, or a mapping of both, ``{time: 5 min, events: 100}``."""
    if not isinstance(node, Mapping):
        return read_length(node, report)
    fields = Section(node, report, ("time", "events"))
    for key, example in (("time", "time: 5 min"), ("events", "events: 100")):
        fields.require(key, f"{example}, or write the other one alone, as in within: 5 min")
    events, time_us = fields.whole("events", 1, MAX_EVENTS), read_duration(fields.node("time"), report)
    return None if time_us is None or events is None else Within(time_us, events)


def read_length(node: Node | None, report: Report, *, least: int = 0) -> Within | None:
    """Read a duration of at least `least` microseconds, or a number of events; report anything else."""
    must, units = "a length such as 10 min or 1000 events", "us, ms, s, min, h, d or events"
    return _read(node, report, must, units, counts=True, least=least)


def _read(
    node: Node | None, report: Report, must: str, units: str, *, counts: bool, least: int
) -> Within | None:
    if node is None:
        return None
    text = node.text.strip() if isinstance(node, Scalar) else ""
    match = _AMOUNT.fullmatch(text)
    unit = match[2] if match else ""
    if match is None or (unit not in UNITS_US and not (counts and unit in ("event", "events"))):
        advice = f"Write a whole number and a unit: {units}."
        if counts and (not isinstance(node, Scalar) or "," in node.text):
            advice = "For a window of both, write {time: 5 min, events: 100}."
        report.add(node.place, f"must be {must}", describe(node), advice)
        return None
    amount = int(match[1])
    if unit not in UNITS_US and 1 <= amount <= MAX_EVENTS:
        return Within(events=amount)
    if unit not in UNITS_US:
        report.add(
            node.place, f"must be from 1 to {MAX_EVENTS} events", describe(node), "Correct the number."
        )
        return None
    if not least <= amount * UNITS_US[unit] <= MAX_DURATION_US:
        bound = "from 0" if least == 0 else "more than 0 and up"
        report.add(node.place, f"must be {bound} to 36500 d", describe(node), "Correct the duration.")
        return None
    return Within(time_us=amount * UNITS_US[unit])

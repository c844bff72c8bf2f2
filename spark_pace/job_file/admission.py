"""Reads the section `admission` of a job file: how much a batch may read."""

from __future__ import annotations

from spark_pace.job_file.pace import Admission
from spark_pace.rules.document.document import Mapping, Scalar, describe
from spark_pace.rules.document.section import Section
from spark_pace.rules.lengths import read_bounded

_EXAMPLE = "admission: {batch_seconds: 5 s, warm_up: 5, max_deviation: 0.25}"
_SECOND_US = 1_000_000
_LONGEST_US = 3600 * _SECOND_US
_MOST_DOUBLINGS = 20


def read_admission(fields: Section) -> Admission | None:
    """The settings, with defaults for those that are missing or wrong; None for ``admission: off``."""
    node = fields.node("admission")
    if node is None:
        return Admission()
    if isinstance(node, Scalar) and node.text == "off":
        return None
    if not isinstance(node, Mapping):
        fields.report.add(
            node.place, "must be a mapping, or off", describe(node), f"Write for example {_EXAMPLE}."
        )
        return Admission()
    keys = Section(node, fields.report, ("batch_seconds", "warm_up", "max_deviation"))
    usual = Admission()
    doublings = keys.whole("warm_up", 0, _MOST_DOUBLINGS)
    return Admission(
        batch_seconds=_seconds(keys, usual.batch_seconds),
        warm_up=usual.warm_up if doublings is None else doublings,
        max_deviation=_part(keys, "max_deviation", usual.max_deviation),
    )


def _seconds(keys: Section, usual: float) -> float:
    length_us = read_bounded(keys, "batch_seconds", "5 s", (_SECOND_US, _LONGEST_US), "1 s to 1 h")
    return usual if length_us is None else length_us / _SECOND_US


def _part(keys: Section, key: str, usual: float) -> float:
    node = keys.node(key)
    if node is None:
        return usual
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.01 <= value <= 1:
        return float(value)
    keys.report.add(node.place, "must be a number from 0.01 to 1", describe(node), "Correct the number.")
    return usual

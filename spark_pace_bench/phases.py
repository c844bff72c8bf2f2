"""Reads the phases of a run file."""

from __future__ import annotations

from typing import cast

from spark_pace.rules.document import Broken, Listing, Node, Scalar, Section, as_mapping, describe, quote
from spark_pace_bench.spec import Arrivals, Phase, Role

_KEYS = ("name", "seconds", "rate", "arrivals", "role")
_EXAMPLE = "{name: steady, seconds: 20, rate: 1000}"
_MOST_SECONDS = 86_400
_MOST_RATE = 10_000_000


def read_phases(fields: Section) -> tuple[Phase, ...]:
    """The phases in their order; empty if they are reported as wrong."""
    node = fields.node("phases")
    if not isinstance(node, Listing) or not node.items:
        if node is not None:
            do = f"Write for example phases: [{_EXAMPLE}]."
            fields.report.add(node.place, "must be a list of phases", describe(node), do)
        return ()
    before = fields.report.count
    phases = [_read_phase(item, fields) for item in node.items]
    found = tuple(phase for phase in phases if phase is not None)
    if fields.report.count > before:
        return ()
    _require_agreement(found, node, fields)
    return found if fields.report.count == before else ()


def _read_phase(node: Node, fields: Section) -> Phase | None:
    mapping = as_mapping(node, fields.report, _EXAMPLE)
    if mapping is None:
        return None
    keys = Section(mapping, fields.report, _KEYS)
    for key, example in (("name", "name: steady"), ("seconds", "seconds: 20"), ("rate", "rate: 1000")):
        keys.require(key, example)
    name = keys.text("name", "name: steady")
    seconds = _number(keys.node("seconds"), keys, "a number of seconds", _MOST_SECONDS)
    rate = _read_rate(keys)
    arrivals = keys.choice("arrivals", ("constant", "poisson"), "constant")
    role = keys.choice("role", ("warm_up", "steady", "peak", "recovery"), "steady")
    if name is None or seconds is None or rate is None:
        return None
    if seconds == 0 or sum(rate) == 0 or seconds * sum(rate) / 2 < 1:
        do = "Make it longer, or raise its rate."
        fields.report.add(keys.place, "must send one event or more", "a phase without events", do)
    return Phase(name.text, seconds, rate, cast(Arrivals, arrivals), cast(Role, role))


def _read_rate(keys: Section) -> tuple[float, float] | None:
    node = keys.node("rate")
    if isinstance(node, Listing):
        if len(node.items) != 2:
            must, got = "must be one rate, or the first and the last", f"a list of {len(node.items)}"
            keys.report.add(node.place, must, got, "Write for example rate: [100, 1000].")
            return None
        ends = [_number(item, keys, "a rate in events a second", _MOST_RATE) for item in node.items]
        return None if None in ends else cast("tuple[float, float]", tuple(ends))
    rate = _number(node, keys, "a rate in events a second", _MOST_RATE)
    return None if rate is None else (rate, rate)


def _number(node: Node | None, keys: Section, what: str, most: float) -> float | None:
    if node is None or isinstance(node, Broken):
        return None
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    do = "Correct the number."
    keys.report.add(node.place, f"must be {what}, from 0 to {most:,}", describe(node), do)
    return None


def _require_agreement(phases: tuple[Phase, ...], node: Listing, fields: Section) -> None:
    """Report phases that contradict each other."""
    names = [phase.name for phase in phases]
    roles = [phase.role for phase in phases]

    def wrong(number: int, must: str, got: str, do: str) -> None:
        fields.report.add(node.items[number].place, must, got, do)

    for number, (name, role) in enumerate(zip(names, roles, strict=True)):
        if name in names[:number]:
            wrong(number, "must have a name of its own", quote(name), "Rename one.")
        if role == "warm_up" and number and roles[number - 1] != "warm_up":
            do = "Put it in front, or leave out role."
            wrong(number, "must stand in front of all that is measured", "a warm_up behind it", do)
        if role == "peak":
            if "peak" in roles[:number]:
                wrong(number, "must be the only peak", "a second one", "Give each peak a run of its own.")
            if number == 0 or roles[number - 1] != "steady":
                do = "Put a steady phase in front of it."
                wrong(number, "must follow a steady phase, which it is compared with", "none", do)
            if number + 1 == len(roles) or roles[number + 1] != "recovery":
                do = "Put a phase with role: recovery behind it."
                wrong(number, "must be followed by its recovery", "none", do)
        if role == "recovery" and "peak" not in roles[:number]:
            wrong(number, "must follow a peak", "a recovery from nothing", "Add a peak, or leave out role.")
    if set(roles) == {"warm_up"}:
        wrong(0, "must be followed by a phase that is measured", "warm_up alone", "Add a phase without role.")

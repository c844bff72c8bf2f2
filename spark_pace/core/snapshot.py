"""A slot's state as bytes: a versioned parcel of Arrow tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints, array, numbers
from spark_pace.core.frames import decode_parcel, encode_parcel
from spark_pace.core.order import Order
from spark_pace.core.plan import Plan
from spark_pace.core.unit import UnitState
from spark_pace.errors import StateError

FORMAT_VERSION = 1
MOST_BYTES = 256 << 20  # one value of 600 MB takes Spark 25 s; above 1 GB it cannot be stored at all


def save(plan: Plan, slot: int, order: Order, states: list[UnitState]) -> bytes:
    """The state as bytes.

    Raises:
        StateError: it is too large to be kept as one value.
    """
    tables = [order.pending if order.pending is not None else _nothing()]
    for state in states:
        keys = {"key": state.keys, "next_seq": state.next_seq, "next_selection": state.next_selection}
        tables += [pa.table(keys), state.carry if state.carry is not None else _nothing()]
    header = {
        "format_version": FORMAT_VERSION,
        "units": _unit_names(plan, slot),
        "frontier_us": order.frontier_us,
        "max_time_us": order.max_time_us,
    }
    parcel = encode_parcel(header, tables)
    if len(parcel) > MOST_BYTES:
        raise StateError(
            f"state of slot {slot} — must stay below {MOST_BYTES >> 20} MiB; got {len(parcel) >> 20} MiB. "
            "Shorten the longest `within` or the allowed delay, or use more slots and key buckets; each needs a new checkpoint and sink."
        )
    return parcel


def load(plan: Plan, slot: int, parcel: bytes) -> tuple[Order, list[UnitState]]:
    """The state of these bytes.

    Raises:
        StateError: they are damaged, of another format version, or of other rules.
    """
    try:
        header, tables = decode_parcel(parcel)
    except (ValueError, KeyError, OSError, pa.ArrowException) as error:
        raise StateError(
            f"state of slot {slot} — must be a snapshot of this program; got damaged bytes ({error}). "
            "Start again with a new checkpoint."
        ) from error
    _check(plan, slot, header)
    order = Order(header["frontier_us"], header["max_time_us"], _some(tables[0]))
    states = [
        UnitState(_some(carry), array(keys, "key"), _own(keys, "next_seq"), _own(keys, "next_selection"))
        for keys, carry in zip(tables[1::2], tables[2::2], strict=True)
    ]
    return order, states


def _check(plan: Plan, slot: int, header: dict[str, Any]) -> None:
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise StateError(
            f"state of slot {slot} — must have format version {FORMAT_VERSION}; got {version}. "
            "Start again with a new checkpoint, or with the version that wrote it."
        )
    if header["units"] != _unit_names(plan, slot):
        raise StateError(
            f"state of slot {slot} — must be of the rules {_unit_names(plan, slot)}; got {header['units']}. "
            "Use a new checkpoint for changed rules."
        )


def _unit_names(plan: Plan, slot: int) -> list[str]:
    return [f"{plan.rules[unit.rule].rule.name}/{unit.bucket}" for unit in plan.units[slot]]


def _nothing() -> pa.Table:
    return pa.table({})


def _some(table: pa.Table) -> pa.Table | None:
    return table if table.num_columns else None


def _own(table: pa.Table, name: str) -> Ints:
    """A column that may be written to."""
    return np.array(numbers(table, name), np.int64)

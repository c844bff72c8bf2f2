"""A slot's state as bytes: a parcel of Arrow tables with a format version, and a checksum behind it.

It may be loaded by a plan with other rules. What was kept for a rule that is still there is kept as it is,
what was kept for others is dropped, and a rule that is new begins with the events read from then on.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import BITS, KEYS, Ints, array, numbers
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.frames import decode_header, decode_parcel, encode_parcel
from spark_pace.core.intake.pack import slot_columns
from spark_pace.core.order.order import Order
from spark_pace.core.plan.plan import Plan, RulePlan, Unit, bits_column
from spark_pace.core.split.unit import UnitState, new_unit
from spark_pace.errors import StateError

FORMAT_VERSION = 2
_CHECKSUM_BYTES = 4
MOST_BYTES = 256 << 20  # one value of 600 MB takes Spark 25 s; above 1 GB it cannot be stored at all


def save(plan: Plan, slot: int, order: Order, states: list[UnitState]) -> bytes:
    """The state as bytes.

    Raises:
        StateError: it is too large to be kept as one value.
    """
    tables = [_table(order.pending), _table(order.recent)]
    for state in states:
        keys = {"key": state.keys, "next_seq": state.next_seq, "next_selection": state.next_selection}
        tables += [pa.table(keys), _table(state.carry)]
    header = {
        "format_version": FORMAT_VERSION,
        "buckets": plan.buckets,
        "bits": plan.bit_names,
        "units": [_identity(plan, unit) for unit in plan.units[slot]],
        "frontier_us": order.frontier_us,
        "max_time_us": order.max_time_us,
        "first_us": order.first_us,
        "sources": order.sources,
    }
    parcel = encode_parcel(header, tables)
    if len(parcel) > MOST_BYTES:
        raise StateError(
            f"state of slot {slot} — must stay below {MOST_BYTES >> 20} MiB; got {len(parcel) >> 20} MiB. "
            "Shorten the longest `within` or the allowed delay, or use more slots and key buckets; "
            "each needs a new checkpoint and sink."
        )
    return parcel + _checksum(parcel)


def load(plan: Plan, slot: int, parcel: bytes) -> tuple[Order, list[UnitState]]:
    """The state of these bytes, for the rules of the plan.

    Raises:
        StateError: they are damaged, of another format version, or of rules that have since changed or moved.
    """
    version = _version(parcel)
    if version not in (None, FORMAT_VERSION):
        raise StateError(
            f"state of slot {slot} — must have format version {FORMAT_VERSION}; got {version}. "
            "Start again with a new checkpoint, or with the version that wrote it."
        )
    if _checksum(parcel[:-_CHECKSUM_BYTES]) != parcel[-_CHECKSUM_BYTES:]:
        raise StateError(
            f"state of slot {slot} — must be as this program wrote it; got damaged bytes. "
            "Start again with a new checkpoint."
        )
    header, tables = decode_parcel(parcel)
    _check(plan, slot, header)
    pending, recent, *of_units = tables
    order = Order(
        header["frontier_us"],
        header["max_time_us"],
        _pending(plan, slot, header["bits"], pending),
        header["sources"],
        header["first_us"],
        _some(recent),
    )
    stored = {
        (unit["rule"], unit["since"], unit["bucket"]): (keys, carry)
        for unit, keys, carry in zip(header["units"], of_units[::2], of_units[1::2], strict=True)
    }
    return order, [
        _state(plan.rules[unit.rule_index], stored.get(_unit_id(plan, unit))) for unit in plan.units[slot]
    ]


def _checksum(parcel: bytes) -> bytes:
    """Without it most changed bytes would go unnoticed: Arrow reads such a table, with other events in it."""
    return zlib.crc32(parcel).to_bytes(_CHECKSUM_BYTES, "big")


def _version(parcel: bytes) -> Any:
    """The format version that the header names; None where there is no header."""
    try:
        return decode_header(parcel).get("format_version")
    except (ValueError, AttributeError):
        return None


def _identity(plan: Plan, unit: Unit) -> dict[str, Any]:
    planned = plan.rules[unit.rule_index]
    return {
        "rule": planned.rule.name,
        "since": planned.since,
        "bucket": unit.bucket,
        "fingerprint": planned.fingerprint,
    }


def _unit_id(plan: Plan, unit: Unit) -> tuple[str, int, int]:
    planned = plan.rules[unit.rule_index]
    return planned.rule.name, planned.since, unit.bucket


def _check(plan: Plan, slot: int, header: dict[str, Any]) -> None:
    """Refuse the state of a rule that has changed, or that is in other slots than its units are."""
    here = {_unit_id(plan, unit) for unit in plan.units[slot]}
    rules = {(planned.rule.name, planned.since): planned for planned in plan.rules}
    for unit in header["units"]:
        planned = rules.get((unit["rule"], unit["since"]))
        if planned is None:
            continue
        if planned.fingerprint != unit["fingerprint"]:
            raise StateError(
                f"state of slot {slot} — must be of the rules as they are; got another rule {unit['rule']}. "
                "Restore it, or give it a new name."
            )
        if header["buckets"] != plan.buckets or (unit["rule"], unit["since"], unit["bucket"]) not in here:
            raise StateError(
                f"state of slot {slot} — must be of the rules that the slot has; "
                f"got bucket {unit['bucket']} of {header['buckets']} of {unit['rule']}, which has moved. "
                "Restore the slots and the order of the rules, or start again with a new checkpoint."
            )


def _state(planned: RulePlan, stored: tuple[pa.Table, pa.Table] | None) -> UnitState:
    if stored is None:
        return new_unit(planned)
    keys, carry = stored
    return UnitState(
        _carry(planned, carry), array(keys, "key"), _own(keys, "next_seq"), _own(keys, "next_selection")
    )


def _carry(planned: RulePlan, carry: pa.Table) -> pa.Table | None:
    """The carry with the rule's attributes in the order that the schema has now."""
    attributes = iter(planned.columns)
    names = [name if name.startswith("@") else next(attributes) for name in carry.column_names]
    return _some(carry.select(names))


def _pending(plan: Plan, slot: int, bit_names: list[str], pending: pa.Table) -> pa.Table | None:
    """The pending events in the columns of this plan's frames; none belongs to the stream of a new rule."""
    if not pending.num_columns:
        return None
    names = slot_columns(plan, slot)
    bits = _renumbered(pending, bit_names, plan.bit_names)
    types = {field.name: ARROW_TYPES[field.type] for field in plan.schema.fields}
    columns = []
    for name in names:
        if name.startswith(BITS):
            columns.append(pa.array(bits[name]))
        elif name in pending.column_names and types.get(name) in (None, pending.schema.field(name).type):
            columns.append(array(pending, name))
        elif name.startswith(KEYS):
            columns.append(
                pa.DictionaryArray.from_arrays(pa.array(np.zeros(pending.num_rows, np.int32)), pa.array([""]))
            )
        else:
            columns.append(pa.nulls(pending.num_rows, types[name]))
    return pa.table(columns, names)


def _renumbered(pending: pa.Table, old: list[str], new: tuple[str, ...]) -> dict[str, npt.NDArray[np.uint64]]:
    """The columns ``@bits`` by the new numbers; a predicate that was not known before holds for no event."""
    place = {name: number for number, name in enumerate(old)}
    words: dict[str, npt.NDArray[np.uint64]] = {}
    for number, name in enumerate(new):
        column, bit = bits_column(number)
        word = words.setdefault(column, np.zeros(pending.num_rows, np.uint64))
        if name in place:
            old_column, old_bit = bits_column(place[name])
            word |= ((numbers(pending, old_column) >> np.uint64(old_bit)) & np.uint64(1)) << np.uint64(bit)
    return words


def _table(table: pa.Table | None) -> pa.Table:
    return table if table is not None else pa.table({})


def _some(table: pa.Table) -> pa.Table | None:
    return table if table.num_columns else None


def _own(table: pa.Table, name: str) -> Ints:
    """The column as an array that may be written to."""
    return np.array(numbers(table, name), np.int64)

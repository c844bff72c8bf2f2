"""A slot's state as bytes: a parcel of Arrow tables with a format version, then a checksum.

A plan with other rules can load it. The state of rules that are still there is kept unchanged, that of other
rules is dropped, and a new rule begins with the events read from then on.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.frames import (
    TableStore,
    decode,
    decode_header,
    encode_parcel,
    frames_of,
    or_empty,
    or_none,
    write_mappable,
)
from spark_pace.core.intake.pack import slot_columns
from spark_pace.core.order import Order, Pending, Run
from spark_pace.core.plan.plan import Plan, RulePlan, Unit, bits_column
from spark_pace.core.plan.rule import GridSpan
from spark_pace.core.split.carry.carry import Carry, whole_of
from spark_pace.core.split.carry.chunk import (
    Chunk,
    inline_chunk,
    put_beside,
    stored_chunk,
    stored_tables,
)
from spark_pace.core.split.panes import put_together, with_needed_columns
from spark_pace.core.split.task import Share, shares_of
from spark_pace.core.tables import BITS, KEYS, array, compacted, has_bit, numbers
from spark_pace.errors import StateError

FORMAT_VERSION = 9  # the version of states and all else in a checkpoint (`checkpoint/layout.py`)
_CHECKSUM_BYTES = 4
MOST_BYTES = 256 << 20  # one value of 600 MB takes Spark 25 s; above 1 GB it cannot be stored at all


Kept = list[tuple[Share, Carry]]  # the state of a slot's rules


def save(plan: Plan, slot: int, order: Order, kept: Kept, store: TableStore | None = None) -> bytes:
    """Encode the state of a slot.

    Args:
        plan: the plan.
        slot: the slot.
        order: the state of the stream order.
        kept: the carry of each share of the slot; large chunks are stored and get their names.
        store: the store of large chunks; None: the state holds all chunks.

    Raises:
        StateError: the state is too large for one value.
    """
    tables = [or_empty(order.recent), *_waiting(order.pending, store), *_inline(kept, store)]
    header = {
        "format_version": FORMAT_VERSION,
        "buckets": plan.buckets,
        "bits": plan.bit_names,
        "units": [_identity(share) | _counts(carry) for share, carry in kept],
        "frontier_us": order.frontier_us,
        "max_time_us": order.max_time_us,
        "first_us": order.first_us,
        "sources": order.sources,
        "pending": [{"name": run.name, "start": run.start} for run in order.pending.runs],
    }
    parcel = encode_parcel(header, tables)
    if len(parcel) > MOST_BYTES:
        raise StateError(
            f"state of slot {slot} — must stay below {MOST_BYTES >> 20} MiB; got {len(parcel) >> 20} MiB. "
            "Shorten the longest `within` or the allowed delay, or use more slots and key buckets; "
            "each needs a new checkpoint and sink."
        )
    return parcel + _checksum(parcel)


def _waiting(pending: Pending, store: TableStore | None) -> Iterator[pa.Table]:
    """Put large runs of pending events into the store; yield the tables of the others."""
    for run in pending.runs:
        if run.name is None:
            run.events, run.start = compacted(run.waiting()), 0
            if store is None or not ways.is_stored_apart(run.rows):
                yield run.events
            else:
                run.name = store.put(partial(write_mappable, {}, [run.events]))


def _inline(kept: Kept, store: TableStore | None) -> Iterator[pa.Table | memoryview]:
    """Put large chunks into the store; yield the tables of the others."""
    carries = (one for _, carry in kept for one in (carry, *carry.forbidding))
    for chunk in (chunk for carry in carries for chunk in carry.chunks):
        if store is not None:
            put_beside(store, chunk)
        if chunk.name is None:
            yield from chunk.frames or [chunk.keys, or_empty(chunk.events)]


def load(plan: Plan, slot: int, parcel: bytes, store: TableStore | None = None) -> tuple[Order, Kept]:
    """Decode the state of a slot, for the rules of the plan.

    Args:
        plan: the plan.
        slot: the slot.
        parcel: a result of `save`.
        store: the store into which `save` has put large chunks.

    Raises:
        StateError: the state is damaged, of another format version, or of rules that have since changed or
            moved; or a chunk is damaged or missing.
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
    header, frames = frames_of(parcel)
    _check(plan, slot, header)
    order = _order(plan, slot, header, frames, store)
    kept = _kept(plan, slot, list(_stored(header, frames)), store)
    return order, sorted(kept, key=lambda one: (one[0].rules[0].index, one[0].bucket))


Stored = tuple[dict[str, Any], list[memoryview]]  # a share's entry in the header, and its frames


def _kept(
    plan: Plan, slot: int, stored: list[Stored], store: TableStore | None
) -> Iterator[tuple[Share, Carry]]:
    """The stored shares without rules that are gone; new rules get shares of their own."""
    units = {_unit_id(plan, unit): unit for unit in plan.units[slot]}
    for entry, frames in stored:
        found = [units.pop(one) for one in _rules_of(entry) if one in units]
        if found:
            grids = [GridSpan(*grid) for grid in entry.get("grids", ())]
            share = Share.of([plan.rules[unit.rule_index] for unit in found], entry["bucket"], grids)
            yield share, _carry(share, (entry, frames), store)
    yield from ((share, carry_of(share)) for share in shares_of(plan, units.values()))


def _stored(header: dict[str, Any], frames: list[memoryview]) -> Iterator[Stored]:
    """The header's entry and the frames of each share."""
    for unit in header["units"]:
        carries = (unit, *unit.get("forbidding", ()))
        count = 2 * sum(chunk["name"] is None for carry in carries for chunk in carry["chunks"])
        yield unit, frames[:count]
        frames = frames[count:]


def _checksum(parcel: bytes) -> bytes:
    """The checksum of a parcel.

    Without it most changed bytes would go unnoticed: Arrow reads such a table, with wrong values in it.
    """
    return zlib.crc32(parcel).to_bytes(_CHECKSUM_BYTES, "big")


def _version(parcel: bytes) -> Any:
    """The format version in the header; None if there is no header."""
    try:
        return decode_header(parcel).get("format_version")
    except (ValueError, AttributeError):
        return None


def _identity(share: Share) -> dict[str, Any]:
    planned, *others = share.rules
    identity = {
        "rule": planned.rule.name,
        "since": planned.since,
        "bucket": share.bucket,
        "fingerprint": planned.fingerprint,
    }
    if len(share.grids) < 2 and not others:
        return identity
    return identity | {
        "sharers": {sharer.rule.name: sharer.fingerprint for sharer in others},
        "grids": [[grid.every_us, grid.size_us] for grid in share.grids],
    }


def _rules_of(entry: dict[str, Any]) -> dict[tuple[str, int, int], str]:
    """The fingerprints of the rules of a share, by (name, since, bucket)."""
    rules = {entry["rule"]: entry["fingerprint"], **entry.get("sharers", {})}
    return {(rule, entry["since"], entry["bucket"]): fingerprint for rule, fingerprint in rules.items()}


def _counts(carry: Carry) -> dict[str, Any]:
    return {
        "chunks": [{"name": chunk.name, "dead": chunk.dead} for chunk in carry.chunks],
        "keys": carry.keys,
        "rows": carry.rows,
        "open": carry.open,
        **({} if carry.whole is None else {"whole": carry.whole.stored()}),
        **({"forbidding": [_counts(one) for one in carry.forbidding]} if carry.forbidding else {}),
        **({"left": carry.left} if carry.left else {}),
    }


def _unit_id(plan: Plan, unit: Unit) -> tuple[str, int, int]:
    planned = plan.rules[unit.rule_index]
    return planned.rule.name, planned.since, unit.bucket


def _check(plan: Plan, slot: int, header: dict[str, Any]) -> None:
    """Refuse the state of a rule that has changed, or whose units are now in other slots."""
    here = {_unit_id(plan, unit) for unit in plan.units[slot]}
    rules = {(planned.rule.name, planned.since): planned for planned in plan.rules}
    stored = (one for entry in header["units"] for one in _rules_of(entry).items())
    for (name, since, bucket), fingerprint in stored:
        planned = rules.get((name, since))
        if planned is None:
            continue
        if planned.fingerprint != fingerprint:
            raise StateError(
                f"state of slot {slot} — must be of the rules as they are; got another rule {name}. "
                "Restore it, or give it a new name."
            )
        if header["buckets"] != plan.buckets or (name, since, bucket) not in here:
            raise StateError(
                f"state of slot {slot} — must be of the rules that the slot has; "
                f"got bucket {bucket} of {header['buckets']} of {name}, which has moved. "
                "Restore the slots and the order of the rules, or start again with a new checkpoint."
            )


def carry_of(share: Share) -> Carry:
    """An empty carry for a share."""
    panes = share.panes
    return Carry(together=None if panes is None else partial(put_together, panes))


def _carry(share: Share, stored: Stored, store: TableStore | None) -> Carry:
    planned, carry, (header, frames) = share.rules[0], carry_of(share), stored
    inline = iter(zip(frames[::2], frames[1::2], strict=True))
    carry.chunks = _chunks(header, inline, store)
    for chunk in carry.chunks:
        chunk.events = None if chunk.events is None else _events(planned, chunk.events)
    for one in header.get("forbidding", ()):
        chunks = _chunks(one, inline, store)
        carry.forbidding.append(Carry(chunks, one["keys"], one["rows"], left=one.get("left", 0)))
    if share.panes is not None:
        carry.chunks = [with_needed_columns(share.panes, chunk) for chunk in carry.chunks]
    carry.keys, carry.rows = header["keys"], header["rows"]
    carry.open = header["open"]
    if "whole" in header:
        carry.whole = whole_of(header["whole"])
    return carry


def _chunks(
    header: dict[str, Any], inline: Iterator[tuple[memoryview, memoryview]], store: TableStore | None
) -> list[Chunk]:
    """The chunks of a carry; those that are not stored apart are the next ones of `inline`."""
    chunks = []
    for entry in header["chunks"]:
        chunk = inline_chunk(*next(inline)) if entry["name"] is None else stored_chunk(store, entry["name"])
        chunk.dead = entry["dead"]
        chunks.append(chunk)
    return chunks


def _events(planned: RulePlan, events: pa.Table) -> pa.Table:
    """Carried events with the rule's attributes in the current order of the schema."""
    attributes = (name for name in planned.columns if name in events.column_names)
    return events.select([name if name.startswith("@") else next(attributes) for name in events.column_names])


def _order(
    plan: Plan, slot: int, header: dict[str, Any], frames: list[memoryview], store: TableStore | None
) -> Order:
    """Decode the state of the stream order, and take its frames off `frames`."""
    recent = or_none(decode(frames.pop(0)))
    runs = [_run(store, entry, frames) for entry in header["pending"]]
    return Order(
        header["frontier_us"],
        header["max_time_us"],
        Pending([_with_columns_of(plan, slot, header["bits"], run) for run in runs]),
        header["sources"],
        header["first_us"],
        recent,
    )


def _run(store: TableStore | None, entry: dict[str, Any], frames: list[memoryview]) -> Run:
    """The run of pending events of an entry in the header; its table is the next frame if it has no name."""
    if entry["name"] is None:
        return Run(decode(frames.pop(0)))
    _, (events,), _ = stored_tables(store, entry["name"])
    return Run(events, entry["start"], entry["name"])


def _with_columns_of(plan: Plan, slot: int, bit_names: list[str], run: Run) -> Run:
    """The pending events with the columns of this plan's frames; none is in the stream of a new rule."""
    names, pending = slot_columns(plan, slot), run.events
    types = {field.name: ARROW_TYPES[field.type] for field in plan.schema.fields}
    if names == pending.column_names and tuple(bit_names) == plan.bit_names:
        return run
    pending = run.waiting()
    bits = _renumbered(pending, bit_names, plan.bit_names)
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
    return Run(pa.table(columns, names))


def _renumbered(pending: pa.Table, old: list[str], new: tuple[str, ...]) -> dict[str, npt.NDArray[np.uint64]]:
    """The columns ``@bits`` with the new numbers; a predicate that is new holds for no event."""
    place = {name: number for number, name in enumerate(old)}
    words: dict[str, npt.NDArray[np.uint64]] = {}
    for number, name in enumerate(new):
        column, bit = bits_column(number)
        word = words.setdefault(column, np.zeros(pending.num_rows, np.uint64))
        if name in place:
            old_column, old_bit = bits_column(place[name])
            word |= has_bit(numbers(pending, old_column), old_bit).astype(np.uint64) << np.uint64(bit)
    return words

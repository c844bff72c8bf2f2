"""Reads what Spark notes of a batch and of a query in a checkpoint."""

from __future__ import annotations

import json
import uuid
from typing import Any

# Spark's note that a batch is done, for a query without a watermark of Spark's
COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


def offsets_in(note: str) -> list[Any]:
    """The offset of each source in Spark's note of a batch; ValueError if the text is no such note.

    A note has a version, settings, then a line for each source. `recentProgress` has the offsets too, but
    only those of this run.
    """
    form, _, *offsets = note.splitlines()
    if form != "v1" or not offsets:
        raise ValueError("too few lines")
    return [json.loads(offset) for offset in offsets]


def first_offset_in(note: str) -> Any:
    """The offset at which Kafka was begun, in Spark's note of it; ValueError if the text is no such note."""
    form, _, offset = note.partition("\n")
    if form != "\0v1":
        raise ValueError("no version 1")
    return json.loads(offset)


def is_behind(later: Any, earlier: Any) -> bool:
    """True if offsets, or parts of them, are nowhere before others of the same sources."""
    if isinstance(earlier, dict):
        return all(is_behind(later[name], part) for name, part in earlier.items() if name in later)
    if isinstance(earlier, list):
        return len(later) == len(earlier) and all(map(is_behind, later, earlier))
    return not isinstance(earlier, int) or earlier <= later


def began_at(note: bytes) -> float | None:
    """When Spark began a batch, by its note, in seconds since 1970; None if the note does not say it."""
    try:
        return float(json.loads(note.splitlines()[1])["batchTimestampMs"]) / 1_000
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def is_commit(note: bytes) -> bool:
    """True if this is Spark's note that a batch is done, for a query without a watermark of Spark's."""
    form, _, text = note.partition(b"\n")
    try:
        return form == b"v1" and json.loads(text)["nextBatchWatermarkMs"] == 0
    except (ValueError, TypeError, KeyError):
        return False


def is_query(note: bytes) -> bool:
    """True if this is Spark's note of a query's id."""
    try:
        stored = json.loads(note)
        return list(stored) == ["id"] and str(uuid.UUID(stored["id"])) == stored["id"]
    except (ValueError, TypeError, AttributeError):
        return False

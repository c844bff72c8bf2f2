"""Whether a checkpoint is whole and of the age of its tables; asked before a query starts, because Spark would go on without.

Batch N writes, in this order: Spark's `offsets/N`, its state, `sequence/N+1.json`, the tables, and Spark's `commits/N`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.durable import RESTORE, digest
from spark_pace.spark.checkpoint.sequences import read_sequence


def require_whole(checkpoint: Path, written: Mapping[str, int] | None, tables: Collection[str]) -> None:
    """Refuse a checkpoint from which a batch would be done with another input than the first time, or never.

    Args:
        checkpoint: its folder.
        written: the last batch in each table that is there, -1 if it has none; None if that is not known.
        tables: the names of all tables.

    Raises:
        StateError: something is missing or damaged, or it is older or newer than the tables.
    """
    begun = last_batch(checkpoint / "offsets")
    done = last_batch(checkpoint / "commits")
    if begun - done not in (0, 1):
        raise StateError(
            f"{checkpoint} — must know the offsets of each batch that was done; got offsets up to batch {begun}, done up to {done}. {RESTORE}"
        )
    if written is not None:
        _require_tables(checkpoint, written, tables, begun, done)
    if begun > done:
        _require_offsets(checkpoint, begun)  # where this batch has come as far as its tables
    following = done + 1
    if not following:
        return
    begin = read_sequence(checkpoint / "sequence" / f"{following}.json")
    if begin is None:
        raise StateError(
            f"{checkpoint / 'sequence'} — must hold the numbers that batch {following} goes on from; got no {following}.json. {RESTORE}"
        )
    _require_offsets(checkpoint, done)
    if written is None:
        return
    for name, batch in begin.get("tables", {}).items():
        if written[name] != batch and not begun == written[name] > done:
            raise StateError(
                f"{checkpoint} — must be as old as its tables; got batch {batch} as the last of {name} here, batch {written[name]} there. {RESTORE}"
            )


def _require_offsets(checkpoint: Path, batch_id: int) -> None:
    kept = (read_sequence(checkpoint / "sequence" / f"{batch_id + 1}.json") or {}).get("offsets")
    if kept not in (None, offsets_digest(checkpoint, batch_id)):
        raise StateError(
            f"{checkpoint / 'offsets' / str(batch_id)} — must be as Spark wrote it; got another content. {RESTORE}"
        )


def _require_tables(
    checkpoint: Path, written: Mapping[str, int], tables: Collection[str], begun: int, done: int
) -> None:
    there = written.get("metrics", -1)
    if not done <= there <= begun:
        last = f"batch {there} as the last of metrics" if there >= 0 else "no batch in metrics"
        raise StateError(
            f"{checkpoint} — must be as old as its tables; got batch {begun} here, {last} there. {RESTORE}"
        )
    missing = [name for name in tables if name not in written]
    if missing and (done >= 0 or there >= 0):
        raise StateError(
            f"{checkpoint} — must have all its tables; got none named {', '.join(missing)}. {RESTORE}"
        )


def remove_leftovers(checkpoint: Path) -> None:
    """Remove what a first start left that ended while it wrote the first offsets: Spark would not begin beside it."""
    offsets = checkpoint / "offsets"
    if last_batch(offsets) < 0:
        for leftover in offsets.glob(".*"):
            leftover.unlink()


def offsets_digest(checkpoint: Path, batch_id: int) -> str:
    """Tells whether what Spark wrote of a batch's input has changed."""
    return digest((checkpoint / "offsets" / str(batch_id)).read_bytes())


def last_batch(log: Path) -> int:
    """The greatest number of a log's files; -1 without any. Spark needs the one before it, too, and removes older ones in any order."""
    numbers = sorted(int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit())
    if numbers and numbers[-1] > 0 and numbers[-1] - 1 not in numbers[-2:]:
        raise StateError(
            f"{log} — must have a file for each batch; got none for batch {numbers[-1] - 1}. {RESTORE}"
        )
    return numbers[-1] if numbers else -1


def last_offsets(checkpoint: Path) -> list[Any]:
    """The offsets of the sources after the last batch that was begun; nothing before the first.

    Raises:
        StateError: the file is damaged.
    """
    last = last_batch(checkpoint / "offsets")
    if last < 0:
        return []
    path = checkpoint / "offsets" / str(last)
    try:
        version, _, *offsets = path.read_text(encoding="utf-8").splitlines()
        if version != "v1" or not offsets:
            raise ValueError("too few lines")
        return [json.loads(offset) for offset in offsets]
    except ValueError as error:
        raise StateError(
            f"{path} — must be as Spark wrote it; got damaged text ({error}). {RESTORE}"
        ) from error

"""Whether a checkpoint is whole and of the age of its tables; asked before a query starts, because Spark would go on without.

Batch N writes, in this order: Spark's `offsets/N`, its state, `sequence/N+1.json`, the tables, and Spark's `commits/N`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_pace.errors import StateError
from spark_pace.spark.durable import RESTORE


def require_whole(checkpoint: Path, written: int | None, missing: Sequence[str]) -> None:
    """Refuse a checkpoint from which a batch would be done with another input than the first time, or never.

    Args:
        checkpoint: its folder.
        written: the last batch in the tables, -1 if there is none; None if that is not known.
        missing: tables that should be there and are not.

    Raises:
        StateError: something is missing, or it is older or newer than the tables.
    """
    begun = last_batch(checkpoint / "offsets")
    done = last_batch(checkpoint / "commits")
    if begun - done not in (0, 1):
        raise StateError(f"{checkpoint} — must know the offsets of each batch that was done; got offsets up to batch {begun}, done up to {done}. {RESTORE}")
    if written is not None and not done <= written <= begun:
        raise StateError(f"{checkpoint} — must be as old as its tables; got batch {begun} here, batch {written} there. Bring back what belongs together.")
    if written is not None and written >= 0 and missing:
        raise StateError(f"{checkpoint} — must have all its tables; got none named {', '.join(missing)}. {RESTORE}")
    following = done + 1
    if following and not (checkpoint / "sequence" / f"{following}.json").exists():
        raise StateError(f"{checkpoint / 'sequence'} — must hold the numbers that batch {following} goes on from; got no {following}.json. {RESTORE}")


def last_batch(log: Path) -> int:
    """The greatest number of a log's files; -1 without any. Spark needs the one before it, too, and removes older ones in any order."""
    numbers = sorted(int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit())
    if len(numbers) > 1 and numbers[-2] != numbers[-1] - 1:
        raise StateError(f"{log} — must have a file for each batch; got none for batch {numbers[-1] - 1}. {RESTORE}")
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
        raise StateError(f"{path} — must be as Spark wrote it; got damaged text ({error}). {RESTORE}") from error

"""Stores what a batch begins with: the numbers of the next matches and the frontier.

The batch before writes this file before it touches a table. So a batch that runs again after a crash begins
as it did the first time: its matches get the same numbers, and the same events are late.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields

from spark_pace.core.columns import NO_FRONTIER
from spark_pace.core.intake.sift import Past
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.file_access import RESTORE, read_json, write_json


@dataclass(frozen=True)
class Begin:
    """The values with which a batch begins; the fields' names are the keys in the file.

    Attributes:
        out_seq: the number of the next match of each rule; 0 for rules that are missing here.
        frontier_us: the frontier, in microseconds since 1970.
        tables: the last batch that was appended to each table, as far as it is known.
        offsets: the digest of Spark's note of what the batch before has read; None for the first batch.
        chunks: the names of the chunks in the slots' states.
        reached: the greatest event time of each source, in microseconds since 1970; empty unless an event is
            late because of earlier records of its source.
    """

    out_seq: dict[str, int]
    frontier_us: int
    tables: dict[str, int] = field(default_factory=dict)
    offsets: str | None = None
    chunks: list[str] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)

    @property
    def past(self) -> Past:
        """The facts about earlier records that the batch's tasks need."""
        return Past(self.frontier_us, self.reached)


FIRST = Begin({}, NO_FRONTIER)  # batch 0 begins with this; it has no file
_KEYS = {part.name for part in fields(Begin)}


def write_begin(checkpoint: Checkpoint, batch_id: int, begin: Begin) -> None:
    """Store what a batch begins with."""
    write_json(checkpoint.sequence(batch_id), asdict(begin))


def read_begin(checkpoint: Checkpoint, batch_id: int) -> Begin | None:
    """Read what a batch begins with; None if there is no file for it.

    Raises:
        StateError: the file is damaged.
    """
    path = checkpoint.sequence(batch_id)
    stored = read_json(path)
    if stored is None:
        return None
    whole = set(stored) == _KEYS
    if not whole or not isinstance(stored["out_seq"], dict) or not isinstance(stored["frontier_us"], int):
        raise StateError(f"{path} — must hold out_seq and frontier_us; got {str(stored)[:100]}. {RESTORE}")
    return Begin(**stored)


def kept_pasts(checkpoint: Checkpoint) -> dict[int, Past]:
    """The facts about earlier records, for each batch that may run next, by its number.

    Raises:
        StateError: a file is damaged.
    """
    first = checkpoint.last_begun()
    batch_ids = [batch_id for batch_id in checkpoint.kept_sequences() if batch_id >= first]
    kept = {batch_id: read_begin(checkpoint, batch_id) for batch_id in batch_ids}
    return {batch_id: begin.past for batch_id, begin in kept.items() if begin is not None}

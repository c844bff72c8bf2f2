"""Stores what a batch begins with: the next numbers, the frontier, the state of rules over rules.

The batch before writes these files before it touches a table. So a batch that runs again after a crash begins
as it did the first time: its matches get the same numbers, the same events are late, and rules over rules
find the same matches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields

from spark_pace.core.intake.sift import Past
from spark_pace.core.levels import Levels
from spark_pace.core.plan.plan import Plan
from spark_pace.core.tables import NO_FRONTIER
from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.files import RESTORE, damaged, digest, read_json, write_json
from spark_pace.spark.checkpoint.checkpoint import Checkpoint


@dataclass
class LevelStates:
    """The state of a plan's rules over rules, from batch to batch.

    The state after the last batch stays in memory, so that the next batch need not read it.
    """

    plan: Plan
    checkpoint: Checkpoint
    _running: tuple[int, Levels] | None = None

    def begin(self, batch_id: int, known: str | None) -> Levels:
        """The state at the beginning of a batch; `known` is as in `read_state`.

        Raises:
            StateError: it is missing, or another one.
        """
        running, self._running = self._running, None  # if the batch fails and runs again, it reads the file
        if running is not None and running[0] == batch_id:
            return running[1]
        snapshot = read_state(self.checkpoint, batch_id, known) if self.plan.levels else None
        return Levels(self.plan, snapshot, self.checkpoint.chunks)

    def write(self, batch_id: int, levels: Levels) -> tuple[str | None, int]:
        """Store the state that a batch begins with, in memory too; return `Begin.levels` and its size."""
        self._running = (batch_id, levels)
        if not self.plan.levels:
            return None, 0
        snapshot = levels.snapshot()
        files.write(self.checkpoint.level_state(batch_id), snapshot)
        return digest(snapshot), len(snapshot)


def read_state(checkpoint: Checkpoint, batch_id: int, known: str | None) -> bytes | None:
    """The stored state that a batch begins with.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch.
        known: the digest of the state (`Begin.levels`); None: there is none.

    Raises:
        StateError: the file is missing, or has another content.
    """
    if known is None:
        return None
    path = checkpoint.level_state(batch_id)
    content = files.read(path)
    if content is None or digest(content) != known:
        of = f"{checkpoint.sequence(batch_id).name} has the checksum of"
        raise damaged(path, f"no file, or another content than {of}")
    return content


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
        states: the batch that has left the slots their states; -1: none has.
        levels: the digest of the state of rules over rules; None: there is none.
        layout: the number of the layout by which the batch before was done.
    """

    out_seq: dict[str, int]
    frontier_us: int
    tables: dict[str, int] = field(default_factory=dict)
    offsets: str | None = None
    chunks: list[str] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    states: int = -1
    levels: str | None = None
    layout: int = 0

    @property
    def past(self) -> Past:
        """The facts about earlier records that the batch's tasks need."""
        return Past(self.frontier_us, self.reached)


FIRST = Begin({}, NO_FRONTIER)  # batch 0 begins with this; it has no file
_KEYS = {part.name for part in fields(Begin)}


@dataclass
class Begins:
    """What the batches of a query begin with, kept in memory, so that a store is not asked for it again.

    Attributes:
        checkpoint: where it is stored.
    """

    checkpoint: Checkpoint
    _known: dict[int, Begin] = field(default_factory=dict)
    _last_written: int = -1  # by this query

    def of(self, batch_id: int) -> Begin:
        """What a batch begins with.

        Raises:
            StateError: there is no file for it, or a damaged one.
        """
        begin = self._read(batch_id) if batch_id else FIRST
        if begin is None:
            must = f"must hold the numbers that batch {batch_id} goes on from"
            path = self.checkpoint.sequence(batch_id)
            raise StateError(f"{path} — {must}; got no file. {RESTORE}")
        return begin

    def kept(self, batch_id: int) -> Begin | None:
        """What an earlier try of a batch has stored for the one behind it; None if there was none.

        A batch behind one of this query has not run before.
        """
        is_first_try = batch_id <= self._last_written and batch_id + 1 not in self._known
        return None if is_first_try else self._read(batch_id + 1)

    def write(self, batch_id: int, begin: Begin) -> set[str]:
        """Store what a batch begins with; return the chunks that only the batch two before it needed.

        That batch will not run again.
        """
        write_begin(self.checkpoint, batch_id, begin)
        before, last = self._read(batch_id - 2), self.of(batch_id - 1)
        self._known = {batch_id - 1: last, batch_id: begin}
        self._last_written = batch_id
        return set(before.chunks if before else ()) - {*last.chunks, *begin.chunks}

    def _read(self, batch_id: int) -> Begin | None:
        is_new = batch_id > 0 and batch_id not in self._known
        if is_new and (found := read_begin(self.checkpoint, batch_id)):
            self._known[batch_id] = found
        return self._known.get(batch_id)


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


def kept_begins(checkpoint: Checkpoint) -> dict[int, Begin]:
    """What each batch that may run next begins with, by its number; beside them the first batch.

    Raises:
        StateError: a file is damaged.
    """
    last = checkpoint.last_begun()
    kept = {batch_id: read_begin(checkpoint, batch_id) for batch_id in (last, last + 1)}
    return {0: FIRST, **{batch_id: begin for batch_id, begin in kept.items() if begin is not None}}

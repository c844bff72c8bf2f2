"""Stores the state of rules over rules: a file for each batch, with the state that it begins with.

The batch before writes the file before it touches a table, like the numbers in
`spark_pace.spark.checkpoint.batch_begin`. So a batch that runs again finds the same matches.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_pace.core.levels import Levels
from spark_pace.core.plan.plan import Plan
from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.files import RESTORE, damaged, digest
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
        return Levels(self.plan, snapshot, self.checkpoint.chunks())

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
    if content is None:
        must = f"must hold the state that the rules that read matches begin batch {batch_id} with"
        raise StateError(f"{path} — {must}; got no file. {RESTORE}")
    if digest(content) != known:
        raise damaged(path, f"another content than {checkpoint.sequence(batch_id).name} has the checksum of")
    return content

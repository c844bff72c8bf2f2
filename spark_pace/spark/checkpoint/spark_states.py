"""Looks whether S3 has what Spark keeps of a batch.

The class of Spark that writes its files to S3 (`AbortableStreamBasedCheckpointFileManager`) only logs that a
file was refused, and goes on as if it were there. Notes are written again (`claims.mend_notes`); a state
cannot be, so its batch must not be done without it.
"""

from __future__ import annotations

import re

from spark_pace.errors import SetupError
from spark_pace.io.files.store_path import StorePath
from spark_pace.spark.checkpoint.checkpoint import Checkpoint


def require_states(checkpoint: Checkpoint, batch_id: int, slots: int) -> None:
    """Refuse to go on behind a batch whose states have not reached S3; elsewhere Spark itself does.

    S3 is asked for a list, by one request for each thousand files.

    Args:
        checkpoint: the checkpoint.
        batch_id: the batch, whose tasks have ended.
        slots: how many have a state.

    Raises:
        SetupError: one is not there.
    """
    path = checkpoint.path / "state" / "0"
    if not isinstance(path, StorePath) or not path.is_in_s3:
        return
    from spark_pace.io.files.store import Store

    of_batch = re.compile(rf"(\d+)/{batch_id + 1}(?:_[^/.]*)?\.\w+")
    found = map(of_batch.fullmatch, Store(str(path), path.settings).look(""))
    there = len({file[1] for file in found if file})
    if there < slots:
        must = f"must have Spark's state of batch {batch_id} for each of {slots} slots"
        got = f"it for {there}: the store has refused the others"
        do = "Start the job again: it does the batch again."
        raise SetupError(f"{checkpoint.path / 'state'} — {must}; got {got}. {do}")

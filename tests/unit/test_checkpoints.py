"""Which checkpoints are whole. No Spark; `spark/test_damaged_checkpoints.py` has what becomes of those that are not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint import require_whole


def checkpoint(folder: Path, begun: Iterable[int], done: Iterable[int], following: int) -> Path:
    for name, numbers in (("offsets", begun), ("commits", done), ("sequence", ())):
        (folder / name).mkdir()
        for number in numbers:
            (folder / name / str(number)).touch()
    (folder / "sequence" / f"{following}.json").touch()
    return folder


def test_a_stop_while_old_batches_are_removed_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """Spark removes them in the order in which the file system lists them: 10 before 9."""
    require_whole(checkpoint(tmp_path, [8, 9, *range(11, 22)], [9, *range(11, 21)], 21), 20, [])


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_the_batch_before_the_last_must_be_there(tmp_path: Path, log: str) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 9), 9)
    (whole / log / "7").unlink()
    with pytest.raises(StateError, match=rf"{log} — must have a file for each batch; got none for batch 7\. Restore"):
        require_whole(whole, 8, [])

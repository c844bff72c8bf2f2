"""Keeps what a running job says of its files: in what they differ from what runs.

The job writes it while it runs, and `spark-pace status` shows it. A job removes it when it starts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from spark_pace.io.files import files
from spark_pace.spark.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True)
class FilesNote:
    """What differs, in words.

    Attributes:
        rules: why the rules of the files are not those that run; empty if they are.
        keys: the keys of the job file, other than `rules`, that changed since the start.
        at: when the job has noticed it, in UTC.
    """

    rules: str
    keys: tuple[str, ...]
    at: str


def write_note(checkpoint: Checkpoint, note: FilesNote) -> None:
    """Keep what differs."""
    files.write_json(checkpoint.files_note, asdict(note))


def remove_note(checkpoint: Checkpoint) -> None:
    """Say that nothing differs."""
    files.remove(checkpoint.files_note)


def read_note(checkpoint: Checkpoint) -> FilesNote | None:
    """Read what a running job says of its files; None if they say what runs.

    Raises:
        StateError: the note is damaged.
    """
    stored = files.read_json(checkpoint.files_note)
    if stored is None:
        return None
    return FilesNote(stored["rules"], tuple(stored["keys"]), stored["at"])

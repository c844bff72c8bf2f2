"""How far a target has come: a small file for each target in the checkpoint.

The file is written before a piece is sent, with the piece, and without one when nothing more is to be sent.
So after a crash it is known which rows may have been sent already: those of the piece that the file names.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from spark_pace.errors import StateError
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.files.files import read_json, write_json


@dataclass(frozen=True)
class Place:
    """How far a table was sent.

    Attributes:
        batch: the first batch whose rows were not all sent.
        row: how many of its rows were sent.
    """

    batch: int
    row: int = 0


@dataclass(frozen=True)
class Sending:
    """The piece that is being sent: rows of a table from its place to the row `until` of the same batch."""

    table: str
    until: int


@dataclass(frozen=True)
class Failure:
    """The last failure of a target: since when it is this one (UTC), what it was, and whether it is over."""

    at: str
    text: str
    over: bool = False


@dataclass(frozen=True)
class Cursor:
    """How far a target has come.

    Attributes:
        places: of the tables whose rows it is sent.
        sending: the piece that is being sent; None if none is.
        failure: the last failure; None if there was none.
    """

    places: dict[str, Place]
    sending: Sending | None = None
    failure: Failure | None = None

    def at(self, table: str, place: Place) -> Cursor:
        """This cursor with another place of a table."""
        return replace(self, places={**self.places, table: place})


def short(checkpoint_id: str) -> str:
    """Of the id of a checkpoint the beginning, which alerts and cursors have in them."""
    return checkpoint_id[:8]


def read_cursor(path: AnyPath, checkpoint: str) -> Cursor | None:
    """The cursor in a file of a checkpoint with the id of which `short` is `checkpoint`; None without one.

    Raises:
        StateError: the file is damaged.
    """
    try:
        stored = read_json(path, checkpoint)
        return None if stored is None else _cursor(stored)
    except (StateError, KeyError, TypeError, AttributeError) as error:
        do = "Restore the whole checkpoint, or remove this file: its target then begins as a new one."
        raise StateError(f"{path} — must be as this program wrote it; got another content. {do}") from error


def write_cursor(path: AnyPath, cursor: Cursor, checkpoint: str) -> None:
    """Write a cursor to its file."""
    write_json(path, asdict(cursor), checkpoint)


def _cursor(stored: dict[str, Any]) -> Cursor:
    places = {table: Place(**place) for table, place in stored["places"].items()}
    sending, failure = stored["sending"], stored["failure"]
    return Cursor(
        places,
        None if sending is None else Sending(**sending),
        None if failure is None else Failure(**failure),
    )

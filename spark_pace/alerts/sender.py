"""What every target of alerts must do, and how long to wait after it failed.

A target is a dataclass of its keys in `spark_pace.job_file.alerts`, which names its `Sender`, a file beside
this one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_FIRST_SECONDS, _LONGEST_SECONDS = 0.25, 30.0
_LONGEST_ASKED_SECONDS = 3600.0
_COUNTED = 8  # failures in a row; from there on the pause is the longest


@dataclass(frozen=True)
class Alert:
    """A row of a table as it is sent.

    Attributes:
        id: the same each time the row is sent.
        key: alerts with the same key stay in order: the rule, or the table where there is none.
        text: a JSON object.
    """

    id: str
    key: str
    text: str


@dataclass(frozen=True)
class Refusal:
    """An alert that its place will never accept, with the code of the answer and the beginning of it."""

    alert: Alert
    status: str
    reply: str


class SendError(Exception):
    """A place has not accepted a message; it is sent again.

    Attributes:
        may_have_arrived: False if the place has surely not got it.
        pause_seconds: how long the place asks to wait; None if it does not.
    """

    def __init__(self, got: str, *, may_have_arrived: bool, pause_seconds: float | None = None) -> None:
        """Take the text of what happened."""
        super().__init__(got)
        self.may_have_arrived = may_have_arrived
        self.pause_seconds = pause_seconds


class Sender(Protocol):
    """Sends alerts to one place. It is made of the place, as `resolved` gives it, and the target.

    One thread calls it.

    Attributes:
        most_rows: how many alerts it takes at once.
        refuses_all: True if it refuses all alerts of a call where it refuses one: each is then sent alone.
    """

    most_rows: int
    refuses_all: bool

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Send alerts in their order, and return once the place has accepted or refused each of them.

        Raises:
            SendError: some may not have been accepted.
        """

    def close(self) -> None:
        """Let go of the place; `send` begins anew."""


def pause_seconds(failures: int, asked_seconds: float | None) -> float:
    """How long to wait after failures in a row: not, then longer and longer, with chance in it.

    It is at least what the place asks for, within an hour.
    """
    grown = _FIRST_SECONDS * 2 ** (min(failures, _COUNTED) - 1) + random.random() if failures > 1 else 0.0
    return max(min(grown, _LONGEST_SECONDS), min(asked_seconds or 0.0, _LONGEST_ASKED_SECONDS))

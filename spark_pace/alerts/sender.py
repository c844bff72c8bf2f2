"""What every place that alerts are sent to must do, and how long to wait after it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from urllib3.util import Retry

_FIRST_SECONDS, _LONGEST_SECONDS = 0.25, 30.0
_LONGEST_ASKED_SECONDS = 3600.0
_COUNTED = 12  # failures in a row; from there on the pause is the longest


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

    def repeated(self) -> Alert:
        """The alert as one that may have been sent before; `repeat` comes before all texts with quotes."""
        return replace(self, text=self.text.replace('"repeat": false', '"repeat": true', 1))


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
    """Sends alerts to one place. One thread calls it."""

    most_rows: int

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Send alerts in their order, and return once the place has accepted or refused each of them.

        Raises:
            SendError: some may not have been accepted.
        """

    def close(self) -> None:
        """Let go of the place; `send` begins anew."""


class Pauses:
    """The pauses after failures in a row: none, then longer and longer ones, with chance in them."""

    def __init__(self) -> None:
        """Begin without a failure."""
        self.reset()

    def reset(self) -> None:
        """Forget the failures: the last message was accepted."""
        self._failures = Retry(
            total=None, backoff_factor=_FIRST_SECONDS, backoff_max=_LONGEST_SECONDS, backoff_jitter=1
        )

    def after_failure(self, asked_seconds: float | None) -> float:
        """Add a failure, and return the seconds to wait: what the place asks for at least, within an hour."""
        grown = self._failures.increment("POST", "")
        self._failures = grown.new(history=grown.history[-_COUNTED:])
        asked = min(asked_seconds or 0.0, _LONGEST_ASKED_SECONDS)
        return max(self._failures.get_backoff_time(), asked)

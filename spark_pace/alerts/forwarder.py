"""Sends the rows of a job's tables to one target, in a thread of its own, beside the batches of the job.

The tables are the queue, so a target that does not answer delays its alerts and nothing else. The cursor
moves when a piece was accepted; after a crash before that the piece is sent again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from spark_pace.alerts.cursor import Cursor, Failure, Place, Sending, write_cursor
from spark_pace.alerts.messages import Origin, alerts_of
from spark_pace.alerts.refused_table import RefusedTable
from spark_pace.alerts.sender import Pauses, Refusal, Sender, SendError
from spark_pace.alerts.table_rows import Piece, TableRows
from spark_pace.errors import SparkPaceError, one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import AlertCounts

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_REPLY_CHARACTERS = 500


@dataclass(frozen=True)
class Target:
    """What a forwarder works with.

    Attributes:
        name: of the target.
        sender: its place.
        tables: whose rows it is sent.
        cursor_file: where its cursor is kept.
        refused: the table of what it refuses.
        origin: where its alerts come from.
        masked: hides secrets in a text.
    """

    name: str
    sender: Sender
    tables: tuple[TableRows, ...]
    cursor_file: AnyPath
    refused: RefusedTable
    origin: Origin
    masked: Callable[[str], str]


class Forwarder:
    """Sends to one target.

    Attributes:
        counts: how its alerts stand.
        moved_at: when it last got on, by `time.monotonic`.
    """

    def __init__(self, target: Target, cursor: Cursor) -> None:
        """Go on at a cursor. Nothing is sent before `start`."""
        self.counts = AlertCounts(target.name)
        self.moved_at = time.monotonic()
        self._target, self._cursor = target, cursor
        self._stored, self._counted = cursor, dict(cursor.places)
        self._pauses = Pauses()
        self._failing_since = 0.0
        self._ended, self._woken = threading.Event(), threading.Event()
        self._asked = self._answered = 0
        self._writing, self._is_ended = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name=f"alerts {target.name}", daemon=True)
        if cursor.failure is not None:
            self.counts.failure = cursor.failure.text

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def look(self) -> None:
        """Look for new rows at once; otherwise this happens every second."""
        self._asked += 1
        self._woken.set()

    @property
    def is_done(self) -> bool:
        """True if all rows that were there at the last call of `look` were sent."""
        return self._answered >= self._asked

    def stop(self) -> None:
        """Send no further message."""
        self._ended.set()
        self._woken.set()

    def end(self, patience_seconds: float) -> None:
        """Wait a while for a message under way, after `stop`; if it ends later, it changes nothing here."""
        self._thread.join(max(0.0, patience_seconds))
        with self._writing:  # from here on the cursor belongs to the next run
            self._is_ended = True

    def _work(self) -> None:
        while not self._ended.is_set():
            asked = self._asked
            self._woken.clear()
            if self._tried(self._send_all) and not self._ended.is_set():
                self._well()
                self._answered = asked
                self._woken.wait(_LOOK_SECONDS)
        self._target.sender.close()

    def _send_all(self) -> None:
        """Send the rows of all tables until there are no more, commit by commit."""
        self._count()
        # what a crash has left comes first, because the cursor has room for one piece
        under_way = self._cursor.sending
        for table in self._target.tables:
            if under_way is not None and under_way.table == table.table:
                self._send_commit(table)
        found = True
        while found:
            found = True in [self._send_commit(table) for table in self._target.tables]
            self._count()
        if self._cursor != self._stored:
            self._write(self._cursor)

    def _send_commit(self, table: TableRows) -> bool:
        """Send the rows of the next commit of a table; False if there is none, or the forwarder ends."""
        found = False
        for piece in table.pieces(self._cursor, self._target.sender.most_rows):
            if self._ended.is_set() or not self._delivered(table.table, piece):
                return False
            found = True
        return found

    def _delivered(self, table: str, piece: Piece) -> bool:
        """Send a piece until it is accepted, and move the cursor; False if the forwarder ends before."""
        if piece.rows.num_rows:
            at = self._cursor.at(table, piece.begin)
            # a piece that a crash has left may have been larger than those of now
            until = piece.until if at.sending is None else max(piece.until, at.sending.until)
            self._write(replace(at, sending=Sending(table, until)))
            if not self._accepted(table, piece):
                return False
        numbers = {**self._cursor.next_out_seq, **piece.next_out_seq}
        moved, sending = self._cursor.at(table, piece.behind), self._cursor.sending
        if sending is not None and not 0 < piece.until < sending.until:
            sending = None
        self._cursor = replace(moved, next_out_seq=numbers, sending=sending)
        self.moved_at = time.monotonic()
        self.counts.waiting = max(0, self.counts.waiting - piece.rows.num_rows)
        return True

    def _accepted(self, table: str, piece: Piece) -> bool:
        """Send a piece until each alert is accepted or refused; False if the forwarder ends before."""
        is_repeat = piece.is_repeat
        while not self._ended.is_set():
            alerts = alerts_of(self._target.origin, table, piece.rows, is_repeat=is_repeat)
            try:
                refused = self._target.sender.send(alerts)
            except SendError as error:
                is_repeat |= error.may_have_arrived
                self._count()
                self._failed(str(error), error.pause_seconds)
            else:
                return self._settled(len(alerts), refused)
        if not is_repeat:  # nobody has got it, so the next run need not call it a repeat
            self._noted(replace(self._cursor, sending=None))
        return False

    def _settled(self, count: int, refused: list[Refusal]) -> bool:
        """Put refused alerts into their table, and count; False if the forwarder ends before.

        A target may answer with what it was sent, its secrets too.
        """
        shown = [one_line(self._target.masked(one.reply), _REPLY_CHARACTERS) for one in refused]
        refused = [replace(one, reply=reply) for one, reply in zip(refused, shown, strict=True)]
        while refused and not self._tried(partial(self._target.refused.add, self._target.name, refused)):
            if self._ended.is_set():
                return False
        if refused and not self.counts.refused:
            got = f"{refused[0].status} {refused[0].reply}".rstrip()
            told = "refuses alerts, which go to the table alerts_refused; the first with"
            _LOG.warning("alerts.%s — %s: %s", self._target.name, told, got)
        self.counts.sent += count - len(refused)
        self.counts.refused += len(refused)
        self._well()
        return True

    def _tried(self, step: Callable[[], Any]) -> bool:
        """Take a step that reads or writes files; False if it fails, after a pause."""
        try:
            step()
        except Exception as error:  # whatever is wrong with the files, it must not end the thread
            is_ours = isinstance(error, (SparkPaceError, OSError))
            self._failed(str(error) if is_ours else f"{type(error).__name__}: {error}", None)
            return False
        return True

    def _failed(self, got: str, asked_seconds: float | None) -> None:
        """Note a failure, say it if it is the first, and wait."""
        text = one_line(self._target.masked(got))
        known = self._cursor.failure
        self.counts.failures += 1
        self.counts.failure = text
        begins = not self.counts.is_failing
        if begins or known is None or known.text != text:
            now = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%SZ}"
            self._noted(replace(self._cursor, failure=Failure(now, text)))
        if begins:
            self.counts.is_failing, self._failing_since = True, time.monotonic()
            must = "must accept what it is sent"
            do = f"Its alerts ({self.counts.waiting:,} so far) wait until it does."
            _LOG.warning("alerts.%s — %s; got %s. %s", self._target.name, must, text, do)
        self._ended.wait(self._pauses.after_failure(asked_seconds))

    def _well(self) -> None:
        """Note that messages are accepted, and say it if one of this run was not."""
        failure = self._cursor.failure
        if failure is not None and not failure.over:
            self._noted(replace(self._cursor, failure=replace(failure, over=True)))
        if self.counts.is_failing:
            self._pauses.reset()
            self.counts.is_failing = False
            seconds = time.monotonic() - self._failing_since
            _LOG.warning("alerts.%s — accepts alerts again, after %.0f s.", self._target.name, seconds)

    def _noted(self, cursor: Cursor) -> None:
        """Store a cursor that only says more of what happened; if that fails, it is said later."""
        with suppress(OSError):
            self._write(cursor)

    def _write(self, cursor: Cursor) -> None:
        with self._writing:
            if not self._is_ended:
                write_cursor(self._target.cursor_file, cursor, self._target.origin.checkpoint)
                self._cursor = self._stored = cursor

    def _count(self) -> None:
        """Add the rows of new commits to those that wait."""
        for table in self._target.tables:
            with suppress(SparkPaceError, OSError):  # what cannot be read is said where it is to be sent
                self._count_rows(table)

    def _count_rows(self, table: TableRows) -> None:
        sent, since = self._cursor.places[table.table], self._counted[table.table]
        since = sent if sent.following > since.following else since
        last = since.following
        while table.log.has(last):
            last += 1
        if last > since.following:
            self.counts.waiting += table.waiting(since, last - 1)
            self._counted[table.table] = Place(last, 0, 0)

"""Sends the rows of a job's tables to its targets, each in a thread of its own, beside the batches.

The tables are the queue, so a target that does not answer delays its alerts and nothing else. The cursor
moves when a piece was accepted; after a crash before that the piece is sent again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pyarrow as pa

from spark_pace.alerts.messages import Origin, alerts_of, fields_of
from spark_pace.alerts.queue import (
    Cursor,
    Failure,
    Place,
    Queue,
    Sending,
    TableRows,
    add_refused,
    read_cursor,
    short,
    write_cursor,
)
from spark_pace.alerts.sender import Refusal, Sender, SendError, pause_seconds
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import SparkPaceError, one_line, shown_time
from spark_pace.io.metrics import AlertCounts, BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.job_file.alerts import AlertTarget
from spark_pace.job_file.secrets import Secrets

_LOG = logging.getLogger(__name__)
_REPLY_CHARACTERS = 500


class _EndedError(BaseException):
    """Ends the work of a forwarder that is to send no more; nothing inside takes it for a failure."""


@dataclass(eq=False)
class Forwarder:
    """Sends to one target.

    Attributes:
        target: the target.
        sender: what sends to its place.
        queue: where its alerts wait.
        origin: where its alerts come from.
        masked: hides secrets in a text.
        cursor: where it goes on.
        done: the last batch that is there, as far as it has heard.
        counts: how its alerts stand.
        moved_at: when it last got on, by `time.monotonic`.
    """

    target: AlertTarget
    sender: Sender
    queue: Queue
    origin: Origin
    masked: Callable[[str], str]

    def __post_init__(self) -> None:
        """Find out where the target goes on, and send nothing before `start`."""
        name, queue = self.target.name, self.queue
        self.counts = AlertCounts(name)
        self.moved_at = time.monotonic()
        self.done = queue.done
        self._tables = tuple(TableRows(queue.root, table, self.target.rules) for table in self.target.tables)
        self._failures = 0  # in a row
        self._failing_since = 0.0
        self._ended, self._woken = threading.Event(), threading.Event()
        self._asked = self._answered = 0
        self._writing, self._is_ended = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name=f"alerts {name}", daemon=True)
        stored = None if queue.is_new else read_cursor(queue.cursor_file(name), self.origin.checkpoint)
        self.cursor = self._stored = _cursor_of(stored, self.target.tables, queue.done)
        if self.cursor != stored:
            self._write(self.cursor)
        if self.cursor.failure is not None:
            self.counts.failure = self.cursor.failure.text

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def look(self, batch: BatchReport | None = None) -> None:
        """Look for rows to send, unless a batch of which all rows are there has none."""
        if batch is not None:
            is_next = batch.batch_id <= self.done + 1  # else another driver has done those between
            rows = sum(table.count(batch) for table in self._tables)
            self.done = max(self.done, batch.batch_id)
            self.counts.waiting += rows  # until they are counted; who fails for long counts nothing
            if is_next and not rows:
                return
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
        with suppress(_EndedError):
            while not self._ended.is_set():
                asked = self._asked
                self._woken.clear()
                if self._tried(self._send_all) and not self._ended.is_set():
                    self._well()
                    self._answered = asked
                    self._woken.wait()
        if self.cursor != self._stored:  # pieces that were accepted are no repeats
            self._noted(self.cursor)
        self.sender.close()
        with suppress(SparkPaceError, OSError):
            self._count(self.done)  # what the next start has to send

    def _send_all(self) -> None:
        """Send the rows of all tables up to the last batch that is there, batch by batch."""
        done = self.done
        for batch, table in self._count(done):
            self._send_batch(batch, table)
        old = self.cursor.places
        places = {name: Place(done + 1) if place.batch <= done else place for name, place in old.items()}
        self.cursor = replace(self.cursor, places=places, sending=None)
        if self.cursor != self._stored:
            self._write(self.cursor)

    def _send_batch(self, batch: int, table: TableRows) -> None:
        """Send what a batch has written to a table; of a piece that a crash has left each row is a repeat."""
        place, sending = self.cursor.places[table.table], self.cursor.sending
        is_of = sending is not None and (sending.table, place.batch) == (table.table, batch)
        at_risk = sending.until if sending is not None and is_of else 0
        row, most, found = place.row if place.batch == batch else 0, 0, 0
        while found == most:
            most = self.sender.most_rows
            most = min(most, at_risk - row) if row < at_risk else most
            rows = table.rows(batch, row, most)
            found = rows.num_rows  # fewer than asked for are the last ones
            if found:
                self._go_on()
                self._deliver(table, Place(batch, row), rows, row < at_risk)
            row += found
        self.cursor = replace(self.cursor.at(table.table, Place(batch + 1)), sending=None)

    def _go_on(self) -> None:
        if self._ended.is_set():
            raise _EndedError

    def _deliver(self, table: TableRows, begin: Place, rows: pa.Table, is_repeat: bool) -> None:
        """Send rows until they are accepted, and move the cursor."""
        at, until = self.cursor.at(table.table, begin), begin.row + rows.num_rows
        # a piece that a crash has left may have been larger than those of now
        left = max(until, at.sending.until) if is_repeat and at.sending is not None else until
        self._write(replace(at, sending=Sending(table.table, left)))
        self._keep(self._sent(table.table, rows, is_repeat=is_repeat))
        sending = self.cursor.sending if until < left else None
        self.cursor = replace(self.cursor.at(table.table, Place(begin.batch, until)), sending=sending)
        self.counts.waiting = max(0, self.counts.waiting - rows.num_rows)

    def _sent(self, table: str, rows: pa.Table, *, is_repeat: bool) -> list[Refusal]:
        """Send rows until each alert is accepted or refused, and return what was refused."""
        while not self._ended.is_set():
            alerts = alerts_of(self.origin, table, rows, is_repeat=is_repeat)
            try:
                refused = self.sender.send(alerts)
            except SendError as error:
                is_repeat |= error.may_have_arrived
                self._failed(str(error), error.pause_seconds)
            else:
                if self.sender.refuses_all and len(refused) > 1:  # perhaps for one of them
                    alone = (rows.slice(place, 1) for place in range(rows.num_rows))
                    return [one for row in alone for one in self._sent(table, row, is_repeat=True)]
                self.moved_at = time.monotonic()
                self.counts.sent += len(alerts) - len(refused)
                self._well()
                return refused
        if not is_repeat:  # nobody has got it, so the next run need not call it a repeat
            self._noted(replace(self.cursor, sending=None))
        raise _EndedError

    def _keep(self, refused: list[Refusal]) -> None:
        """Put the refused alerts of a piece into their table.

        A target may answer with what it was sent, its secrets too.
        """
        refused = [replace(one, reply=one_line(self.masked(one.reply), _REPLY_CHARACTERS)) for one in refused]
        while refused and not self._tried(partial(add_refused, self.queue.root, self.target.name, refused)):
            self._go_on()
        if refused and not self.counts.refused:
            got = f"{refused[0].status} {refused[0].reply}".rstrip()
            told = "refuses alerts, which go to the table alerts_refused; the first with"
            _LOG.warning("alerts.%s — %s: %s", self.target.name, told, got)
        self.counts.refused += len(refused)

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
        text = one_line(self.masked(got))
        known = self.cursor.failure
        self.counts.failures += 1
        self.counts.failure = text
        begins = not self.counts.is_failing
        if begins or known is None or known.text != text:
            now = shown_time(datetime.now(timezone.utc))
            self._noted(replace(self.cursor, failure=Failure(now, text)))
        if begins:
            self.counts.is_failing, self._failing_since = True, time.monotonic()
            must = "must accept what it is sent"
            do = f"Its alerts ({self.counts.waiting:,} so far) wait until it does."
            _LOG.warning("alerts.%s — %s; got %s. %s", self.target.name, must, text, do)
        self._failures += 1
        self._ended.wait(pause_seconds(self._failures, asked_seconds))

    def _well(self) -> None:
        """Note that messages are accepted, and say it if one of this run was not."""
        failure = self.cursor.failure
        if failure is not None and not failure.over:
            self._noted(replace(self.cursor, failure=replace(failure, over=True)))
        if self.counts.is_failing:
            self._failures, self.counts.is_failing = 0, False
            seconds = time.monotonic() - self._failing_since
            _LOG.warning("alerts.%s — accepts alerts again, after %.0f s.", self.target.name, seconds)

    def _noted(self, cursor: Cursor) -> None:
        """Store a cursor that only says more of what happened; if that fails, it is said later."""
        with suppress(SparkPaceError, OSError):
            self._write(cursor)

    def _write(self, cursor: Cursor) -> None:
        with self._writing:
            if not self._is_ended:
                write_cursor(self.queue.cursor_file(self.target.name), cursor, self.origin.checkpoint)
                self.cursor = self._stored = cursor

    def _count(self, done: int) -> list[tuple[int, TableRows]]:
        """The batches up to `done` with rows to send; what a crash has left comes first."""
        places, sending = self.cursor.places, self.cursor.sending
        found = [
            (batch, table, count)
            for table in self._tables
            for batch, count in table.counts(places[table.table].batch, done)
        ]
        self.counts.waiting = max(0, sum(one[2] for one in found) - sum(one.row for one in places.values()))
        left = "" if sending is None else sending.table
        found.sort(key=lambda one: (one[1].table != left or one[0] != places[left].batch, one[0]))
        return [one[:2] for one in found]


AT_END_SECONDS = 30.0  # how long the end of the input waits for targets that do not get on
AT_STOP_SECONDS = 3.0  # the same for a signal
UNDER_WAY_SECONDS = 2.0  # how long messages under way may take then
_POLL_SECONDS = 0.05


class Alerts:
    """The alerts of a job while it runs."""

    def __init__(self, spec: JobSpec, secrets: Secrets) -> None:
        """Make the senders; nothing is sent yet.

        Raises:
            SetupError: a variable of the environment, or a package, is missing.
            ConfigError: an option of Kafka is none, or an address is none once its secrets are known.
        """
        self._spec, self._secrets = spec, secrets
        self._senders = [(target, sender_of(target, secrets)) for target in spec.alerts]
        self._forwarders: list[Forwarder] = []
        self._fields: dict[str, list[str]] = {}

    @property
    def counts(self) -> list[AlertCounts]:
        """How the alerts of each target stand; empty before `begin`."""
        return [forwarder.counts for forwarder in self._forwarders]

    def know(self, rules: Sequence[Rule]) -> None:
        """Take the fields of rules, beside those of before: rows of rules that are gone may still wait."""
        self._fields |= fields_of(rules)

    def begin(self, queue: Queue) -> None:
        """Send in threads from now on. The tables must be there, and the rules known.

        Raises:
            StateError: a cursor is damaged, or a table cannot be read.
        """
        origin, mask = Origin(self._spec.name, short(queue.checkpoint_id), self._fields), self._secrets.mask
        self._forwarders = [Forwarder(*one, queue, origin, mask) for one in self._senders]
        for forwarder in self._forwarders:
            forwarder.start()

    def end(self) -> None:
        """Send no more."""
        for forwarder in self._forwarders:
            forwarder.stop()
        ends = time.monotonic() + UNDER_WAY_SECONDS
        for forwarder in self._forwarders:
            forwarder.end(ends - time.monotonic())

    def look(self, batch: BatchReport | None = None) -> None:
        """Tell the forwarders that there may be rows to send: those of a batch, all of which are there."""
        for forwarder in self._forwarders:
            forwarder.look(batch)

    def wait(self, stopped: threading.Event) -> None:
        """Wait until everything is sent, or nothing was for a while: 30 s, after a signal 3 s."""
        self.look()
        began = time.monotonic()
        while not all(forwarder.is_done for forwarder in self._forwarders):
            moved = max(forwarder.moved_at for forwarder in self._forwarders)
            since = began if stopped.is_set() else max(began, moved)
            if time.monotonic() - since > (AT_STOP_SECONDS if stopped.is_set() else AT_END_SECONDS):
                return
            threading.Event().wait(_POLL_SECONDS)


def _cursor_of(stored: Cursor | None, tables: Sequence[str], done: int) -> Cursor:
    """The stored cursor; tables that are new in it begin with the rows that are written from now on."""
    known = {} if stored is None else stored.places
    places = {table: known.get(table) or Place(done + 1) for table in tables}
    return replace(stored or Cursor(places), places=places)


def sender_of(target: AlertTarget, secrets: Secrets) -> Sender:
    """What sends to a target; raises as `Alerts`."""
    made: Callable[[Any, AlertTarget], Sender] = resolve_name(target.to.sender)
    return made(target.to.resolved(secrets, f"alerts.{target.name}"), target)

"""Sends the rows of a job's tables to its targets, each in a thread of its own, beside the batches.

The tables are the queue, so a target that does not answer delays its alerts and nothing else. The cursor
moves when a piece was accepted; after a crash before that the piece is sent again.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pyarrow as pa

from spark_pace.alerts.cursor import Cursor, Failure, Place, Sending, read_cursor, short, write_cursor
from spark_pace.alerts.messages import Origin, alerts_of, fields_of
from spark_pace.alerts.sender import Refusal, Sender, SendError, pause_seconds
from spark_pace.alerts.tables import RefusedTable, TableRows
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, SparkPaceError, UnfitError, one_line
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import AlertCounts, BatchReport
from spark_pace.io.query import REFUSED
from spark_pace.job_file import JobSpec
from spark_pace.job_file.alerts import AlertTarget, Command, HttpAddress
from spark_pace.job_file.secrets import Secrets

_LOG = logging.getLogger(__name__)
_REPLY_CHARACTERS = 500


@dataclass(eq=False)
class Forwarder:
    """Sends to one target.

    Attributes:
        name: of the target.
        sender: its place.
        tables: whose rows it is sent.
        cursor_file: where its cursor is kept.
        refused: the table of what it refuses.
        origin: where its alerts come from.
        masked: hides secrets in a text.
        cursor: where it goes on.
        done: the last batch that is there, as far as it has heard.
        counts: how its alerts stand.
        moved_at: when it last got on, by `time.monotonic`.
    """

    name: str
    sender: Sender
    tables: tuple[TableRows, ...]
    cursor_file: AnyPath
    refused: RefusedTable
    origin: Origin
    masked: Callable[[str], str]
    cursor: Cursor
    done: int

    def __post_init__(self) -> None:
        """Send nothing before `start`."""
        self.counts = AlertCounts(self.name)
        self.moved_at = time.monotonic()
        self._stored = self.cursor
        self._ahead: list[tuple[int, TableRows]] | None = None  # batches with rows to send; None: not known
        self._reports = deque[BatchReport]()  # of batches since the start
        self._failures = 0  # in a row
        self._failing_since = 0.0
        self._ended, self._woken = threading.Event(), threading.Event()
        self._asked = self._answered = 0
        self._writing, self._is_ended = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name=f"alerts {self.name}", daemon=True)
        if self.cursor.failure is not None:
            self.counts.failure = self.cursor.failure.text

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def look(self, batch: BatchReport | None = None) -> None:
        """Look for rows to send, and hear of a batch of which all rows are there."""
        if batch is not None:
            self._reports.append(batch)
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
                self._woken.wait()
        with suppress(SparkPaceError, OSError):
            self._count()  # what the next start has to send
        self.sender.close()

    def _send_all(self) -> None:
        """Send the rows of all tables until there are no more, batch by batch."""
        while (ahead := self._count()) and self._send_batch(*ahead[0]):
            del ahead[0]
        if self.cursor != self._stored:
            self._write(self.cursor)

    def _send_batch(self, batch: int, table: TableRows) -> bool:
        """Send the rows of a table that a batch has written; False if the forwarder ends before."""
        place, sending = self.cursor.places[table.table], self.cursor.sending
        is_under_way = sending is not None and sending.table == table.table and place.batch == batch
        at_risk = sending.until if sending is not None and is_under_way else 0
        row, most, found = place.row if place.batch == batch else 0, 0, 0
        while found == most:
            most = self.sender.most_rows
            most = min(most, at_risk - row) if row < at_risk else most
            rows = table.rows(batch, row, most)
            found = rows.num_rows  # fewer than asked for are the last ones
            if found and (
                self._ended.is_set() or not self._delivered(table, Place(batch, row), rows, row < at_risk)
            ):
                return False
            row += found
        self.cursor = replace(self.cursor.at(table.table, Place(batch + 1)), sending=None)
        return True

    def _delivered(self, table: TableRows, begin: Place, rows: pa.Table, is_repeat: bool) -> bool:
        """Send rows until they are accepted, and move the cursor; False if the forwarder ends before."""
        at, until = self.cursor.at(table.table, begin), begin.row + rows.num_rows
        # a piece that a crash has left may have been larger than those of now
        most = max(until, at.sending.until) if is_repeat and at.sending is not None else until
        self._write(replace(at, sending=Sending(table.table, most)))
        refused = self._accepted(table.table, rows, is_repeat=is_repeat)
        if refused is None or not self._kept(refused):
            return False
        sending = self.cursor.sending if until < most else None
        self.cursor = replace(self.cursor.at(table.table, Place(begin.batch, until)), sending=sending)
        self.counts.waiting = max(0, self.counts.waiting - rows.num_rows)
        return True

    def _accepted(self, table: str, rows: pa.Table, *, is_repeat: bool) -> list[Refusal] | None:
        """Send rows until each alert is accepted or refused; None if the forwarder ends before."""
        while not self._ended.is_set():
            alerts = alerts_of(self.origin, table, rows, is_repeat=is_repeat)
            try:
                refused = self.sender.send(alerts)
            except SendError as error:
                is_repeat |= error.may_have_arrived
                with suppress(SparkPaceError, OSError):  # what cannot be read is said where it is to be sent
                    self._count()
                self._failed(str(error), error.pause_seconds)
            else:
                if self.sender.refuses_all and len(refused) > 1:  # perhaps for one of them
                    return self._accepted_singly(table, rows)
                self.moved_at = time.monotonic()
                self.counts.sent += len(alerts) - len(refused)
                self._well()
                return refused
        if not is_repeat:  # nobody has got it, so the next run need not call it a repeat
            self._noted(replace(self.cursor, sending=None))
        return None

    def _accepted_singly(self, table: str, rows: pa.Table) -> list[Refusal] | None:
        refused = list[Refusal]()
        for place in range(rows.num_rows):
            found = self._accepted(table, rows.slice(place, 1), is_repeat=True)
            if found is None:
                return None
            refused += found
        return refused

    def _kept(self, refused: list[Refusal]) -> bool:
        """Put the refused alerts of a piece into their table; False if the forwarder ends before.

        A target may answer with what it was sent, its secrets too.
        """
        refused = [replace(one, reply=one_line(self.masked(one.reply), _REPLY_CHARACTERS)) for one in refused]
        while refused and not self._tried(partial(self.refused.add, self.name, refused)):
            if self._ended.is_set():
                return False
        if refused and not self.counts.refused:
            got = f"{refused[0].status} {refused[0].reply}".rstrip()
            told = "refuses alerts, which go to the table alerts_refused; the first with"
            _LOG.warning("alerts.%s — %s: %s", self.name, told, got)
        self.counts.refused += len(refused)
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
        text = one_line(self.masked(got))
        known = self.cursor.failure
        self.counts.failures += 1
        self.counts.failure = text
        begins = not self.counts.is_failing
        if begins or known is None or known.text != text:
            now = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%SZ}"
            self._noted(replace(self.cursor, failure=Failure(now, text)))
        if begins:
            self.counts.is_failing, self._failing_since = True, time.monotonic()
            must = "must accept what it is sent"
            do = f"Its alerts ({self.counts.waiting:,} so far) wait until it does."
            _LOG.warning("alerts.%s — %s; got %s. %s", self.name, must, text, do)
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
            _LOG.warning("alerts.%s — accepts alerts again, after %.0f s.", self.name, seconds)

    def _noted(self, cursor: Cursor) -> None:
        """Store a cursor that only says more of what happened; if that fails, it is said later."""
        with suppress(OSError):
            self._write(cursor)

    def _write(self, cursor: Cursor) -> None:
        with self._writing:
            if not self._is_ended:
                write_cursor(self.cursor_file, cursor, self.origin.checkpoint)
                self.cursor = self._stored = cursor

    def _count(self) -> list[tuple[int, TableRows]]:
        """The batches with rows to send, of those that are done; what a crash has left comes first."""
        if self._ahead is None:
            places, sending = self.cursor.places, self.cursor.sending
            found = self._written({name: place.batch for name, place in places.items()}, self.done)
            sent = sum(one.row for one in places.values())
            self.counts.waiting = max(0, sum(one[2] for one in found) - sent)
            left = sending and (places[sending.table].batch, sending.table)
            found.sort(key=lambda one: ((one[0], one[1].table) != left, one[0]))
            self._ahead = [one[:2] for one in found]
        while self._reports:
            report, next_one = self._reports[0], self.done + 1
            if report.batch_id >= next_one:  # else it was done again
                found = [(report.batch_id, table, table.count(report)) for table in self.tables]
                if report.batch_id > next_one:  # another driver has done those between
                    found += self._written(dict.fromkeys(self.cursor.places, next_one), report.batch_id - 1)
                self._ahead += [one[:2] for one in sorted(found, key=lambda one: one[0]) if one[2]]
                self.counts.waiting += sum(one[2] for one in found)
                self.done = report.batch_id
            self._reports.popleft()
        return self._ahead

    def _written(self, first: Mapping[str, int], last: int) -> list[tuple[int, TableRows, int]]:
        """From a batch of each table on up to the last: the batches with rows to send, and how many."""
        return [
            (batch, table, count)
            for table in self.tables
            for batch, count in table.counts(first[table.table], last)
        ]


AT_END_SECONDS = 30.0  # how long the end of the input waits for targets that do not get on
AT_STOP_SECONDS = 3.0  # the same for a signal
UNDER_WAY_SECONDS = 2.0  # how long messages under way may take then
_POLL_SECONDS = 0.05
_ADDRESS = re.compile(r"https?://[!-~]+")


@dataclass(frozen=True)
class Queue:
    """Where the alerts of a job wait.

    Attributes:
        root: the place of the job's tables.
        cursor_file: for the name of a target, where its cursor is kept.
        checkpoint_id: the id of the job's checkpoint.
        done: the last batch of which all rows are there; -1 if none is.
        is_new: True before the checkpoint has its id for good: a start that ended before had another one, so
            its cursors are none of this checkpoint.
    """

    root: AnyPath
    cursor_file: Callable[[str], AnyPath]
    checkpoint_id: str
    done: int
    is_new: bool = False


class Alerts:
    """The alerts of a job while it runs."""

    def __init__(self, spec: JobSpec, secrets: Secrets) -> None:
        """Make the senders; nothing is sent yet.

        Raises:
            SetupError: a variable of the environment, or a package, is missing.
            ConfigError: an option of Kafka is none, or an address is none once its secrets are known.
        """
        self._spec, self._secrets = spec, secrets
        self._senders = {target.name: _sender_of(target, secrets) for target in spec.alerts}
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
        refused = RefusedTable(queue.root / REFUSED)
        self._forwarders = [self._forwarder(target, queue, refused) for target in self._spec.alerts]
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

    def _forwarder(self, target: AlertTarget, queue: Queue, refused: RefusedTable) -> Forwarder:
        tables = tuple(TableRows(queue.root, table, target.rules) for table in target.tables)
        origin = Origin(self._spec.name, short(queue.checkpoint_id), self._fields)
        file, sender = queue.cursor_file(target.name), self._senders[target.name]
        stored = None if queue.is_new else read_cursor(file, origin.checkpoint)
        cursor = _cursor_of(stored, target.tables, queue.done)
        if cursor != stored:
            write_cursor(file, cursor, origin.checkpoint)
        mask = self._secrets.mask
        return Forwarder(target.name, sender, tables, file, refused, origin, mask, cursor, queue.done)


def _cursor_of(stored: Cursor | None, tables: Sequence[str], done: int) -> Cursor:
    """The stored cursor; tables that are new in it begin with the rows that are written from now on."""
    known = {} if stored is None else stored.places
    places = {table: known.get(table) or Place(done + 1) for table in tables}
    cursor = replace(stored or Cursor(places), places=places)
    is_gone = cursor.sending is not None and cursor.sending.table not in places
    return replace(cursor, sending=None) if is_gone else cursor


def _sender_of(target: AlertTarget, secrets: Secrets) -> Sender:
    where, to = f"alerts.{target.name}", target.to
    if isinstance(to, HttpAddress):
        from spark_pace.alerts.http_post import HttpPost

        return HttpPost(_resolved(to, secrets, where), target.timeout_us)
    if isinstance(to, Command):
        from spark_pace.alerts.command_input import CommandInput

        if shutil.which(to.words[0]) is None:
            must, do = (
                "must name a program that can be started",
                "Correct the path, or the rights of the file.",
            )
            raise UnfitError(f"{where}.command — {must}; got {to.words[0]}. {do}")
        return CommandInput(to, target.timeout_us)
    try:
        from spark_pace.alerts.kafka_topic import KafkaRecords
    except ImportError as error:
        do = "Install it: pip install 'spark-pace[kafka]'."
        raise UnfitError(f"{where}.kafka — must have confluent-kafka; got no such package. {do}") from error
    servers = secrets.resolve(to.servers, f"{where}.kafka.servers")
    options = secrets.resolve_all(to.options, f"{where}.kafka.options")
    return KafkaRecords(replace(to, servers=servers, options=options), target.timeout_us, where)


def _resolved(to: HttpAddress, secrets: Secrets, where: str) -> HttpAddress:
    """The address with the values of the environment, which no message shows, whatever is wrong with them."""
    url = secrets.resolve(to.url, f"{where}.http")
    headers = secrets.resolve_all(to.headers, f"{where}.headers")
    if not _ADDRESS.fullmatch(url):
        must, do = "must be an address that begins with http:// or https://", "Correct the variable."
        raise ConfigError.of(f"{where}.http", must, "another text in the environment", do)
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            must, got = "must be one line of ASCII", "other characters, or an end of line"
            raise ConfigError.of(f"{where}.headers.{name}", must, got, "Correct the variable.")
    return replace(to, url=url, headers=headers)

"""All targets of a job: their senders, and their forwarders while the job runs."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_pace.alerts.cursor import Cursor, Place, read_cursor, write_cursor
from spark_pace.alerts.forwarder import Forwarder, Target
from spark_pace.alerts.messages import Origin, fields_of
from spark_pace.alerts.refused_table import RefusedTable
from spark_pace.alerts.sender import Sender
from spark_pace.alerts.table_rows import TableRows
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, UnfitError
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.metrics import AlertCounts
from spark_pace.io.query import REFUSED
from spark_pace.job_file import JobSpec
from spark_pace.job_file.alerts import AlertTarget, Command, HttpAddress
from spark_pace.job_file.secrets import Secrets

AT_END_SECONDS = 30.0  # how long the end of the input waits for targets that do not get on
AT_STOP_SECONDS = 3.0  # the same for a signal
UNDER_WAY_SECONDS = 2.0  # how long messages under way may take then
_POLL_SECONDS = 0.05
_ADDRESS = re.compile(r"https?://[!-~]+")


@dataclass(frozen=True)
class Queue:
    """Where the alerts of a job wait.

    Attributes:
        place: for the name of a table, where it lies.
        cursor_file: for the name of a target, where its cursor is kept.
        checkpoint_id: the id of the job's checkpoint.
        next_out_seq: the number of the next match of each rule; 0 for rules that are missing.
        is_new: True before the checkpoint has its id for good: a start that ended before had another one, so
            its cursors are none of this checkpoint.
    """

    place: Callable[[str], AnyPath]
    cursor_file: Callable[[str], AnyPath]
    checkpoint_id: str
    next_out_seq: Mapping[str, int]
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

    def begin(self, queue: Queue, rules: Sequence[Rule]) -> None:
        """Send in threads from now on. The tables must be there. Called again, it tells of other rules.

        Raises:
            StateError: a cursor is damaged, or a table cannot be read.
        """
        self._fields |= fields_of(rules)  # rows of rules that are gone may still wait
        if self._forwarders:
            return
        refused = RefusedTable(queue.place(REFUSED))
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

    def look(self) -> None:
        """Tell the forwarders that there may be new rows."""
        for forwarder in self._forwarders:
            forwarder.look()

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
        tables = tuple(TableRows(queue.place(table), table, target.rules) for table in target.tables)
        origin = Origin(self._spec.name, queue.checkpoint_id[:8], self._fields)
        file, sender = queue.cursor_file(target.name), self._senders[target.name]
        stored = None if queue.is_new else read_cursor(file, origin.checkpoint)
        cursor = _cursor_of(stored, tables, queue.next_out_seq)
        if cursor != stored:
            write_cursor(file, cursor, origin.checkpoint)
        return Forwarder(
            Target(target.name, sender, tables, file, refused, origin, self._secrets.mask), cursor
        )


def _cursor_of(stored: Cursor | None, tables: Sequence[TableRows], next_out_seq: Mapping[str, int]) -> Cursor:
    """The stored cursor; tables that are new in it begin with the rows that are written from now on."""
    known = {} if stored is None else stored.places
    now_ms = time.time_ns() // 1_000_000
    places = {
        rows.table: known.get(rows.table) or Place(max(rows.log.versions()) + 1, 0, now_ms) for rows in tables
    }
    numbers = dict(next_out_seq) if "matches" in places and "matches" not in known else None
    cursor = replace(stored or Cursor(places), places=places)
    if cursor.sending is not None and cursor.sending.table not in places:
        cursor = replace(cursor, sending=None)
    return cursor if numbers is None else replace(cursor, next_out_seq=numbers)


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

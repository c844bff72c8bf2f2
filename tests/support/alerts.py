"""Tables with rows to send, an HTTP server that may not take them, and what sends them without Spark."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace import load_rules
from spark_pace.alerts.queue import Queue
from spark_pace.alerts.targets import Alerts
from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.io.delta_tables import QUARANTINE_SCHEMA, DeltaTables, of_batch
from spark_pace.io.metrics import METRICS_SCHEMA, BatchReport
from spark_pace.io.query import TABLES, read_table
from spark_pace.job_file import read_job
from spark_pace.job_file.secrets import Secrets
from tests.support.watched import QUIET

MATCHES = pa.schema([
    *((name, kind) for name, kind in FIXED_COLUMNS.items() if name != "events"),
    ("x", pa.int64()), ("y", pa.float64()), ("events", FIXED_COLUMNS["events"]),
])  # fmt: skip
TIME = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
CHECKPOINT = "01234567"  # how alerts say which one their rows are of
Answer = tuple[int, dict[str, str]] | str


def match_rows(*runs: tuple[str, range]) -> pa.Table:
    """Matches of rules, each with its numbers."""
    event = {"component": "a", "seq": 3, "event_time": TIME, "source": "in.json", "offset": 7}
    rows = [
        {
            "rule": rule,
            "out_seq": number,
            "selection_id": 1,
            "seq": 3,
            "opened_at": TIME,
            "matched_at": TIME,
            "x": number,
            "events": [event],
        }
        for rule, numbers in runs
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, MATCHES)


class JobTables(DeltaTables):
    """Appends as a job does: each row has the number of its batch."""

    def append(self, table: str, rows: pa.Table, batch_id: int) -> None:
        super().append(table, of_batch(rows, batch_id), batch_id)


def job_tables(folder: Path) -> DeltaTables:
    """The tables of a job, without rows."""
    tables = JobTables(str(folder), "app")
    schemas = (MATCHES, LATE_SCHEMA, QUARANTINE_SCHEMA, METRICS_SCHEMA)
    there = (of_batch(schema.empty_table(), 0).schema for schema in schemas)
    tables.prepare(dict(zip(TABLES, there, strict=True)))
    return tables


@dataclass
class Server:
    """An HTTP server. `answers` are given in turn, then 200.

    An answer is a code with headers; or ``drop``, which reads the alerts and closes the connection; or
    ``hang``, which reads them and says nothing until the end; or ``drip``, which answers with a byte now and
    then, and never ends.
    """

    answers: list[Answer] = field(default_factory=list)
    refused: Callable[[dict[str, Any]], bool] = lambda alert: False
    port: int = 0
    posts: list[list[dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    clients: set[int] = field(default_factory=set)  # the port of each connection
    is_chunked: bool = False
    refusal: bytes = b"no such thing"
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts"

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        alerts = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._changed:
            answer = self.answer_to(alerts)
            self.posts.append(alerts)
            self.headers.append(dict(handler.headers))
            self.clients.add(handler.client_address[1])
            self._changed.notify_all()
        if isinstance(answer, str):
            while answer == "drip" and not self._ended.wait(0.02):
                handler.wfile.write(b"H")
            self._ended.wait(60 if answer == "hang" else 0)
            handler.close_connection = True
            return
        reply = self.refusal if answer[0] >= 400 else b"ok"
        handler.send_response(answer[0])
        length = {"Content-Length": str(len(reply))}
        if self.is_chunked:
            reply, length = b"%x\r\n%s\r\n0\r\n\r\n" % (len(reply), reply), {"Transfer-Encoding": "chunked"}
        for name, value in {**length, **answer[1]}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(reply)

    def answer_to(self, alerts: list[dict[str, Any]]) -> Answer:
        answer = self.answers.pop(0) if self.answers else (200, {})
        is_refused = isinstance(answer, tuple) and any(map(self.refused, alerts))
        return (400, {}) if is_refused else answer

    @property
    def alerts(self) -> list[dict[str, Any]]:
        """All alerts that came, accepted or not."""
        return [alert for post in self.posts for alert in post]

    def wait_for(self, is_met: Callable[[Server], bool], seconds: float = 60) -> None:
        """Wait until something holds after a request."""
        with self._changed:
            assert self._changed.wait_for(lambda: is_met(self), seconds)

    @contextmanager
    def running(self) -> Iterator[Server]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.take(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._ended.clear()
        with _Quiet(("127.0.0.1", self.port), Handler) as server:
            self.port = server.server_address[1]
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield self
            finally:
                self._ended.set()
                server.shutdown()
                thread.join()


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that was killed."""


def numbers_of(alerts: Sequence[dict[str, Any]], rule: str) -> list[int]:
    """The numbers of a rule's matches, as they came for the first time."""
    return list(dict.fromkeys(alert["out_seq"] for alert in alerts if alert["rule"] == rule))


RULES = """
events: {schema: "t TIMESTAMP, k STRING, x BIGINT", event_time: t}
rules:
  - {name: a, pattern: {sequence: [e: x > 5]}, emit: {x: e.x, y: "e.x / 2"}}
  - {name: b, pattern: {sequence: [e: x > 5]}, emit: {y: "e.x / 2"}}
"""


def alerts_of(folder: Path, *listed: dict[str, Any]) -> Alerts:
    (folder / "rules.yaml").write_text(RULES)
    job = {
        "name": "cards",
        "source": {"kind": "files", "format": "json", "path": "in"},
        "rules": ["rules.yaml"],
        "sink": {"kind": "delta", "path": "out"},
        "checkpoint": "checkpoint",
        "alerts": listed,
    }
    (folder / "job.yaml").write_text(json.dumps(job))
    return Alerts(read_job(folder / "job.yaml"), Secrets())


def cursor_file(folder: Path, name: str = "pager") -> Path:
    return folder / "checkpoint" / f"{name}.json"


def done_in(out: Path | str) -> int:
    """The last batch that any table in a folder has."""
    tables = DeltaTables(str(out), "app")
    return max(map(tables.last_batch, TABLES))


def queue_of(folder: Path) -> Queue:
    out = folder / "out"
    return Queue(out, lambda name: cursor_file(folder, name), f"{CHECKPOINT}89", done_in(out))


@contextmanager
def running(folder: Path, *listed: dict[str, Any]) -> Iterator[Alerts]:
    alerts = alerts_of(folder, *listed)
    alerts.know(load_rules(folder / "rules.yaml"))
    alerts.begin(queue_of(folder))
    try:
        yield alerts
    finally:
        alerts.end()


def report(out: str, batch: int) -> BatchReport:
    """The report of a batch, by the tables."""

    def rows(table: str) -> list[dict[str, Any]]:
        return [row for row in read_table(out, table).to_pylist() if row["batch_id"] == batch]

    counts = {"late": len(rows("late")), "quarantined": len(rows("quarantine"))}
    matches = Counter(row["rule"] for row in rows("matches"))
    values = {**QUIET, **counts, "frontier_us": None, "max_time_us": None}
    return BatchReport(batch_id=batch, matches=dict(matches), **values)


def look(alerts: Alerts) -> None:
    """Tell of all batches that are there."""
    out = alerts._spec.sink_path
    for batch in range(done_in(out) + 1):
        alerts.look(report(out, batch))


def sent_by(alerts: Alerts) -> None:
    look(alerts)
    alerts.wait(threading.Event())


def pager(server: Server, **keys: Any) -> dict[str, Any]:
    return {"name": "pager", "http": server.url, **keys}

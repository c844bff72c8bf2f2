"""A job with all that a job can have: alerts, rules that change, a clock, counters and a page; and its input.

The stream is as in the other series, but its events happen now: twenty a second, with silences in which the
clock alone moves the frontier. So all times in the rules are shorter by the same factor.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.compute as pc
from kafka import KafkaProducer
from kafka.errors import KafkaError

from examples.kafka.broker import Broker
from spark_pace.core.plan.rule import Rule
from spark_pace.io.query import read_table
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources.kafka import offsets_noted
from spark_pace.spark.sources.own_sources import TICK
from tests.long.chaos.beside import beside
from tests.long.chaos.job import JOB, RULES
from tests.long.chaos.processes import RunningJob
from tests.long.chaos.rule_changes import Notes, RuleChanges, with_extras
from tests.long.chaos.stream import START_S, Stream, lines_of, make_stream
from tests.long.chaos.target import Target

FASTER = 20  # than the stream of the other series, which has an event a second
SILENT_S, SILENT_EVERY = 4, 400  # seconds without events, after so many records
_RUN = """
trigger: 1 s
rules_refresh: 2 s
metrics: {{port: {metrics}}}
page: {{port: {page}}}
alerts:
  - {{name: pager, http: "http://127.0.0.1:{alerts}/", tables: [matches, late, quarantine], timeout: 2 s}}
"""
_DELAY_S = 3
_CLOCK = ", clock: {every: 1 s, slack: 2 s}"
TOLD = (  # what such a job says of its target, its rule files and a broker that is gone
    *("rules — added: ", "rules — removed: ", "alerts.pager — must accept what it is sent; got "),
    *("alerts.pager — accepts alerts again", "clock — must learn from Kafka where topics end; got: "),
)
_ADDRESSES = ("/metrics", "/", "/told.json", "/healthz")
_UNIT_MS = {"s": 1000, "min": 60_000, "h": 3_600_000}
_PATIENCE_S = 240


def scaled(text: str) -> str:
    """A text with all lengths of time shorter."""
    return re.sub(
        r"\b(\d+) (s|min|h)\b", lambda time: f"{int(time[1]) * _UNIT_MS[time[2]] // FASTER} ms", text
    )


def ports(count: int, seed: int) -> list[int]:
    """Ports that are free, and that the system gives to nobody while a job is down."""
    chance, found = random.Random(seed), list[int]()
    while len(found) < count:
        port = chance.randrange(15_000, 30_000)
        with socket.socket() as tried:
            if port not in found and tried.connect_ex(("127.0.0.1", port)):
                found.append(port)
    return found


def write_everything_job(folder: Path, broker: Broker, topic: str, of_ports: list[int]) -> Path:
    """The job file with its rules, in a new folder."""
    folder.mkdir(parents=True)
    run = _RUN.format(metrics=of_ports[0], page=of_ports[1], alerts=of_ports[2])
    source = f'{{kind: kafka, servers: "{broker.servers}", topics: [{topic}], format: json}}'
    (folder / "rules.yaml").write_text(scaled(RULES))
    (folder / "job.yaml").write_text(JOB.format(source=source, delay=_DELAY_S, more=_CLOCK, run=run))
    return folder / "job.yaml"


def rules_named(job: Path, names: list[str]) -> dict[str, Rule]:
    """The rules of a job and extra rules, by name."""
    folder = job.parent / "all"
    folder.mkdir(exist_ok=True)
    (folder / "rules.yaml").write_text(scaled(with_extras(RULES, names)))
    (folder / "job.yaml").write_text(job.read_text())
    return {rule.name: rule for rule in read_job(folder / "job.yaml").rules}


def live_stream(records: int, parts: int) -> Stream:
    """The stream of the other series, which begins now; `t` is in microseconds."""
    made = make_stream(records, parts, 2 * FASTER).table
    number = pa.array(range(records), pa.int64())
    silences = pc.multiply(pc.divide(number, SILENT_EVERY), SILENT_S * 1_000_000)
    since = pc.multiply(pc.subtract(made["t"], START_S), 1_000_000 // FASTER)
    time_us = pc.add(pc.add(since, silences), int(time.time() * 1_000_000))
    table = made.set_column(made.column_names.index("t"), "t", time_us)
    return Stream(table, lines_of(table, "us"))


@dataclass
class Feed:
    """Sends each record when it happens.

    Attributes:
        broker: which is killed meanwhile, so a record may come twice; the topic says what came.
        topic: a new one.
        stream: the records.
        count: how many were sent.
    """

    broker: Broker
    topic: str
    stream: Stream
    count: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def running(self) -> AbstractContextManager[None]:
        """Send while a block runs."""
        return beside(self._send, self.end)

    def end(self) -> None:
        """Send nothing more."""
        self._ended.set()

    def _send(self) -> None:
        parts = self.stream.table["part"].to_pylist()
        begin_s = self.stream.table["t"][0].as_py() / 1e6
        options = {"acks": "all", "linger_ms": 20, "retries": 1_000_000, "delivery_timeout_ms": 600_000}
        with KafkaProducer(bootstrap_servers=self.broker.servers, **options) as producer:
            for number, (part, line) in enumerate(zip(parts, self.stream.lines, strict=True)):
                happens = begin_s + number / FASTER + number // SILENT_EVERY * SILENT_S
                if self._ended.wait(max(0.0, happens - time.time())):
                    break
                try:
                    producer.send(self.topic, line, partition=part)
                    self.count += 1
                except KafkaError:  # the broker is gone for long: this record was never there
                    continue
            producer.flush()


@dataclass
class Watch:
    """Asks a running job for its counters and its page, and ends it once all is done.

    Attributes:
        job: the job file.
        spec: the job as it begins.
        of_ports: where it answers, counters first.
        feed, changes, notes, target: what happens around the job.
        asked: how many questions were answered with 200.
        complaints: what was answered otherwise.
    """

    job: Path
    spec: JobSpec
    of_ports: list[int]
    feed: Feed
    changes: RuleChanges
    notes: Notes
    target: Target
    asked: int = 0
    complaints: list[str] = field(default_factory=list)
    _stopped: RunningJob | None = None

    @staticmethod
    def of(folder: Path, broker: Broker, topic: str, stream: Stream, seed: int) -> Watch:
        """All that happens around a job in a new folder, on a topic that is there."""
        of_ports = ports(3, seed)
        job = write_everything_job(folder, broker, topic, of_ports)
        spec = read_job(job)
        return Watch(
            job,
            spec,
            of_ports,
            Feed(broker, topic, stream),
            RuleChanges(folder / "rules.yaml", RULES, seed, scaled),
            Notes(Checkpoint(spec.checkpoint_folder)),
            Target(port=of_ports[2], seed=seed),
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let all of it happen."""
        with self.target.living(), self.notes.taken(), self.feed.running(), self.changes.running():
            yield

    def behind(self, job: RunningJob, is_over: bool) -> None:
        """Behind a batch: ask; once no kill is left and all is done, stop the job."""
        if self._stopped is job:
            return
        self._ask(job)
        if is_over:
            self._end(job)

    def _ask(self, job: RunningJob) -> None:
        for path in _ADDRESSES:
            port = self.of_ports[0 if path == "/metrics" else 1]
            try:
                with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                    got = str(answer.status) if answer.read() else "nothing"
            except HTTPError as error:
                got = f"{error.code} {error.read()[:500]!r}"
            except OSError as error:
                got = str(error)
            if got == "200":
                self.asked += 1
            elif got[0].isdigit() or not _ends(job):  # a job that is being killed need not answer
                self.complaints.append(f"asked for {path}: {got}")

    def _end(self, job: RunningJob) -> None:
        """Let everything come to its end, then stop the job."""
        self.changes.end()
        self.feed.end()
        self.target.recover()
        end = time.monotonic() + _PATIENCE_S
        while not self._is_done() and job.process.poll() is None:
            if time.monotonic() > end:
                self.complaints.append(f"not done within {_PATIENCE_S} s behind the last kill")
                break
            threading.Event().wait(1)
        self._stopped = job
        job.process.send_signal(signal.SIGTERM)

    def _is_done(self) -> bool:
        """True if all records were read, a tick has ended all windows, and all rows were sent."""
        done = self.notes.checkpoint.last_done()
        offsets = self.notes.offsets.get(done)
        if offsets is None:
            return False
        read = sum(offsets_noted(offsets).values())
        tick_us = max((offset.get(TICK, 0) for offset in offsets), default=0)
        last_us = pc.max(self.feed.stream.table["t"].slice(0, self.feed.count)).as_py()
        is_read = read >= self.feed.count and tick_us > last_us + 15_000_000
        return is_read and self.target.accepted() >= sum(
            read_table(self.spec.sink_path, name).num_rows for name in ("matches", "late", "quarantine")
        )


def _ends(job: RunningJob) -> bool:
    """True if the job ends soon."""
    end = time.monotonic() + 30
    while job.process.poll() is None and time.monotonic() < end:
        threading.Event().wait(0.1)
    return job.process.poll() is not None

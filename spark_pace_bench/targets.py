"""Where records are sent to: a folder of files, or a topic of Kafka. Both know the place of every record."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.tables import OFFSET
from spark_pace.errors import SetupError, one_line
from spark_pace.io.event_files import read_events
from spark_pace.io.replay import read_all
from spark_pace.job_file import KafkaSource
from spark_pace_bench.records import Records
from spark_pace_bench.schedule import Floats, Ints

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

TIMEOUT_SECONDS = 120  # in which the broker takes a record
_FLUSH_SECONDS = 150
_AT_ONCE = 500  # records of a topic between two looks at the clock


class Target(Protocol):
    """Takes records, one after the other.

    Attributes:
        tick_seconds: the time from one look at the schedule to the next.
    """

    tick_seconds: float

    def send(self, first: int, due_us: Ints) -> Floats:
        """Send as many records as there are event times, from record `first` on; returns when each went."""

    def settle(self) -> None:
        """Wait until all that was sent is stored.

        Raises:
            SetupError: something is not.
        """

    def close(self) -> None:
        """Let go of what is open."""

    def starting(self, since: float) -> dict[str, Any]:
        """What a job's section `source` must say to begin with the first record, sent at `since` or later."""

    def events(self, folder: Path) -> pa.Table:
        """All that was sent, as `spark_pace.io.event_files.read_events` gives it; may write into `folder`."""

    def numbers(self, sources: Sequence[str], places: Ints) -> Ints:
        """The records at places of the source: int64[n], -1 where it is none of ours.

        Args:
            sources: the names of sources as a job writes them, n of them.
            places: int64[n], rows or offsets.
        """

    def read_by(self, offset: Mapping[str, Any]) -> Ints:
        """The records that were read when Spark's offset stood there: int64[m], their numbers."""


class Folder:
    """Every few tenths of a second writes what is due as a file: sent is a record when its file is there."""

    def __init__(self, folder: Path, records: Records, tick_seconds: float) -> None:
        """Write into `folder`, which is made."""
        self.tick_seconds = tick_seconds
        self._folder, self._records = folder, records
        self._firsts: list[int] = []  # the first record of each file
        self._sent = 0
        folder.mkdir(parents=True)

    def send(self, first: int, due_us: Ints) -> Floats:
        """Write the records that are due as one file; returns when its name was there, for each."""
        name = f"{len(self._firsts):08d}.{self._records.form}"
        lines = self._records.lines(first, due_us)
        hidden = self._folder / f".{name}"
        hidden.write_text(self._records.header + "\n".join(lines) + "\n", encoding="utf-8")
        os.replace(hidden, self._folder / name)
        self._firsts.append(first)
        self._sent = first + len(due_us)
        return np.full(len(due_us), time.time())

    def settle(self) -> None:
        """Wait for nothing: a file is there as soon as it is written."""

    def close(self) -> None:
        """Let go of nothing: no file is open."""

    def starting(self, since: float) -> dict[str, Any]:
        """Nothing: a job reads all files of the folder."""
        return {}

    def events(self, folder: Path) -> pa.Table:
        """The events of all files; nothing is written into the folder given."""
        return read_all(self._folder, self._records.schema).events

    def numbers(self, sources: Sequence[str], places: Ints) -> Ints:
        """The records at rows of files: int64[n]."""
        firsts = {name: self._firsts[int(name.partition(".")[0])] for name in set(sources)}
        return np.array([firsts[name] for name in sources], np.int64) + places

    def read_by(self, offset: Mapping[str, Any]) -> Ints:
        """The records of the files that were read; the offset is a number of files."""
        read = [*self._firsts, self._sent][min(offset["entries"], len(self._firsts))]
        return np.arange(read)


class Topic:
    """Sends to the partitions of a topic in turns."""

    tick_seconds = 0.01

    def __init__(self, source: KafkaSource, servers: str, records: Records) -> None:
        """Send to the topic of a job, which must be there.

        Args:
            source: the job's.
            servers: its servers, with the environment's values.
            records: all that will be sent.

        Raises:
            SetupError: the broker does not answer, or has no such topic.
        """
        (self._topic,), self._servers = source.topics, servers
        self._records, self._own = records, source.options
        self.begins = self._ends()
        if not self.begins:
            do = "Make it first, or correct source.topics."
            raise SetupError(f"topic {self._topic} — must be there; got none of that name. {do}")
        self._failed: list[str] = []
        self._producer = _producer(servers, self._failed)
        self._lines: list[list[str]] = [[] for _ in self.begins]

    def _ends(self) -> list[int]:
        """The offset behind the last record of each partition; none where there is no such topic."""
        from kafka import KafkaConsumer, TopicPartition, errors

        try:
            with closing(KafkaConsumer(bootstrap_servers=self._servers)) as consumer:
                numbers = sorted(consumer.partitions_for_topic(self._topic) or ())
                partitions = [TopicPartition(self._topic, number) for number in numbers]
                ends = consumer.end_offsets(partitions)
                return [ends[partition] for partition in partitions]
        except (errors.KafkaError, OSError) as error:
            must, do = "must answer", "Start it, or correct source.servers."
            got = _said(error)
            raise SetupError(f"broker {self._servers} — {must}; got: {got}. {do}") from error

    def send(self, first: int, due_us: Ints) -> Floats:
        """Hand the records to the producer; returns when each went."""
        lines = self._records.lines(first, due_us)
        count = len(self.begins)
        sent = np.empty(len(lines))
        for start in range(0, len(lines), _AT_ONCE):
            sent[start : start + _AT_ONCE] = time.time()
            for number, line in enumerate(lines[start : start + _AT_ONCE], first + start):
                place = number % count
                self._produce(line, place)
                self._lines[place].append(line)
            self._producer.poll(0)
            self._require_taken()
        return sent

    def _produce(self, line: str, partition: int) -> None:
        """Hand a record over; where the producer holds as many as it can, when it has room."""
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(self._topic, line.encode(), partition=partition)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._failed.append(one_line(str(error)))
            self._require_taken()

    def _require_taken(self, waiting: int = 0) -> None:
        if waiting or self._failed:
            must = "must take all records"
            got = self._failed[0] if self._failed else f"{waiting:,} that wait after {_FLUSH_SECONDS} s"
            raise SetupError(f"topic {self._topic} — {must}; got: {got}. See the broker.")

    def settle(self) -> None:
        """Wait until the broker has all records, and nothing else.

        Raises:
            SetupError: some records are not stored, or another writer has sent some too.
        """
        self._require_taken(self._producer.flush(_FLUSH_SECONDS))
        kept = [begin + len(lines) for begin, lines in self._parts()]
        if (found := self._ends()) != kept:
            must = "must have no other writer during the run"
            do = "Stop the other one, or make a topic for this alone."
            raise SetupError(f"topic {self._topic} — {must}; got offsets up to {found}, not {kept}. {do}")

    def close(self) -> None:
        """Give up what was not settled, and end the producer's connections."""
        self._producer.purge()  # of what was not settled
        self._producer.flush(1)
        del self._producer  # which ends its connections

    def starting(self, since: float) -> dict[str, Any]:
        """The options to begin at a time; a partition without a record since then begins with the next."""
        strategy = {"startingOffsetsByTimestampStrategy": "latest"}
        return {"options": {**self._own, "startingTimestamp": str(int(since * 1000)), **strategy}}

    def events(self, folder: Path) -> pa.Table:
        """The events of all partitions; writes a file with the records of each into `folder`."""
        folder.mkdir()
        tables = []
        for number, (begin, lines) in enumerate(self._parts()):
            path = folder / f"{number}.{self._records.form}"
            path.write_text(self._records.header + "".join(f"{line}\n" for line in lines), encoding="utf-8")
            name, schema = f"{self._topic}/{number}", self._records.schema
            found = read_events(str(path), self._records.form, schema, name).events
            place = found.column_names.index(OFFSET)
            tables.append(found.set_column(place, OFFSET, pc.add(found[OFFSET], begin)))
        return pa.concat_tables(tables).unify_dictionaries()

    def _parts(self) -> list[tuple[int, list[str]]]:
        """The offset of our first record and the records, for each partition."""
        return list(zip(self.begins, self._lines, strict=True))

    def numbers(self, sources: Sequence[str], places: Ints) -> Ints:
        """The records at offsets of partitions: int64[n]."""
        partitions = {name: int(name.rpartition("/")[2]) for name in set(sources)}
        own = np.array([partitions[name] for name in sources], np.int64)
        begins = np.array(self.begins, np.int64)
        return (places - begins[own]) * len(self.begins) + own

    def read_by(self, offset: Mapping[str, Any]) -> Ints:
        """The records that were read when Spark's offset, the end of each partition, stood there."""
        ends, count = offset[self._topic], len(self.begins)
        parts = [
            np.arange(max(0, ends.get(str(number), begin) - begin)) * count + number
            for number, begin in enumerate(self.begins)
        ]
        return np.concatenate(parts)


def _producer(servers: str, failed: list[str]) -> Producer:
    """A producer that loses and repeats nothing; `failed` takes why the first record is not taken."""
    from confluent_kafka import Producer

    def note(error: KafkaError | None, record: Message) -> None:
        if error is not None and not failed:
            failed.append(one_line(error.str()))

    return Producer({
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 1 << 17,
        "on_delivery": note,
        "delivery.report.only.error": True,
        "delivery.timeout.ms": TIMEOUT_SECONDS * 1000,
        "logger": _logger(),
    })  # fmt: skip


def _logger() -> logging.Logger:
    """Where the client's own lines go, which say no more than the error that follows."""
    logger = logging.getLogger("spark_pace.bench.kafka")
    logger.propagate = False
    logger.handlers = [logging.NullHandler()]
    return logger


def _said(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__)

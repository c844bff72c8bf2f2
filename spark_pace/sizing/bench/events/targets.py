"""Where records are sent to: a folder of files, or a topic of Kafka. Both know the place of every record."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import OFFSET
from spark_pace.errors import SetupError, one_line
from spark_pace.io.files import read_events
from spark_pace.io.replaying import read_all
from spark_pace.job_file import KafkaSource
from spark_pace.sizing.bench.events.records import Records
from spark_pace.sizing.bench.events.schedule import Floats, Ints

if TYPE_CHECKING:
    from kafka import KafkaProducer

TIMEOUT_SECONDS = 20
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
        """All that was sent, as `spark_pace.io.files.read_events` gives it; may write into `folder`."""

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
        """See `Target`."""
        name = f"{len(self._firsts):08d}.{self._records.form}"
        lines = self._records.lines(first, due_us)
        hidden = self._folder / f".{name}"
        hidden.write_text(self._records.header + "\n".join(lines) + "\n", encoding="utf-8")
        os.replace(hidden, self._folder / name)
        self._firsts.append(first)
        self._sent = first + len(due_us)
        return np.full(len(due_us), time.time())

    def settle(self) -> None:
        """See `Target`."""

    def close(self) -> None:
        """See `Target`."""

    def starting(self, since: float) -> dict[str, Any]:
        """See `Target`."""
        return {}

    def events(self, folder: Path) -> pa.Table:
        """See `Target`."""
        return read_all(self._folder, self._records.schema).events

    def numbers(self, sources: Sequence[str], places: Ints) -> Ints:
        """See `Target`."""
        firsts = {name: self._firsts[int(name.partition(".")[0])] for name in set(sources)}
        return np.array([firsts[name] for name in sources], np.int64) + places

    def read_by(self, offset: Mapping[str, Any]) -> Ints:
        """See `Target`; the offset is a number of files."""
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
        from kafka import KafkaConsumer, TopicPartition
        from kafka.errors import KafkaError

        (topic,), options = source.topics, {"bootstrap_servers": servers}
        self._topic, self._records, self._own = topic, records, source.options
        try:
            with closing(KafkaConsumer(**options)) as consumer:
                numbers = sorted(consumer.partitions_for_topic(topic) or ())
                ends = consumer.end_offsets([TopicPartition(topic, number) for number in numbers])
        except (KafkaError, OSError) as error:
            raise _no_answer(options, error) from error
        if not numbers:
            do = "Make it first, or correct source.topics."
            raise SetupError(f"topic {topic} — must be there; got none of that name. {do}")
        self.begins = [ends[TopicPartition(topic, number)] for number in numbers]
        self._producer = _producer(options)
        self._last: list[Any] = [None] * len(numbers)
        self._sent = 0
        self._lines: list[list[str]] = [[] for _ in numbers]

    def send(self, first: int, due_us: Ints) -> Floats:
        """See `Target`."""
        lines = self._records.lines(first, due_us)
        count = len(self.begins)
        sent = np.empty(len(lines))
        for start in range(0, len(lines), _AT_ONCE):
            sent[start : start + _AT_ONCE] = time.time()
            for number, line in enumerate(lines[start : start + _AT_ONCE], first + start):
                place = number % count
                self._last[place] = self._producer.send(self._topic, line.encode(), partition=place)
                self._lines[place].append(line)
        self._sent = first + len(lines)
        return sent

    def settle(self) -> None:
        """See `Target`."""
        from kafka.errors import KafkaError

        try:
            self._producer.flush()
            found = [last.get(TIMEOUT_SECONDS).offset + 1 if last else None for last in self._last]
        except KafkaError as error:
            must = f"must take all {self._sent:,} records"
            raise SetupError(f"topic {self._topic} — {must}; got: {_said(error)}. See the broker.") from error
        kept = [begin + len(lines) if lines else None for begin, lines in self._parts()]
        if found != kept:
            must = "must have no other writer during the run"
            do = "Stop the other one, or make a topic for this alone."
            raise SetupError(f"topic {self._topic} — {must}; got offsets up to {found}, not {kept}. {do}")

    def close(self) -> None:
        """See `Target`."""
        self._producer.close()

    def starting(self, since: float) -> dict[str, Any]:
        """See `Target`; a partition without a record since then begins with those that come."""
        strategy = {"startingOffsetsByTimestampStrategy": "latest"}
        return {"options": {**self._own, "startingTimestamp": str(int(since * 1000)), **strategy}}

    def events(self, folder: Path) -> pa.Table:
        """See `Target`; writes a file with the records of each partition."""
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
        """Of each partition the offset of our first record, and the records."""
        return list(zip(self.begins, self._lines, strict=True))

    def numbers(self, sources: Sequence[str], places: Ints) -> Ints:
        """See `Target`."""
        partitions = {name: int(name.rpartition("/")[2]) for name in set(sources)}
        own = np.array([partitions[name] for name in sources], np.int64)
        begins = np.array(self.begins, np.int64)
        return (places - begins[own]) * len(self.begins) + own

    def read_by(self, offset: Mapping[str, Any]) -> Ints:
        """See `Target`; the offset has the end of each partition."""
        ends, count = offset[self._topic], len(self.begins)
        parts = [
            np.arange(max(0, ends.get(str(number), begin) - begin)) * count + number
            for number, begin in enumerate(self.begins)
        ]
        return np.concatenate(parts)


def _producer(options: Mapping[str, Any]) -> KafkaProducer:
    from kafka import KafkaProducer

    return KafkaProducer(**options, acks="all", enable_idempotence=True, linger_ms=5, batch_size=1 << 17)


def _no_answer(options: Mapping[str, Any], error: Exception) -> SetupError:
    must, servers = "must answer", options["bootstrap_servers"]
    return SetupError(f"broker {servers} — {must}; got: {_said(error)}. Start it, or correct source.servers.")


def _said(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__)

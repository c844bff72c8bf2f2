"""The producer, a process of its own: records at a rate, with the clock's event times, and a ledger of them.

One record in a thousand is bad and one in a thousand a minute late. A ledger has the records of one partition
in order, so its line n is offset n: what the job must have seen, written down without the job or the broker.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import click
from kafka import KafkaProducer

from tests.long.soak.settings import TOPIC, Settings

DEVICES = 1000
TICK_SECONDS = 0.02
LATE_SECONDS = 60
BAD = (
    b'{"t":"yesterday","value":1}',
    b"no JSON at all",
    b'{"kind":"<script>alert(1)</script>"}',
    b'{"t":"2026-01-01T00:00:00Z","value":"high"}',
)

Send = Callable[[int, bytes], None]


def records(seed: int) -> Callable[[float], bytes]:
    """The next record, given the time (seconds since 1970)."""
    chance = random.Random(seed)

    @lru_cache(maxsize=2)
    def text(time: float) -> bytes:
        return (
            datetime.fromtimestamp(time, timezone.utc)
            .isoformat(timespec="microseconds")
            .replace("+00:00", "Z")
            .encode()
        )

    def record(now: float) -> bytes:
        kind = chance.random()
        if kind < 0.001:
            return chance.choice(BAD)
        time = text(now - LATE_SECONDS if kind < 0.002 else now)
        name = b"alarm" if kind > 0.99 else b"reset" if kind > 0.98 else b"reading"
        return b'{"t":"%s","device":"d%03d","kind":"%s","value":%.4f}' % (
            time,
            int(chance.random() * DEVICES),
            name,
            chance.random(),
        )

    return record


def produce(settings: Settings, send: Send) -> int:
    """Send records until the time is over; returns how many."""
    record = records(seed=1)
    began = time.monotonic()
    sent = 0
    while (second := time.monotonic() - began) < settings.seconds:
        now = time.time()
        for number in range(sent, due := settings.due(second)):
            send(number % settings.partitions, record(now))
        sent = due
        threading.Event().wait(TICK_SECONDS)
    return sent


@click.command()
@click.argument("servers")
@click.argument("described")
def main(servers: str, described: str) -> None:
    """Send the records of the settings DESCRIBED, in JSON, to SERVERS.

    Exits with 1 if the broker did not take every record, at the offset that the ledger says.
    """
    settings = Settings(**{**json.loads(described), "out": Path(json.loads(described)["out"])})
    settings.ledger(0).parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        ledgers = [
            files.enter_context(open(settings.ledger(partition), "ab"))
            for partition in range(settings.partitions)
        ]
        lines, offsets = _produce_to(servers, settings, ledgers)
    sys.exit(0 if offsets == [count - 1 for count in lines] else 1)


def _produce_to(servers: str, settings: Settings, ledgers: Sequence[BinaryIO]) -> tuple[list[int], list[int]]:
    """Send everything; the lines of each ledger and the last offset of each partition."""
    producer = KafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, linger_ms=10, batch_size=1 << 17
    )
    ledgers_before = map(settings.ledger, range(settings.partitions))  # of an earlier run
    lines = [ledger.read_bytes().count(b"\n") for ledger in ledgers_before]
    last = {}

    def send(partition: int, record: bytes) -> None:
        last[partition] = producer.send(TOPIC, record, partition=partition)
        ledgers[partition].write(record + b"\n")
        lines[partition] += 1

    produce(settings, send)
    producer.flush()
    offsets = [last[partition].get(60).offset for partition in range(settings.partitions)]
    producer.close()
    return lines, offsets


def command(servers: str, settings: Settings) -> list[str]:
    """The command line of a producer."""
    return [
        sys.executable,
        "-m",
        "tests.long.soak.producer",
        servers,
        json.dumps({**asdict(settings), "out": str(settings.out)}),
    ]


if __name__ == "__main__":
    main()

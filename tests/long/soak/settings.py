"""What a soak is made of: rates, times, places, and the job file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.jobs import ROOT
from examples.ports import free_port

TOPIC = "soak"
HERE = Path(__file__).parent
# parts of the time: early, so that most of it shows whether anything stays behind
BURST_BEGINS, BURST_ENDS = 0.2, 0.25

# the heap is touched whole at the start: what then grows in the resident memory of the JVM is outside of it
MEMORY = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Xss16m -Xms1g -XX:+AlwaysPreTouch"}

JOB = """
name: soak
source:
  {{kind: kafka, servers: "{servers}", topics: [{topic}], format: json,
    starting_offsets: earliest, max_offsets_per_trigger: {most}}}
events: {{delay: {delay_s} s}}
rules: [{rules}]
sink: {{kind: delta, path: tables}}
checkpoint: checkpoint
trigger: {trigger_s} s
operators: [tests.long.soak.operators]
page: {{port: {page}}}
metrics: {{port: {metrics}}}
spark: {spark}
"""


@dataclass(frozen=True)
class Settings:
    """One soak.

    Attributes:
        out: the folder for everything it writes.
        minutes: how long events are produced.
        rate: events a second.
        burst: for a twentieth of the time the rate is this many times higher; 1: never.
        partitions: of the topic.
        trigger_s: seconds from one batch's start to the next.
        delay_s: of the job.
        look_s: seconds between two looks at the JVM's live memory.
        ports: where the job answers: its page, and its counters.
    """

    out: Path
    minutes: float = 30
    rate: int = 2000
    burst: int = 10
    partitions: int = 4
    trigger_s: int = 2
    delay_s: int = 2
    look_s: float = 30
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    @property
    def seconds(self) -> float:
        """How long events are produced."""
        return 60 * self.minutes

    @property
    def burst_seconds(self) -> tuple[float, float]:
        """When the burst begins and ends; the same where there is none."""
        begins = BURST_BEGINS * self.seconds
        return begins, BURST_ENDS * self.seconds if self.burst > 1 else begins

    @property
    def most_offsets(self) -> int:
        """The most records of a batch: more than usually come, but far fewer than in the burst."""
        return 4 * self.rate * self.trigger_s

    @property
    def job_file(self) -> Path:
        """Where the job file is."""
        return self.out / "job.yaml"

    @property
    def tables(self) -> Path:
        """Where the job's tables are."""
        return self.out / "tables"

    @property
    def checkpoint(self) -> Path:
        """Where the job's checkpoint is."""
        return self.out / "checkpoint"

    def ledger(self, partition: int) -> Path:
        """The records of a partition as they were sent: line n is offset n."""
        return self.out / "ledger" / f"{partition}.jsonl"

    @property
    def addresses(self) -> list[str]:
        """What somebody who watches the job asks for, again and again."""
        page, metrics = (f"http://127.0.0.1:{port}" for port in self.ports)
        return [f"{page}/", f"{page}/told.json", f"{metrics}/metrics"]

    def due(self, second: float) -> int:
        """How many records should have been sent by a second of the run."""
        begins, ends = self.burst_seconds
        return int(self.rate * (second + (self.burst - 1) * max(0.0, min(second, ends) - begins)))

    def write_job(self, servers: str) -> None:
        """Write the job file."""
        values = {
            "topic": TOPIC,
            "most": self.most_offsets,
            "delay_s": self.delay_s,
            "trigger_s": self.trigger_s,
            "page": self.ports[0],
            "metrics": self.ports[1],
        }
        text = JOB.format(servers=servers, rules=HERE / "rules.yaml", spark=json.dumps(MEMORY), **values)
        self.job_file.write_text(text)


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from MINUTES, RATE and BURST; the rest as it is."""
    given = {
        name.lower(): float(environment[name]) for name in ("MINUTES", "RATE", "BURST") if name in environment
    }
    return Settings(
        ROOT / "out" / "soak",
        given.get("minutes", 30),
        int(given.get("rate", 2000)),
        int(given.get("burst", 10)),
    )

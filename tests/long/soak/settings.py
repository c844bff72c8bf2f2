"""What a soak is made of: rates, times, places, its job, and the run of the load driver that loads it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.ports import free_port

TOPIC = "soak"
PARTITIONS = 4
DELAY_S = 2
HERE = Path(__file__).parent
# parts of the time: early, so that most of it shows whether anything stays behind
BURST_BEGINS, BURST_ENDS = 0.2, 0.25

# the heap is touched whole at the start: what then grows in the resident memory of the JVM is outside of it
MEMORY = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Xss16m -Xms1g -XX:+AlwaysPreTouch"}

GENERATED = {
    "device": {"uniform": [0, 999]},
    "kind": {"choice": {"reading": 0.98, "reset": 0.01, "alarm": 0.01}},
    "value": {"uniform": [0, 1]},
}


@dataclass(frozen=True)
class Settings:
    """One soak.

    Attributes:
        out: the folder for everything it writes.
        minutes: how long events are produced.
        rate: events a second.
        burst: for a twentieth of the time the rate is this many times higher; 1: never.
        trigger_s: seconds from one batch's start to the next.
        look_s: seconds between two looks at the JVM's live memory.
        ports: where the job answers: its page, and its counters.
    """

    out: Path
    minutes: float = 30
    rate: int = 2000
    burst: int = 10
    trigger_s: int = 2
    look_s: float = 30
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    @property
    def seconds(self) -> float:
        """How long events are produced."""
        return 60 * self.minutes

    @property
    def phases(self) -> list[dict[str, Any]]:
        """Those of the run."""
        if self.burst == 1:
            return [{"name": "even", "seconds": self.seconds, "rate": self.rate}]
        begins, ends = BURST_BEGINS * self.seconds, BURST_ENDS * self.seconds
        high = self.burst * self.rate
        return [
            {"name": "before", "seconds": begins, "rate": self.rate},
            {"name": "burst", "seconds": ends - begins, "rate": high, "role": "peak"},
            {"name": "after", "seconds": self.seconds - ends, "rate": self.rate, "role": "recovery"},
        ]

    @property
    def addresses(self) -> list[str]:
        """What somebody who watches the job asks for, again and again."""
        page, metrics = (f"http://127.0.0.1:{port}" for port in self.ports)
        return [f"{page}/", f"{page}/told.json", f"{metrics}/metrics"]

    def write_run(self, servers: str) -> Path:
        """Write the job file and the run file; returns the latter."""
        source: dict[str, object] = {"kind": "kafka", "servers": servers, "topics": [TOPIC], "format": "json"}
        # more than usually come, but far fewer than in the burst
        source |= {"max_offsets_per_trigger": 4 * self.rate * self.trigger_s}
        job = {
            "name": "soak",
            "source": source,
            "events": {"delay": f"{DELAY_S} s"},
            "rules": [str(HERE / "rules.yaml")],
            "sink": {"kind": "delta", "path": "tables"},
            "checkpoint": "checkpoint",
            "trigger": f"{self.trigger_s} s",
            "operators": ["tests.long.soak.operators"],
            "page": {"port": self.ports[0]},
            "metrics": {"port": self.ports[1]},
            "spark": MEMORY,
        }
        run = {"name": "soak", "job": "job.yaml", "phases": self.phases, "limit": "5 min", "seed": 1}
        run |= {"events": {"generate": GENERATED}}
        for name, written in (("job.yaml", job), ("run.yaml", run)):
            (self.out / name).write_text(json.dumps(written))  # JSON is YAML
        return self.out / "run.yaml"

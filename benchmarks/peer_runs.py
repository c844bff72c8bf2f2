"""The patterns of the measurements in Flink CEP and in Esper: the mains of `benchmarks/peers/…/measured`."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compared import build
from benchmarks.rows import require

JAVA = ("java", "-Xmx4g", "--add-opens=java.base/java.util=ALL-UNNAMED")
DEFAULT_INTERVAL = 200
# Milliseconds between Flink's watermarks. 20 was a little slower than 1 (500,000 events, `each`: 5.2 s and
# 5.0 s from the file, 4.3 s and 4.1 s from memory, beside 7.3 s and 7.7 s with the default).
INTERVALS = (DEFAULT_INTERVAL, 1)

Found = tuple[int, str]  # how many matches, and a digest of their events


@dataclass(frozen=True)
class PeerRun:
    """The median seconds of a pattern in an engine; `interval` is None for Esper, which has no watermarks."""

    engine: str
    source: str  # file, memory
    interval: int | None
    pattern: str
    seconds: float


def peer_runs(file: Path, events: int, rounds: int, expected: dict[str, Found]) -> Iterator[PeerRun]:
    """Run all patterns of `expected` in both engines, from the file and from memory.

    Args:
        file: JSON lines.
        events: how many there are.
        rounds: how often each is timed, behind a round to warm up; that is left out with Flink's default
            interval, with which one round takes longer than all others together.
        expected: of each pattern, what must be found.

    Raises:
        SystemExit: an engine finds something else.
    """
    classpath = build()
    for source in ("file", "memory"):
        for engine, main, intervals in (("Esper", "EsperRun", [None]), ("Flink CEP", "FlinkRun", INTERVALS)):
            for interval in intervals:
                all_rounds = rounds + (interval != DEFAULT_INTERVAL)
                given = [str(file), source, str(events), str(all_rounds)]
                given += [*([] if interval is None else [str(interval)]), *expected]
                for pattern, seconds in timed(
                    engine, ["-cp", classpath, f"peers.measured.{main}", *given], rounds, expected
                ):
                    yield PeerRun(engine, source, interval, pattern, seconds)


def timed(
    engine: str, java: list[str], rounds: int, expected: dict[str, Found]
) -> Iterator[tuple[str, float]]:
    """The median seconds of each pattern in an engine, over so many rounds, the last ones.

    Args:
        engine: the name of the engine.
        java: the arguments of Java: a main of `peers.measured` with its own.
        rounds: how many rounds count.
        expected: of each pattern, what must be found in all rounds.

    Raises:
        SystemExit: something else is found.
    """
    output = subprocess.run([*JAVA, *java], stdout=subprocess.PIPE, text=True, check=True).stdout
    told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    for pattern, wanted in expected.items():
        of_it = [line for line in told if line["pattern"] == pattern]
        found = {(line["matches"], line["digest"]) for line in of_it}
        require(found == {wanted}, f"{engine}, {pattern}: found {found} where the core finds {wanted}")
        yield pattern, statistics.median(line["seconds"] for line in of_it[-rounds:])

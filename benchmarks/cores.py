"""Two task slots beside one: a Python operator of one millisecond (busy, not asleep), and a pattern.

Each number of slots has a process of its own, since a session's master cannot change. Timed is the job's own
time from the start of its query to the end, in a warm session. All runs must give the core's rows in the
core's order.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.events import write_events
from benchmarks.jobs import DATA, job, require_equal, run_anew
from benchmarks.patterns import FILES, rule
from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes
from spark_pace.spark.session import build_session

OPERATOR, EACH = "operator of 1 ms", "each, JSON files to Delta"
TARGETS = {OPERATOR: "<= 0.53", EACH: None}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Both jobs with one slot, which is the floor, and with two."""
    one, two = (alone_in("cores", slots, sizes.selections, sizes.events) for slots in (1, 2))
    for name, target in TARGETS.items():
        yield Row("cores", f"{name}; 1 slot", one[name], "s", 1.0, None, "the core's matches")
        yield Row(
            "cores", f"{name}; 2 slots", two[name], "s", two[name] / one[name], target, "the core's matches"
        )


def alone(slots: int, selections: int, events: int) -> dict[str, float]:
    """The seconds of both jobs with so many slots; each runs twice, first to warm up."""
    specs = {
        OPERATOR: job("operator", write_events(DATA / f"operator-{selections}", 5 * selections, 2)),
        EACH: job("cores", write_events(DATA / f"stream-{events}", events, FILES, "number"), rule("each")),
    }
    spark = build_session("bench", {"spark.master": f"local[{slots}]"}, quick=True)
    try:
        for spec in specs.values():
            require_equal(run_anew(spec)[0])
        return {name: run_anew(spec)[1].seconds for name, spec in specs.items()}
    finally:
        spark.stop()

"""A Python operator of one millisecond (busy, not asleep) over 20,000 selections: two task slots beside one.

Each number of slots has a process of its own, since a session's master cannot change. Timed: the job's own
time from the start of its query to the end, in a warm session. Both runs must give the core's rows in the
core's order.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

from benchmarks.events import write_events
from benchmarks.jobs import ROOT, job, require_equal, run_anew
from spark_pace.spark.session import build_session

SELECTIONS = 20_000
EVENTS = 5 * SELECTIONS
TARGET = 0.6


def measure() -> dict[str, Any]:
    """Run both; the figures."""
    one, two = (in_own_process(slots) for slots in (1, 2))
    return {
        "name": "parallel operators",
        "what": "wall time of 20,000 selections of 1 ms (busy) with 2 task slots, over that with 1",
        "selections": SELECTIONS,
        "seconds_1": one,
        "seconds_2": two,
        "ratio": round(two / one, 3),
        "target": f"<= {TARGET}",
        "reached": two / one <= TARGET,
    }


def in_own_process(slots: int) -> float:
    """Seconds of the job with that many task slots."""
    command = [sys.executable, "-m", "benchmarks.parallel", str(slots)]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(answer.stdout.splitlines()[-1]))


def timed(slots: int) -> float:
    """Run the job twice in this process, the first time to warm up."""
    spec = job("operator", write_events(ROOT / "data" / "bench" / "operator", EVENTS, 2))
    shutil.rmtree(spec.sink_path, ignore_errors=True)
    spark = build_session("bench", {"spark.master": f"local[{slots}]"})
    try:
        if require_equal(run_anew(spec)[0]) != SELECTIONS:
            raise SystemExit("the number of selections must be 20,000")
        return run_anew(spec)[1].seconds
    finally:
        spark.stop()


if __name__ == "__main__":
    print(json.dumps(timed(int(sys.argv[1]))))

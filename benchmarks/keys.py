"""What a batch of 10,000 events costs with ten live keys and with a million: in the core, and in the job.

Each key has a login that is open. A batch ends half as many as it has events, of random keys, and opens
them anew; so there are as many matches with few keys as with many. The matches of the core are compared with
those of one batch of all events, and those of the job with the core's.

``python -m benchmarks.keys [KEYS ...]``
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.carry import BATCH
from benchmarks.waits import FILLING, TIMED, WARM, in_a_process_of_its_own, job_over, measure
from spark_pace.core.local import LocalRun, run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.rules import load_rules

KEYS = (10, 1_000_000)
COLUMNS = ["time", "out", "user"]


def main() -> int:
    """Measure with each number of keys."""
    counts = [int(text) for text in sys.argv[1:]] or list(KEYS)
    if len(counts) == 1:
        print(json.dumps(figures(counts[0])))
        return 0
    results = [in_a_process_of_its_own("benchmarks.keys", count) for count in counts]
    base = results[0]
    for row in results:
        told = ", ".join(f"{name} {value:,}" for name, value in row.items())
        ratios = ", ".join(
            f"{name} x {row[name] / base[name]:.2f}" for name in ("core", "core_mean", "seconds", "mean")
        )
        print(f"{told}; of the first: {ratios}")
    print(json.dumps(results))
    return 0


def figures(keys: int) -> dict[str, Any]:
    """The figures with so many live keys.

    Raises:
        SystemExit: the matches are wrong.
    """
    seconds = core_seconds(keys)
    spec = job_over("keys", f"keys-{keys}", (batch.select(COLUMNS) for batch in batches_of(keys)))
    core = {"core": round(statistics.median(seconds), 4), "core_mean": round(statistics.mean(seconds), 4)}
    return {"keys": keys, **core, **measure(spec)}


def core_seconds(keys: int) -> list[float]:
    """The seconds of each timed batch in the core, from its records to its numbered matches."""
    plan = build_plan(load_rules(Path(__file__).with_name("keys.yaml")), order=OrderSpec())
    batches = list(batches_of(keys))
    local, seconds, matches = LocalRun(plan), [], []
    for batch in batches:
        start = perf_counter()
        matches.append(local.step(batch).matches)
        seconds.append(perf_counter() - start)
    matches.append(local.step(None, finish=True).matches)
    found = pa.concat_tables(matches).combine_chunks()
    if not found.equals(run(plan, [pa.concat_tables(batches).combine_chunks()]).matches.combine_chunks()):
        raise SystemExit(f"{keys:,} keys — must give the matches of one batch; got others")
    return seconds[-TIMED:]


def batches_of(keys: int) -> Iterator[pa.Table]:
    """A login of every key; then batches in which keys log out and in again."""
    random = np.random.default_rng(1)
    for first in range(0, keys, FILLING):
        users = np.arange(first, min(keys, first + FILLING))
        yield events(first, users, np.zeros(len(users), np.bool_))
    for turn in range(WARM + TIMED):
        users = np.repeat(random.permutation(np.arange(max(keys, BATCH // 2)) % keys)[: BATCH // 2], 2)
        yield events(keys + turn * BATCH, users, np.arange(BATCH) % 2 == 0)


def events(first: int, users: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> pa.Table:
    """Events, 500 a second."""
    numbers = np.arange(first, first + len(users))
    time = pa.array(numbers * 2000)
    return pa.table({
        "@time": time,
        "@source": pa.DictionaryArray.from_arrays(np.zeros(len(users), np.int32), ["logins"]),
        "@offset": numbers,
        "time": time.view(pa.timestamp("us")),
        "out": out,
        "user": [f"user{number:07d}" for number in users],
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

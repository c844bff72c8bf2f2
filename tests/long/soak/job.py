"""The job of a soak, a process of its own: `run_job`, with a look at the JVM's live memory once a minute.

A collection is asked for before each look: only what is still in use counts. It costs the batch at work some
tenths of a second.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from spark_pace.job import run_job
from spark_pace.job_file import read_job

HEAP_FILE = "heap.jsonl"


def main(job: Path, *, finish: bool) -> int:
    """Run the job of a file: as it says, or to the end of what is there."""
    spec = read_job(job)
    if finish:
        run_job(replace(spec, trigger_us="available_now", finish=True))
        return 0
    over = threading.Event()
    watch = threading.Thread(target=watch_heap, args=(job.parent / HEAP_FILE, over), daemon=True)
    watch.start()
    try:
        run_job(spec)
    finally:
        over.set()
    return 0


def watch_heap(path: Path, over: threading.Event, every_seconds: float = 30) -> None:
    """Note the bytes of the heap in use after a collection until `over`."""
    while not over.wait(every_seconds):
        context = SparkContext._active_spark_context
        if context is None or context._jvm is None:
            continue
        context._jvm.java.lang.System.gc()
        used = (
            context._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
            .getHeapMemoryUsage()
            .getUsed()
        )
        with open(path, "a", encoding="ascii") as file:
            file.write(json.dumps({"time": time.time(), "heap_bytes": used}) + "\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), finish=sys.argv[2:] == ["finish"]))

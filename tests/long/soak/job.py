"""The job of a soak, a process of its own: `run_job`, with looks at the JVM's live memory.

A collection is asked for before each look: only what is still in use counts. It costs the batch at work some
tenths of a second.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import click
from pyspark import SparkContext

from spark_pace.job import run_job
from spark_pace.job_file import read_job

HEAP_FILE = "heap.jsonl"


@click.command()
@click.argument("job", type=click.Path(path_type=Path))
@click.argument("end", required=False, type=click.Choice(["finish"]))
@click.option("--look-s", default=30.0, help="Seconds between two looks.")
def main(job: Path, end: str | None, look_s: float) -> None:
    """Run the JOB of a file: as it says, or, with ``finish``, to the end of what is there."""
    spec = read_job(job)
    if end is not None:
        run_job(replace(spec, trigger_us="available_now", finish=True))
        return
    over = threading.Event()
    watch = threading.Thread(target=watch_heap, args=(job.parent / HEAP_FILE, over, look_s), daemon=True)
    watch.start()
    try:
        run_job(spec)
    finally:
        over.set()


def watch_heap(path: Path, over: threading.Event, every_seconds: float) -> None:
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
    main()

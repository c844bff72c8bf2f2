"""The process that forks Spark's Python workers: PySpark's own, with all that workers import loaded before.

PySpark's daemon loads nothing, so every worker loads pyarrow, pandas and the core anew, which takes half a
second of a processor each; a job has up to six for each core. A worker that is forked with these modules
begins at once, and shares their memory with the others. PySpark does not do so because a library may start
threads as it is loaded, which a fork would lose: then this daemon loads nothing either. pyarrow's allocator
has such a thread, but sees to forks itself.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from spark_pace.spark.internals import DAEMON, WORKER, fork_workers

# what the tasks of a job import; by name, for some of them import this folder
LOADED = (
    "pandas",
    "pyarrow.compute",
    WORKER,
    "spark_pace.spark.sources.files",
    "spark_pace.spark.sources.delta",
    "spark_pace.spark.sources.kafka",
    "spark_pace.spark.stages.operators",
    "spark_pace.spark.stages.splitter",
)
_THREADS = "/proc/self/task"
_OF_ALLOCATOR = "jemalloc_bg_thd"  # jemalloc stops it before a fork and starts it again on both sides


def load() -> None:
    """Load what workers need, and keep the collector of garbage off it.

    So its memory stays shared, and a worker, which collects garbage after each task, does not go through it.
    """
    for name in LOADED:
        import_module(name)
    import_module("spark_pace.io.text.compiled_reader").compiled_reader().load()
    import_module("spark_pace.spark.stages.memory").keep_freed()
    gc.collect()
    gc.freeze()


def lost_threads() -> int:
    """How many threads of this process a fork would lose; 0 where the system does not tell."""
    names = []
    with suppress(OSError):
        for thread in os.listdir(_THREADS):
            names.append(Path(_THREADS, thread, "comm").read_text(encoding="utf-8").strip())
    return max(0, sum(name != _OF_ALLOCATOR for name in names) - 1)


if __name__ == "__main__":
    load()
    if lost_threads():
        os.execv(sys.executable, [sys.executable, "-m", DAEMON, *sys.argv[1:]])
    fork_workers()

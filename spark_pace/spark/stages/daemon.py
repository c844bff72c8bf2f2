"""The process that forks Spark's Python workers: PySpark's daemon, after loading what workers import.

PySpark's daemon loads nothing, so every worker loads pyarrow, pandas and the core itself, in half a second of
processor time; a job has up to six workers for each core. A worker forked from this daemon begins at once,
and shares the modules' memory. PySpark does not do this because a library may start threads when it is
loaded, and a fork loses them. If there are such threads, PySpark's own daemon takes over. A thread of
pyarrow's allocator is no problem, because the allocator handles forks.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from spark_pace.spark.internals import DAEMON, WORKER, fork_workers

# the modules that tasks import; as names, because some of them import this folder
LOADED = (
    "pandas",
    "pyarrow.compute",
    WORKER,
    "spark_pace.spark.sources.files",
    "spark_pace.spark.sources.kafka",
    "spark_pace.spark.stages.operators",
    "spark_pace.spark.stages.splitter",
)
_THREADS = "/proc/self/task"
_OF_ALLOCATOR = "jemalloc_bg_thd"  # jemalloc stops it before a fork and starts it again on both sides


def load() -> None:
    """Import what workers need, and exclude it from garbage collection.

    So its memory stays shared, and workers, which collect garbage after each task, do not search it.
    """
    for name in LOADED:
        import_module(name)
    import_module("spark_pace.io.text.plain_json").compiled_reader().load()
    import_module("spark_pace.spark.stages.rows").keep_freed()
    gc.collect()
    gc.freeze()


def lost_threads() -> int:
    """The number of threads that a fork would lose; 0 if the system does not say."""
    names = []
    with suppress(OSError):
        for thread in os.listdir(_THREADS):
            names.append(Path(_THREADS, thread, "comm").read_text(encoding="utf-8").strip())
    return max(0, sum(name != _OF_ALLOCATOR for name in names) - 1)


if __name__ == "__main__":
    load()
    if lost_threads() or not fork_workers():
        os.execv(sys.executable, [sys.executable, "-m", DAEMON, *sys.argv[1:]])

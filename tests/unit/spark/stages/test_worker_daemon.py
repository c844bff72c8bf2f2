"""The process that forks Python workers: what it loads starts no threads, which a fork would lose."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys

LOADS = """
import gc
from spark_pace.io.text.plain_json import compiled_reader
from spark_pace.spark.stages.daemon import load, lost_threads
compiled_reader().load(is_made_now=True)
compiled_reader.cache_clear()
load()
print(lost_threads(), gc.get_freeze_count() > 10_000, compiled_reader().is_ready_for(0))
"""
STARTS_A_THREAD = """
import threading
from spark_pace.spark.stages.daemon import lost_threads
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(lost_threads())
"""


def test_what_workers_need_is_loaded_without_a_thread_and_kept_from_the_collector() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # as Spark sets it for workers
    answer = subprocess.run(
        [sys.executable, "-c", LOADS], capture_output=True, text=True, check=True, env=environment
    )
    assert answer.stdout.split() == ["0", "True", "True"]


def test_a_thread_that_a_fork_would_lose_is_seen() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", STARTS_A_THREAD], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["1"]


def test_a_worker_whose_connection_has_gone_says_nothing() -> None:
    command = [sys.executable, "-m", "spark_pace.spark.stages.daemon", "pyspark.worker"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_WORKER_FACTORY_SECRET": "any"}
    daemon = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert daemon.stdout is not None
    (port,) = struct.unpack("!i", daemon.stdout.read(4))
    with socket.create_connection(("127.0.0.1", port)) as spark:
        (worker,) = struct.unpack("!i", spark.recv(4, socket.MSG_WAITALL))
        abort = struct.pack("ii", 1, 0)  # the close below is a reset, as after the kill of Spark's end
        spark.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort)
    ended = os.pidfd_open(worker)
    assert select.select([ended], [], [], 60)[0]
    assert daemon.communicate(timeout=60) == (b"", b"")

"""A process that works on batches keeps the memory that it frees, within limits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from spark_pace.spark.stages import rows

HAS_GLIBC = hasattr(ctypes.CDLL(None), "mallinfo2")  # other allocators are left alone
BATCHES = """
import resource, numpy, pyarrow
from spark_pace.spark.stages.rows import keep_freed
keep_freed()
def batch():
    arrays = [numpy.ones(1 << 20) for _ in range(4)]  # 8 MiB each
    arrays += [pyarrow.array(arrays[0]).take(pyarrow.array(arrays[0].astype(int)))]
batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PINNED = """
import numpy, resource
from spark_pace.spark.stages.rows import _resident, give_back, keep_freed
keep_freed()
arrays = [numpy.ones(1 << 20) for _ in range(60)]  # 480 MiB
small = numpy.ones(1 << 17)  # in use, at the end of the heap
del arrays
kept = _resident() >> 20
give_back()
left = _resident() >> 20
def batch():
    [numpy.ones(1 << 20) for _ in range(4)]
    give_back()
batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
batch()
print(kept, left, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
TOLD = """
import pyarrow
from spark_pace.spark.stages.rows import keep_freed
before = pyarrow.default_memory_pool().backend_name
keep_freed()
print(before == pyarrow.default_memory_pool().backend_name)
"""
GIVEN = {
    "ARROW_DEFAULT_MEMORY_POOL": "mimalloc",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "GLIBC_TUNABLES": "glibc.malloc.check=0",
}


def said(script: str, **given: str) -> list[str]:
    """What a script prints in a process whose environment says no more of memory than is given."""
    environment = {name: value for name, value in os.environ.items() if name not in rows._CHOSEN}
    environment |= {"NUMPY_MADVISE_HUGEPAGE": "0", **given}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_what_is_freed_is_used_again() -> None:
    (faults,) = map(int, said(BATCHES))
    assert faults < 6_000 or not HAS_GLIBC  # of 4 KiB; the arrays have 12,288, and some may be moved


def test_no_more_than_a_usual_batch_needs_is_kept() -> None:
    """Then it is kept again, though what was given back counts as free."""
    if HAS_GLIBC:
        kept, left, faults = map(int, said(PINNED))
        assert left < kept - 400
        assert faults < 2_000  # of 4 KiB; the arrays have 8,192


@pytest.mark.parametrize("name", GIVEN)
def test_what_the_environment_says_stands(name: str) -> None:
    assert said(TOLD, **{name: GIVEN[name]}) == ["True"]
    assert said(TOLD) == [str(not HAS_GLIBC)]

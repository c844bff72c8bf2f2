"""Processes of their own for measurements, and what a process and all that it has started take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
import psutil

ROOT = Path(__file__).parents[1]
Result = TypeVar("Result")


@contextmanager
def watched(measure: Callable[[psutil.Process], int], seconds: float) -> Iterator[list[int]]:
    """What is measured of this process every so many seconds."""
    sizes: list[int] = []
    over = threading.Event()
    process = psutil.Process(os.getpid())

    def watch() -> None:
        while not over.wait(seconds):
            sizes.append(measure(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()


def resident(process: psutil.Process) -> int:
    """Resident bytes of a process and all that it has started."""
    return _sum(process, lambda one: int(one.memory_info().rss))


def proportional(process: psutil.Process) -> int:
    """Count the bytes of `resident`, but pages that processes share once."""
    return _sum(process, lambda one: int(one.memory_full_info().pss))


def _sum(process: psutil.Process, size: Callable[[psutil.Process], int]) -> int:
    total = 0
    for one in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            total += size(one)
    return total


def peak_mb(action: Callable[[], Result]) -> tuple[Result, float]:
    """What an action gives, and the most megabytes of this process, the JVM and the workers meanwhile."""
    with watched(proportional, 1) as sizes:
        result = action()
    return result, max([*sizes, proportional(psutil.Process())]) / 1e6


def alone(module: str, *arguments: Any) -> Any:
    """What ``benchmarks.MODULE.alone(*arguments)`` gives in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.processes", module, json.dumps(arguments)]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(answer.stdout.splitlines()[-1])


@click.command()
@click.argument("module")
@click.argument("arguments")
def main(module: str, arguments: str) -> None:
    """Print what ``benchmarks.MODULE.alone`` gives of ARGUMENTS, both as JSON."""
    print(json.dumps(import_module(f"benchmarks.{module}").alone(*json.loads(arguments))))


if __name__ == "__main__":
    main()

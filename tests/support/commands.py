"""The command `spark-pace`, called as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPARK_PACE = Path(sys.executable).parent / "spark-pace"
RUNS = {"spark-pace": [SPARK_PACE, "run"], "jobs/run.py": [sys.executable, "jobs/run.py"]}


def environment() -> dict[str, str]:
    """For a process that must find the modules of these tests wherever it runs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def called(
    *command: object, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command has printed, and its exit code."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def spark_pace(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return called(SPARK_PACE, *arguments, cwd=cwd)

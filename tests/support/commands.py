"""The command `spark-pace`: what it says, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
SPARK_PACE = Path(sys.executable).parent / "spark-pace"
RUNS = {"spark-pace": [SPARK_PACE, "run"], "jobs/run.py": [sys.executable, "jobs/run.py"]}
# processes are forked from one that has loaded what the commands load: that takes each of them half a second
FORKED = get_context("forkserver")
FORKED.set_forkserver_preload([
    "spark_pace.cli.main",
    *(f"spark_pace.cli.{name}_command" for name in ("plan", "replay", "why")),
    "spark_pace.cli.status",
])  # fmt: skip


def environment() -> dict[str, str]:
    """For a process that must find the modules of these tests wherever it runs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def message_of(log: str) -> str:
    """The lines of a run without the time before each, and without the job before the line it failed with."""
    lines = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ (.*)", line) for line in log.splitlines()]
    assert None not in lines, log
    messages = [line[1] for line in lines if line is not None]
    return "".join(re.sub(r"^/\S+ \(checkpoint /\S+\): ", "", line) + "\n" for line in messages)


def called(
    *command: object, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command has printed, and its exit code."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def spark_pace(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The same of `spark-pace`, in a forked process; `called(SPARK_PACE, ...)` starts one as a user does."""
    words = [str(argument) for argument in arguments]
    with TemporaryDirectory() as folder:
        said = [Path(folder) / name for name in ("out", "err")]
        process = FORKED.Process(target=_run, args=(words, cwd, dict(os.environ), said))
        process.start()
        process.join()
        code = process.exitcode
        process.close()
        assert code is not None
        out, err = (path.read_text() for path in said)
    return subprocess.CompletedProcess(words, code, out, err)


def _run(arguments: list[str], cwd: Path, environment: dict[str, str], said: list[Path]) -> None:
    from spark_pace.cli.main import main

    for number, path in enumerate(said, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(SPARK_PACE), *arguments]
    main()

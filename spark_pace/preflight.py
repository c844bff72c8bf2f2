"""Checks what a machine must have before long work starts: Java 17 or 21, disk space, enough open files.

Standard library only, so that ``python -m spark_pace.preflight`` runs before anything is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_pace.errors import Problem, UnfitError

JAVA_VERSIONS = (17, 21)
PYTHON_VERSIONS = ((3, 10), (3, 13))  # first and last
# the environment with its downloads 2.5 GB, jars 40 MB, data and tables of the demo
INSTALL_BYTES = 4_000_000_000
OPEN_FILES = 1024  # the usual limit of systems; Spark's JVM alone opens 300 and more


def java_command() -> str | None:
    """The path of the `java` that Spark will start, from JAVA_HOME if that is set, else from the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None)


def java_problem() -> Problem | None:
    """The problem of the machine's Java, or None; asking Java for its version takes about 50 ms."""
    where = "JAVA_HOME" if os.environ.get("JAVA_HOME") else "java"
    must = "must be Java 17 or 21"
    remedy = (
        "Install one (for example the package openjdk-17-jre-headless) and put it on the PATH, "
        "or point JAVA_HOME at it."
    )
    command = java_command()
    if command is None:
        return Problem(where, must, "no java command", remedy)
    answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if answer.returncode and most_bytes != resource.RLIM_INFINITY:
        needs = "must be enough for Java, which reserves far more than it uses"
        got = f"a limit of {most_bytes / 1e9:.1f} GB, with which {command} does not start"
        return Problem("virtual memory", needs, got, "Take the limit away: `ulimit -v unlimited`.")
    if answer.returncode or version is None:
        return Problem(where, must, f"no version from {command}", remedy)
    if int(version.group(1)) not in JAVA_VERSIONS:
        return Problem(where, must, f"Java {version.group(1)} ({command})", remedy)
    return None


def disk_problem(directory: Path, need_bytes: int) -> Problem | None:
    """The problem that `directory` has no room for `need_bytes`; None if it has."""
    free = shutil.disk_usage(directory).free
    if free >= need_bytes:
        return None
    return Problem(
        str(directory),
        f"must have {need_bytes / 1e9:.1f} GB free",
        f"{free / 1e9:.1f} GB",
        "Make room, or work in a directory on a larger disk.",
    )


def python_problem() -> Problem | None:
    """The problem of this Python, or None: a wrong version, or no modules to make a virtual environment.

    Some distributions put these modules into a package of their own.
    """
    first, last = PYTHON_VERSIONS
    if not first <= sys.version_info[:2] <= last:
        got = ".".join(map(str, sys.version_info[:2]))
        return Problem(
            sys.executable,
            "must be Python 3.10 to 3.13",
            got,
            "Name another: make PYTHON=/path/to/python3.12",
        )
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return None
    return Problem(
        sys.executable,
        "must have the modules venv and ensurepip",
        "a Python without them",
        "Install them (for example the package python3-venv).",
    )


def require_java() -> None:
    """Raise `SetupError` with one line if this machine has no Java for Spark."""
    problem = java_problem()
    if problem:
        raise UnfitError(str(problem))


def require_open_files() -> None:
    """Raise this process's limit of open files; raise `SetupError` with one line if the system forbids that.

    Java raises its own limit, but not in all of its processes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= OPEN_FILES:
        return
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if most < OPEN_FILES:
        do = f"Raise the hard limit, for example by `ulimit -Hn {OPEN_FILES}` as root."
        problem = Problem("open files", f"must be allowed up to {OPEN_FILES} in a process", str(most), do)
        raise UnfitError(str(problem))
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main(arguments: Sequence[str] = ()) -> int:
    """Print everything that is missing, one line each; exit 1 if anything is."""
    argparse.ArgumentParser(description="Say what this machine lacks, one line each.").parse_args(arguments)
    installed = Path(".venv", ".ready").exists()
    problems = [java_problem()]
    if not installed:
        problems += [python_problem(), disk_problem(Path.cwd(), INSTALL_BYTES)]
    found = [problem for problem in problems if problem]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What documents show in fences, and how it is run: files are written, commands called, outputs compared."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[2] / "docs"
RULE_PAGES = [DOCS / "rules.md", *sorted(DOCS.glob("rules/*.md"))]
MARK = "-- the next command --"
# what differs from run to run: so many seconds, so much a second, how far events are behind the clock
MEASURED = re.compile(
    r"[\d.,]+(?=/s\b| s\b)|(?<=; lag )[^;]+|^[\d-]+ [\d:]+Z(?= (?:batch |up to date:))", re.MULTILINE
)


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, the name of the file it stands for, if any, and its text."""

    language: str
    file: str
    text: str


def fences(document: Path) -> list[Fence]:
    return [Fence(*found.groups(default="")) for found in FENCE.finditer(document.read_text())]


def commands(fence: Fence) -> Iterator[tuple[str, str]]:
    """Each command of a session with the output that is shown below it."""
    for part in re.split(r"^\$ ", fence.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def script_of(fences: Sequence[Fence]) -> str:
    """The program of the shell, which prints a mark before each command."""
    lines = ["set -e", "exec 2>&1"]
    for fence in fences:
        if fence.file:
            lines.append(f"cat > {fence.file} <<'END'\n{fence.text}END")
        elif fence.language == "console":
            lines += [f"echo '{MARK}'\n{command}" for command, _ in commands(fence)]
    return "\n".join(lines)


def played(fences: Sequence[Fence], folder: Path, programs: Path) -> list[tuple[str, str]]:
    """Each command with what it prints, on both outputs.

    Args:
        fences: what a document shows.
        folder: where the shell starts.
        programs: the folder with `python` and `spark-pace`.

    Raises:
        AssertionError: A command fails.
    """
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script_of(fences)],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    shown = [command for fence in fences if fence.language == "console" for command, _ in commands(fence)]
    return list(zip(shown, done.stdout.split(f"{MARK}\n")[1:], strict=True))


def differing(fences: Sequence[Fence], folder: Path, programs: Path) -> list[tuple[str, str, str]]:
    """Each command that prints something else than is shown: it, what it prints, what is shown.

    The arguments are those of `played`.
    """
    shown = [output for fence in fences if fence.language == "console" for _, output in commands(fence)]
    return [
        (command, printed, output)
        for (command, printed), output in zip(played(fences, folder, programs), shown, strict=True)
        if MEASURED.sub("N", printed) != MEASURED.sub("N", output)
    ]

"""Java takes classes from the archive beside the jars, and starts as it would without one if it is not right.

A small program stands for Spark, whose own session is looked at once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copy2

import pytest
from pyspark.sql import SparkSession

from spark_pace.preflight import java_command
from spark_pace.spark.java.jars import pyspark_jars
from spark_pace.spark.java.launch import archive_options, archives, keep

pytestmark = pytest.mark.integration

CLASS = "org.apache.ivy.Main"


class Program:
    """A Java program with its archive in a folder.

    Attributes:
        folder: holds the jar and the archive.
    """

    def __init__(self, folder: Path) -> None:
        """Make the archive."""
        self.folder = folder
        (jar,) = pyspark_jars().glob("ivy-*.jar")
        self.jar = Path(copy2(jar, folder))
        self.run(f"-XX:ArchiveClassesAtExit={folder / 'made'}", "-Xlog:cds*=off")
        self.archive = keep(folder / "made", folder)
        self.archive.chmod(0o600)
        assert archives(folder) == [self.archive]

    def run(self, *options: str) -> tuple[str, bool]:
        """What the program says, and whether its classes come from the archive."""
        log = self.folder / "log"
        command = [str(java_command()), *options, f"-Xlog:class+load:file={log}:none"]
        answer = subprocess.run(
            [*command, "-cp", str(self.jar), CLASS, "-version"], capture_output=True, text=True, check=True
        )
        (loaded,) = (line for line in log.read_text().splitlines() if line.startswith(f"{CLASS} "))
        return answer.stdout + answer.stderr, loaded.endswith("shared objects file (top)")

    def start(self) -> tuple[str, bool]:
        return self.run(*archive_options(self.folder))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def change_bytes(path: Path, first: int, step: int) -> None:
    content = bytearray(path.read_bytes())
    for place in range(first, len(content), step):
        content[place] ^= 0xFF
    path.write_bytes(content)


def remove(program: Program) -> None:
    program.archive.unlink()


def empty(program: Program) -> None:
    program.archive.write_bytes(b"")


def cut(program: Program) -> None:
    program.archive.write_bytes(program.archive.read_bytes()[:-5000])


def spoil(program: Program) -> None:
    """Change a byte in each page behind the header."""
    change_bytes(program.archive, 100_000, 4096)


def spoil_header(program: Program) -> None:
    """Change bytes behind its first words, which say what the file is."""
    change_bytes(program.archive, 64, 100_000)


def of_another_java(program: Program) -> None:
    content = program.archive.read_bytes()
    name = b"OpenJDK 64-Bit Server VM ("
    assert name in content
    program.archive.write_bytes(content.replace(name, name.replace(b"64", b"65")))


def of_another_jar(program: Program) -> None:
    program.jar.touch()


def cut_and_rename(program: Program) -> None:
    """As a copy that was made while the disk was full, under a name of its own."""
    program.archive.write_bytes(program.archive.read_bytes()[:-5000])
    program.archive.rename(program.folder / "classes-1.jsa")


@pytest.mark.parametrize(
    "change",
    [
        *(remove, cut, spoil, of_another_java),
        *(pytest.param(change, marks=pytest.mark.long) for change in (empty, cut_and_rename, spoil_header)),
        pytest.param(of_another_jar, marks=pytest.mark.long),
    ],
)
def test_java_does_without_an_archive_that_is_not_right_and_says_nothing(
    program: Program, change: Callable[[Program], None]
) -> None:
    plain, _ = program.run()
    assert plain
    assert program.start() == (plain, True)
    change(program)
    assert program.start() == (plain, False)


def test_spark_uses_the_archive_of_make_setup(spark: SparkSession) -> None:
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    assert "/jars/classes-" in Path(f"/proc/{jvm}/maps").read_text(), "run: make setup"

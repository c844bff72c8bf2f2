"""A session's folder for temporary files: each process has its own; the next start removes killed ones'."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_pace.spark.java.settings import _own_jvm
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.kafka import KafkaInput

WAITS = "from spark_pace.spark.java.home import session_folder; print(session_folder(), flush=True); input()"
ENDS = "from spark_pace.spark.java.home import session_folder; print(session_folder())"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def ends() -> Path:
    return Path(
        subprocess.run(
            [sys.executable, "-c", ENDS], capture_output=True, text=True, check=True
        ).stdout.strip()
    )


def test_a_process_that_ends_leaves_nothing(temporary: Path) -> None:
    assert ends().parent == temporary
    assert list(temporary.iterdir()) == []


def test_a_folder_is_removed_by_the_next_start_only_if_its_process_was_killed(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        (held / "tmp").mkdir()
        (held / "tmp" / "link").symlink_to(temporary)
        assert ends() != held
        assert list(temporary.iterdir()) == [held]
        process.kill()
    assert held.is_dir()
    ends()
    assert list(temporary.iterdir()) == []


def test_what_only_looks_like_such_a_folder_stays(temporary: Path) -> None:
    (temporary / "mine").mkdir()
    (temporary / "spark-pace-session-notes").mkdir()
    (temporary / "spark-pace-session-abcdefgh").symlink_to("mine")
    (temporary / "spark-pace-session-abcdefg1").write_text("a file")
    os.mkfifo(temporary / "spark-pace-session-abcdefg2")
    there = set(temporary.iterdir())
    ends()
    assert set(temporary.iterdir()) == there


@pytest.mark.parametrize("quick", [True, False])
def test_only_a_jvm_without_a_loop_over_events_compiles_quickly_and_is_kept_small(quick: bool) -> None:
    options = _own_jvm(quick)["spark.driver.extraJavaOptions"]
    assert "-Djava.io.tmpdir=" in options
    assert ("-XX:TieredStopAtLevel=1" in options) == ("-XX:+UseSerialGC" in options) == quick
    assert [FilesInput.reads_in_jvm, KafkaInput.reads_in_jvm] == [False, True]


@pytest.mark.parametrize("variable", ["", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS"])
def test_a_collector_that_is_named_elsewhere_stays_the_only_one(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "-Xlog:gc -XX:+UseParallelGC"
    if variable:
        monkeypatch.setenv(variable, named)
    options = _own_jvm(True, "" if variable else named)["spark.driver.extraJavaOptions"]
    assert "-XX:TieredStopAtLevel=1" in options
    assert "-XX:+UseSerialGC" not in options

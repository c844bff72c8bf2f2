"""A session's folder for temporary files: each process has its own; the next start removes killed ones'."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_pace.spark.java.launch import settings_here
from spark_pace.spark.sources.files import FilesInput
from spark_pace.spark.sources.kafka import KafkaInput

IMPORT = "from spark_pace.spark.java.launch import session_folder; "
WAITS = IMPORT + "print(session_folder(), flush=True); input()"
LAUNCHES = "from spark_pace.spark.java.launch import launch; launch({})"
ENDS = IMPORT + "print(session_folder())"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def java_options(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, quick: bool) -> str:
    """Those of a Spark that is started here, but for what the user says in `extraJavaOptions`."""
    monkeypatch.setenv("PYTHONPATH", "")  # which this sets
    return settings_here(settings, {}, quick)["spark.driver.defaultJavaOptions"]


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


def test_a_process_that_is_killed_while_java_starts_leaves_its_folder_alone(
    temporary: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = tmp_path_factory.mktemp("spark")
    (spark / "bin").mkdir()
    (spark / "bin" / "spark-submit").write_text("#!/bin/sh\necho starts\nexec cat\n")
    (spark / "bin" / "spark-submit").chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(spark))
    with subprocess.Popen([sys.executable, "-c", LAUNCHES], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "starts\n"
        process.kill()
    [left] = temporary.iterdir()
    assert left.name.startswith("spark-pace-session-") and any(left.iterdir())
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
def test_only_a_jvm_without_a_loop_over_events_compiles_quickly_and_is_kept_small(
    quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = java_options({}, monkeypatch, quick=quick)
    assert "-Djava.io.tmpdir=" in options
    assert ("-XX:TieredStopAtLevel=1" in options) == ("-XX:+UseSerialGC" in options) == quick
    assert [FilesInput.reads_in_jvm, KafkaInput.reads_in_jvm] == [False, True]


@pytest.mark.parametrize("variable", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "defaultJavaOptions"])
def test_a_collector_that_is_named_elsewhere_stays_the_only_one(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = "-Xlog:gc -XX:+UseParallelGC"
    monkeypatch.setenv(variable, named)
    setting = f"spark.driver.{variable}"
    given = {setting: named} if variable.endswith("Options") else {}
    options = java_options(given, monkeypatch, quick=True)
    assert "-XX:TieredStopAtLevel=1" in options
    assert "-XX:+UseSerialGC" not in options


def test_options_of_the_user_take_the_place_of_those_for_a_quick_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"spark.driver.extraJavaOptions": "-Xss8m", "spark.local.dir": "/data"}
    options = java_options(given, monkeypatch, quick=True)
    assert "-Xss16m" in options and "-XX:" not in re.sub("-XX:[A-Za-z+]*Shared[^ ]*", "", options)
    assert settings_here(given, {}, quick=True).items() >= given.items()

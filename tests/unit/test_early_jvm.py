"""`spark-pace run` starts the JVM by a look into the job file; it is not kept where that look was wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from spark_pace.cli.early import _asked
from spark_pace.spark.java.early import Asked

JOB = """
name: flights
source: {kind: files, path: in}
spark: {spark.driver.memory: 3g, spark.cores.max: 4}
"""
SETTINGS = {"spark.driver.memory": "3g", "spark.cores.max": "4"}
MAIN = "from spark_pace.cli.main import main; main()"
TAKES = """
import psutil
from spark_pace.spark.java.early import Asked, early_jvm
asked = Asked("one", {"spark.driver.memory": "3g"}, True)
early_jvm().start(asked)
(java,) = (one for one in psutil.Process().children() if "home/bin/spark" in " ".join(one.cmdline()))
settings = early_jvm().settings_for(asked)
print(settings["spark.app.name"], settings["spark.driver.memory"], settings["spark.master"])
print(early_jvm().settings_for(Asked("one", {}, True)), java.is_running(), early_jvm().gateway())
"""


def own_start(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python where no other session has set up the environment."""
    kept = {name: text for name, text in os.environ.items() if "SPARK" not in name}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, env=kept, timeout=120
    )


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ((), Asked("flights", SETTINGS, quick=True)),
        (("files", "kafka"), Asked("flights", SETTINGS, quick=False)),
        (("spark:", "other:"), Asked("flights", {}, quick=True)),
        (("3g", "'${env:MEMORY}'"), None),
        (("3g", "[3g]"), None),
        (("name:", "title:"), None),
        (("source:", "from:"), None),
    ],
)
def test_a_look_into_a_job_file_tells_what_its_session_asks_for(
    change: tuple[str, ...], asked: Asked | None
) -> None:
    text = JOB.replace(*change) if change else JOB
    assert _asked(yaml.load(text, yaml.BaseLoader)) == asked


def test_a_jvm_is_taken_for_what_it_was_started_for_and_else_ended() -> None:
    answer = own_start("-c", TAKES)
    assert (answer.stdout, answer.stderr) == ("one 3g local[*]\nNone False None\n", "")


def test_a_wrong_job_file_is_told_as_if_nothing_had_been_started(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB, encoding="utf-8")
    answer = own_start("-c", MAIN, "run", str(job))
    plain = own_start("-c", MAIN, "check", str(job))
    assert (answer.returncode, answer.stderr) == (plain.returncode, plain.stderr)
    assert answer.returncode == 2 and answer.stdout == ""

"""What is missing on a machine is told in one line, before anything long begins."""

import resource
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from spark_pace import preflight
from spark_pace.errors import SetupError
from spark_pace.spark.internals import JavaError
from spark_pace.spark.java import jars
from spark_pace.spark.java.jars import delta_coordinate
from spark_pace.spark.java.launch import _found_jars, _jar_settings
from spark_pace.spark.session import _require_delta
from tests.spark.jobs import ROOT, make_job
from tests.support.commands import SPARK_PACE, message_of

REMEDY = (
    "Install one (for example the package openjdk-17-jre-headless) and put it on the PATH, "
    "or point JAVA_HOME at it."
)


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def test_a_limit_of_virtual_memory_is_named_and_no_version_of_java() -> None:
    command = f"ulimit -v 2000000; exec {sys.executable} -m spark_pace.preflight"
    asked = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    must = "must be enough for Java, which reserves far more than it uses"
    assert asked.stderr.startswith(f"virtual memory — {must}; got a limit of 2.0 GB, with which ")
    assert asked.stderr.endswith("does not start. Take the limit away: `ulimit -v unlimited`.\n")
    assert (asked.returncode, asked.stderr.count("\n")) == (1, 1)


def install_java(home: Path, answer: str) -> None:
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    "version", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19']
)
def test_java_17_and_21_are_right(java_home: Path, version: str):
    install_java(java_home, version)
    assert preflight.java_problem() is None
    preflight.require_java()


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ('java version "1.8.0_392"', "8"),
        ('openjdk version "11.0.2"', "11"),
        ('openjdk version "25-ea"', "25"),
    ],
)
def test_another_java_is_named(java_home: Path, version: str, major: str):
    install_java(java_home, version)
    assert (
        str(preflight.java_problem())
        == f"JAVA_HOME — must be Java 17 or 21; got Java {major} ({java_home}/bin/java). {REMEDY}"
    )


def test_no_java_is_an_error_with_a_remedy(java_home: Path):
    with pytest.raises(SetupError) as raised:
        preflight.require_java()
    assert str(raised.value) == f"JAVA_HOME — must be Java 17 or 21; got no java command. {REMEDY}"


def test_a_full_disk_is_named(tmp_path: Path):
    assert preflight.disk_problem(tmp_path, 1) is None
    message = str(preflight.disk_problem(tmp_path, 10**18))
    assert message.startswith(f"{tmp_path} — must have 1000000000.0 GB free; got ")
    assert message.endswith(" GB. Make room, or work in a directory on a larger disk.")


def test_another_python_is_named(monkeypatch: pytest.MonkeyPatch):
    assert preflight.python_problem() is None
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    assert str(preflight.python_problem()) == (
        f"{sys.executable} — must be Python 3.10 to 3.13; got 3.9. "
        "Name another: make PYTHON=/path/to/python3.12"
    )


def test_every_problem_is_printed_on_a_line_of_its_own(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "INSTALL_BYTES", 10**18)
    assert preflight.main() == 1
    assert [line.split(" — ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "JAVA_HOME",
        str(tmp_path),
    ]


def test_a_folder_without_jars_is_refused_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is downloaded because of a slip in a name."""
    monkeypatch.setenv("SPARK_PACE_JARS", str(tmp_path / "jasr"))
    with pytest.raises(
        SetupError,
        match=(
            rf"^SPARK_PACE_JARS — must name a folder of jars; got none in {tmp_path}/jasr\. "
            r"Run `make setup`"
        ),
    ):
        _found_jars()


@pytest.mark.parametrize("settings", [{}, {"spark.master": "local"}, {"spark.master": "local[2]"}])
def test_a_jvm_that_runs_all_tasks_has_the_jars_on_its_class_path(settings: dict[str, str]):
    assert _jar_settings(["/a.jar"], ["/b.jar"], settings) == {"spark.driver.extraClassPath": "/a.jar:/b.jar"}


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.master": "spark://host:7077"},
        {"spark.master": "local-cluster[2,1,1024]"},
        {"spark.jars": "/mine.jar"},
        {"spark.driver.extraClassPath": "/mine"},
    ],
)
def test_other_jvms_get_copies_of_the_jars_and_settings_of_the_user_keep_their_meaning(
    settings: dict[str, str],
):
    assert _jar_settings(["/a.jar"], ["/b.jar"], settings) == {"spark.jars": "/a.jar,/b.jar"}


def test_jars_of_s3_go_with_those_that_spark_downloads():
    downloaded = _jar_settings([], [], {})
    assert list(downloaded) == ["spark.jars.packages"]
    assert _jar_settings([], ["/a.jar", "/b.jar"], {}) == {**downloaded, "spark.jars": "/a.jar,/b.jar"}


@pytest.mark.parametrize(("installed", "jar"), [("4.1.4", "4.1"), ("4.2.1", "4.2"), ("4.3.0", "4.2")])
def test_delta_is_for_the_newest_spark_that_it_names_where_the_installed_one_is_newer(
    installed: str, jar: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jars, "version", lambda name: {"pyspark": installed, "delta-spark": "4.4.0"}[name])
    monkeypatch.setattr(jars, "requires", lambda name: ["pyspark<=4.2.0,>=4.0.1", "importlib_metadata>=1"])
    assert delta_coordinate() == f"io.delta:delta-spark_{jar}_2.13:4.4.0"


def test_a_spark_without_delta_is_told_how_to_start():
    missing = JavaError("no such class", Mock(_target_id="o1"))
    spark = Mock(**{"_jvm.java.lang.Thread.currentThread.side_effect": missing})
    with pytest.raises(SetupError) as caught:
        _require_delta(spark)
    assert str(caught.value) == (
        "jars — Delta Lake's jars must be on Spark's class path; got none. "
        "Run `make setup`, or point SPARK_PACE_JARS at them; "
        f"spark-submit takes --jars 'jars/*.jar', or --packages {delta_coordinate()}."
    )


def allowed(soft: int, hard: int, *command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a process has to say that may have so many files open."""
    return subprocess.run(
        [str(word) for word in command],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "files", [20, 1023, *(pytest.param(files, marks=pytest.mark.long) for files in (32, 64, 128, 256))]
)
def test_a_job_that_may_open_too_few_files_ends_in_one_line(tmp_path: Path, files: int) -> None:
    (tmp_path / "in").mkdir()
    answer = allowed(files, files, SPARK_PACE, "run", make_job(tmp_path), cwd=ROOT)
    do = "Raise the hard limit, for example by `ulimit -Hn 1024` as root."
    told = f"open files — must be allowed up to 1024 in a process; got {files}. {do}\n"
    assert (answer.returncode, answer.stdout, message_of(answer.stderr)) == (1, "", told)


@pytest.mark.parametrize(("soft", "then"), [(100, 1024), (1500, 1500)])
def test_as_many_open_files_as_may_be_are_allowed(tmp_path: Path, soft: int, then: int) -> None:
    script = (
        "import resource; from spark_pace.preflight import require_open_files; require_open_files(); "
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    assert allowed(soft, 2000, sys.executable, "-c", script, cwd=ROOT).stdout == f"{then}\n"

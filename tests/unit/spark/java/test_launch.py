"""The start of a job: a wrong job file is told as by `check`, and what Java says meanwhile is held back."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from spark_pace.spark.java.launch import HeldBack, _path_of_workers, _quick
from tests.support.commands import message_of

JOB = """
name: flights
source: {kind: files, path: in}
spark: {spark.driver.memory: 3g, spark.cores.max: 4}
"""
MAIN = "from spark_pace.cli.main import main; main()"
BASH = "bin/spark-class: line 97: 1234 Killed"
MODULES = "WARNING: Using incubator modules: jdk.incubator.vector"
WHENCE = """
import json, sys, sitecustomize
import pyspark
print(json.dumps([pyspark.__file__, getattr(sitecustomize, "told", None)]))
"""


def test_a_wrong_job_file_is_told_as_check_tells_it(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    run, check = (
        subprocess.run(
            [sys.executable, "-c", MAIN, command, job], capture_output=True, text=True, check=False
        )
        for command in ("run", "check")
    )
    assert (run.returncode, message_of(run.stderr)) == (check.returncode, check.stderr)
    assert run.returncode == 2 and run.stdout == ""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([BASH, "Unrecognized VM option 'x'", "Error: …"], "Unrecognized VM option 'x'"),
        ([MODULES, BASH, ""], "it was killed, or gave no reason"),
        (["Error occurred during initialization of VM", "Too small heap"], "Too small heap"),
        ([], "it was killed, or gave no reason"),
    ],
)
def test_what_java_says_of_a_failing_start_becomes_one_line(said: list[str], told: str) -> None:
    errors = HeldBack()
    with open(errors.end, "w") as end:
        end.write("\n".join(said))
    assert errors.reason() == f"Java's end before it was ready: {told}"


def test_what_java_says_of_a_good_start_is_passed_on_but_for_its_word_on_modules(
    capfd: pytest.CaptureFixture[str],
) -> None:
    errors = HeldBack()
    with open(errors.end, "w") as end:
        end.write(f"{MODULES}\na warning\n")
        end.flush()
        while b"warning" not in (errors._held or b""):
            pass
        assert capfd.readouterr().err == ""
        errors.release()
        end.write("later\n")
    errors._reader.join(60)
    assert capfd.readouterr().err == "a warning\nlater\n"


@pytest.mark.parametrize("hidden", [None, "told = 'of another'"])
def test_workers_take_spark_from_the_installed_package(
    hidden: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark puts its archive first; a `sitecustomize` of the user's runs all the same."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    archive = tmp_path / "other" / "pyspark" / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    (tmp_path / "other" / "pyspark" / "__init__.py").touch()
    with ZipFile(archive, "w") as file:
        file.writestr("pyspark/__init__.py", "")
    if hidden:
        (tmp_path / "sitecustomize.py").write_text(hidden)
    (tmp_path / "again").symlink_to(_path_of_workers()[0])  # the folder under another name
    path = os.pathsep.join(map(str, (archive, *_path_of_workers()[:1], tmp_path / "again", tmp_path)))
    answer = subprocess.run(
        [sys.executable, "-c", WHENCE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    whence, told = json.loads(answer.stdout)
    assert "site-packages" in whence
    assert told == ("of another" if hidden else None)


def source_process(port: int) -> subprocess.Popen[str]:
    """The process of a streaming source, which connects to Spark at a port."""
    own = {
        "PYTHONPATH": os.pathsep.join(_path_of_workers()),
        "PYTHON_WORKER_FACTORY_PORT": str(port),
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
    }
    command = [sys.executable, "-m", "pyspark.sql.streaming.python_streaming_source_runner"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **own})


@pytest.mark.parametrize("is_reset", [True, False], ids=["closed", "other_error"])
def test_the_process_of_a_source_says_nothing_when_spark_closes_its_connection(
    is_reset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = source_process(server.getsockname()[1])
        spark, _ = server.accept()
        with spark:
            spark.recv(100)
            spark.sendall(struct.pack("!i2s", 2, b"ok" if is_reset else b"no"))
            if is_reset:
                spark.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        said = process.communicate(timeout=60)[1]
    assert ("Traceback" in said) is not is_reset
    assert process.returncode != 0


def test_the_process_of_a_source_says_nothing_where_spark_is_gone_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    process = source_process(port)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 1)


def test_processes_of_spark_look_for_modules_in_the_working_folder_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for name in ("json", "py4j"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the working folder')", encoding="ascii")
    path = os.pathsep.join([*_path_of_workers(), str(tmp_path)])
    found = subprocess.run(
        [sys.executable, "-m", "pyspark.find_spark_home"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},  # it is imported before it runs
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.strip().endswith("pyspark")


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR"])
def test_no_collector_is_named_where_a_configuration_of_spark_may_name_one(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert "-XX:+UseSerialGC" in _quick({})
    monkeypatch.setenv(variable, "/opt/spark")
    assert _quick({}) == []


def test_another_spark_keeps_its_own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert _path_of_workers() == [entry or os.getcwd() for entry in sys.path]

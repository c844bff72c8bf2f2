"""The product as `pip install` of its wheel brings it: every file that it needs is in it.

The tutorial is run from its first command to its last, its jobs on Spark among them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from spark_pace import machine_code
from spark_pace.spark.java.launch import JARS_VARIABLE, jar_directory
from tests.support.commands import ROOT
from tests.support.documents import differing, fences

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - {name: rise, pattern: {sequence: [{a: x < 5}, {b: x > 5}]}, within: 1 min, emit: {to: b.x}}
"""
EVENTS = """{"time": "2024-01-01T00:00:00Z", "x": 1}
{"time": "2024-01-01T00:00:10Z", "x": 9}
"""
JOB = """
name: rises
source: {kind: files, format: json, path: events}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
trigger: available_now
finish: true
"""

MADE = Path(machine_code.__file__).parent / "shipped"


def done(*command: object, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    ended = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and with the packages that it needs from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source, environment = folder / "source", folder / "environment"
    files = done("git", "ls-files", "-z", "setup.py", "pyproject.toml", "README.md", "spark_pace*", cwd=ROOT)
    for name in filter(None, files.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    # what the set-up has made is not made again
    done(sys.executable, "-m", "pip", *build, cwd=folder, NUMBA_CACHE_DIR=str(MADE))
    done(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    python = environment / "bin" / "python"
    done(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=folder,
    )
    # the editable installation there is not seen: files .pth are read of the environment's own folder only
    paths = dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
    (own,) = (environment / "lib").glob("python*/site-packages")
    (own / "needs.pth").write_text("\n".join(paths))
    where = done(python, "-c", "import spark_pace; print(spark_pace.__file__)", cwd=folder)
    assert Path(where.strip()).is_relative_to(environment)
    return environment / "bin"


@pytest.mark.long
def test_the_tutorial_does_what_it_shows(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv(JARS_VARIABLE, str(jar_directory()))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = fences(ROOT / "docs" / "tutorial.md")
    assert sum("spark-pace run" in fence.text for fence in shown) == 2
    assert differing(shown, tmp_path, installed) == []


@pytest.mark.long
def test_spark_downloads_the_jars_of_a_job_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "events.json").write_text(EVENTS)
    command = installed / "spark-pace"
    shown = done(
        command,
        "replay",
        "rules.yaml",
        "events/events.json",
        "--html",
        "page.html",
        "-o",
        "m.csv",
        cwd=tmp_path,
    )
    assert shown == ""
    assert (tmp_path / "m.csv").read_text().startswith("rule,key,out_seq")
    assert "<title>rules.yaml over events/events.json</title>" in (tmp_path / "page.html").read_text("utf-8")
    done(command, "run", "job.yaml", cwd=tmp_path)
    rows = done(command, "sql", "out", 'SELECT "to" FROM rise', cwd=tmp_path)
    assert " 9 " in rows

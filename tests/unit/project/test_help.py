"""Every module that can be started says with ``--help`` what it does, and does nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("spark_pace", "spark_pace_bench", "jobs", "examples", "benchmarks", "tests")
NOT_FOR_PEOPLE = {"spark_pace.spark.stages.daemon"}  # Spark starts it, with arguments of its own

# runs each of the modules with --help, and notes what it writes below the two folders, or starts
ASKING = """
import contextlib, io, json, os, runpy, sys

root, here, *modules = sys.argv[1:]
done = []

def note(event, arguments):
    if event == "subprocess.Popen":
        done.append(f"{event} {arguments[0]}")
    elif event in ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"):
        path, mode = str(arguments[0]), str(arguments[1]) if event == "open" else "w"
        ours = os.path.abspath(path).startswith((root, here)) and "__pycache__" not in path
        if ours and any(sign in mode for sign in "wxa+"):
            done.append(f"{event} {path}")

sys.addaudithook(note)
answers = {}
for module in modules:
    sys.argv, done, out = [module, "--help"], [], io.StringIO()
    code = "no exit"
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code or 0
        except BaseException as error:
            code = repr(error)
    answers[module] = [code, out.getvalue().lower()[:6], done]
print(json.dumps(answers))
"""


def modules_that_start() -> list[str]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__main__")
        for path in paths
        if '\nif __name__ == "__main__":' in path.read_text()
    ]
    return [module for module in found if module not in NOT_FOR_PEOPLE]


def test_asked_for_help_nothing_is_written_or_started(tmp_path: Path) -> None:
    modules = modules_that_start()
    assert len(modules) > 30
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASKING, str(ROOT), str(tmp_path), *modules],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert {module: told for module, told in found.items() if told != [0, "usage:", []]} == {}
    assert list(tmp_path.iterdir()) == []

"""Rules run where compiled code is kept, cannot be kept, or is spoilt; who needs no compiler loads none."""

from __future__ import annotations

import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark_pace.machine_code import code_files

ROOT = Path(__file__).parents[3]

REPLAY = """
import sys
from datetime import datetime, timedelta
from pathlib import Path
import pyarrow as pa
from spark_pace.io.replay import replay_table
from spark_pace.rules import load_rules
rules = load_rules(Path(sys.argv[1]))
if len(sys.argv) > 2:
    from spark_pace import ways
    ways.FEW_NUMBERS = -1
times = [datetime(2024, 1, 1) + timedelta(seconds=k) for k in range(6)]
table = pa.table({"time": times, "type": list("aabbab"), "x": [1.0, 3.0, 2.0, 4.0, 5.0, 0.0]})
matches = replay_table(rules, table).matches
print([[event["offset"] for event in match] for match in matches["events"].to_pylist()])
print("numba" in sys.modules)
"""
COMPARING = """
events: {schema: "time TIMESTAMP, type STRING, x DOUBLE", event_time: time}
rules:
  - name: r
    pattern: {sequence: [{a: type = 'a'}, {b: type = 'b'}]}
    within: 1 min
    context: latest, zero
"""
SETS = """
events: {schema: "time TIMESTAMP, type STRING, x DOUBLE", event_time: time}
rules:
  - name: r
    pattern: {sequence: [{a: x < 3}, {b: x > 1}]}
    within: 1 min
    context: earliest, selected
    strategy: production_sets
"""  # its search is compiled in a second
FOUND = "[[0, 1], [2, 3]]"


def replayed(tmp_path: Path, rule: str, *more: str, package: Path, **environment: str) -> tuple[str, ...]:
    rules = tmp_path / "rules.yaml"
    rules.write_text(rule)
    answer = subprocess.run(
        [sys.executable, "-c", REPLAY, rules, *more],
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(package), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(answer.stdout.splitlines())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in an archive, as Python has compiled it, beside which nothing is kept."""
    archive = tmp_path_factory.mktemp("package") / "spark_pace.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted((ROOT / "spark_pace").rglob("*.py")):
            file.write(path, path.relative_to(ROOT))
            compiled = Path(py_compile.compile(str(path), doraise=True) or "")
            file.write(compiled, path.relative_to(ROOT).with_suffix(".pyc"))
    return archive


def no_home(tmp_path: Path) -> str:
    home = tmp_path / "home"
    home.write_text("no directory", encoding="ascii")
    return str(home)


@pytest.mark.parametrize("where", ["", "    where: abs(a.x - b.x) >= 0\n"])
def test_a_rule_without_comparisons_of_components_does_not_load_the_compiler(
    tmp_path: Path, package: Path, where: str
) -> None:
    rule, home = COMPARING + where, no_home(tmp_path)
    assert replayed(tmp_path, rule, "few", package=package, HOME=home)[-1] == "False"


def test_few_events_do_not_load_the_compiler(tmp_path: Path, package: Path) -> None:
    rule, home = COMPARING + "    where: b.x >= a.x\n", no_home(tmp_path)
    told = replayed(tmp_path, rule, package=package, HOME=home)
    assert told == ("[[0, 2], [1, 3]]", "False")


def test_a_rule_works_where_compiled_code_cannot_be_kept(tmp_path: Path, package: Path) -> None:
    found = replayed(tmp_path, SETS, "few", package=package, HOME=no_home(tmp_path))
    assert found == (FOUND, "True")


def test_a_rule_works_where_compiled_code_that_was_kept_is_spoilt(tmp_path: Path, package: Path) -> None:
    kept = tmp_path / "kept"

    def found(*more: str) -> tuple[str, ...]:
        return replayed(tmp_path, SETS, *more, package=package, NUMBA_CACHE_DIR=str(kept))

    shipped = Path(code_files.__file__).parent / "shipped"  # what `make setup` has made
    for made in shipped.rglob("_production_sets-*.o"):
        (kept / made.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(made, kept / made.parent.name)
    assert found("few") == (FOUND, "False")  # what is kept is loaded without the compiler
    for path in kept.rglob("*.o"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert found("few") == (FOUND, "True")
    assert found() == (FOUND, "False")  # it was kept again

"""Machine code is made once, kept in a file, and made anew where what it is made of has changed."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from spark_pace import ways
from spark_pace.machine_code import code_files, compiler, kernel
from spark_pace.machine_code.kernel import Kernel, part
from spark_pace.machine_code.memory import SHIPPED, here

MULTIPLYING = """
from typing import NamedTuple

from spark_pace.machine_code.kernel import Kernel, inlined, part

FACTOR = 2

class Pair(NamedTuple):
    left: int
    right: int

@inlined
def product(pair):
    return pair.left * pair.right + pair.left - pair.left

@Kernel
def multiply(numbers):
    for place in range(len(numbers)):
        numbers[place] = product(Pair(FACTOR, numbers[place]))
"""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which machine code is kept."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let machine code be made for the fewest numbers."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", -1)


def imported(path: Path, text: str = MULTIPLYING) -> Any:
    """The module of a text, which is written to a path."""
    path.write_text(text, encoding="ascii")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def multiplied(path: Path, text: str = MULTIPLYING) -> tuple[list[int], bool]:
    """What a module's kernel makes of 1, 2 and 3, and whether it has run as machine code."""
    module, numbers = imported(path, text), np.array([1, 2, 3])
    module.multiply(numbers)
    return numbers.tolist(), any(module.multiply.runs.values())


def files(kept: Path) -> list[Path]:
    """The files that are kept."""
    return sorted(kept.rglob("*.o"))


def in_path(tmp_path: Path) -> Path:
    """A path that no module was imported from."""
    return tmp_path / f"module{len([*tmp_path.iterdir()])}.py"


def test_code_that_is_kept_is_loaded_also_where_few_numbers_are(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], False)
    assert not kept.exists()
    with monkeypatch.context() as patch:
        patch.setattr(ways, "FEW_NUMBERS", -1)
        assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    assert [path.name.partition("-")[0] for path in files(kept)] == ["multiply"]
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("FACTOR = 2", "FACTOR = 5", [5, 10, 15]),
        ("pair.left * pair.right", "pair.left + pair.right", [3, 4, 5]),
        ("+ pair.left - pair.left", "- pair.left", [0, 2, 4]),
        ("left: int\n    right: int", "right: int\n    left: int", [2, 4, 6]),
        ("= product", "= -product", [-2, -4, -6]),
        ("@inlined\n", "@part\n", [2, 4, 6]),
    ],
)
def test_code_is_made_anew_once_what_it_is_made_of_has_changed(
    tmp_path: Path, kept: Path, old: str, new: str, expected: list[int]
) -> None:
    multiplied(in_path(tmp_path))
    assert multiplied(in_path(tmp_path), MULTIPLYING.replace(old, new)) == (expected, True)
    assert len(files(kept)) == 2


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("maker", range(len(code_files._MADE_BY)))
def test_code_is_made_anew_once_what_makes_it_has_changed(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, maker: int
) -> None:
    multiplied(in_path(tmp_path))
    with monkeypatch.context() as patch:
        changed = [b"" if place == maker else source for place, source in enumerate(code_files._MADE_BY)]
        patch.setattr(code_files, "_MADE_BY", changed)
        assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    assert len(files(kept)) == 2


def test_every_module_that_decides_what_machine_code_is_like_is_part_of_its_name() -> None:
    modules = {path.stem for path in Path(code_files.__file__).parent.glob("*.py")}
    assert modules - {*code_files._MAKERS} == {"__init__", "code_files", "kernel"}
    sources = [(Path(code_files.__file__).parent / f"{one}.py").read_bytes() for one in code_files._MAKERS]
    assert sources == code_files._MADE_BY


@pytest.mark.usefixtures("_at_once")
def test_code_that_was_spoilt_is_made_anew(tmp_path: Path, kept: Path) -> None:
    multiplied(in_path(tmp_path))
    (path,) = files(kept)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    assert path.stat().st_size > len(whole) // 2


@pytest.mark.usefixtures("_at_once")
def test_code_that_cannot_be_kept_is_made_by_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "a file"
    nowhere.write_text("", encoding="ascii")
    monkeypatch.setattr(code_files, "_places", lambda name: iter([nowhere / name]))
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)


@pytest.mark.usefixtures("_at_once")
def test_the_source_runs_where_no_code_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numba", "llvmlite"):
        monkeypatch.setitem(sys.modules, name, None)
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], False)


@pytest.mark.usefixtures("_at_once")
def test_what_another_process_has_kept_since_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ways, "FEW_NUMBERS", 1 << 62)
        module = imported(in_path(tmp_path))
        module.multiply(np.array([1, 2, 3]))
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    monkeypatch.setattr(compiler, "machine_code", None)
    module.multiply(np.array([1, 2, 3]))
    assert any(module.multiply.runs.values())


@pytest.mark.usefixtures("_at_once")
def test_the_reason_is_kept_why_a_function_cannot_be_compiled(tmp_path: Path) -> None:
    module = imported(in_path(tmp_path), MULTIPLYING.replace("@inlined\n", ""))
    numbers = np.array([1, 2, 3])
    module.multiply(numbers)
    assert numbers.tolist() == [2, 4, 6]
    assert not any(module.multiply.runs.values())
    assert "product" in str(module.multiply.failure)


@pytest.mark.usefixtures("_at_once")
def test_what_others_compile_by_numba_in_the_same_process_stays_as_it_was(tmp_path: Path) -> None:
    multiplied(in_path(tmp_path))

    @numba.njit  # type: ignore[untyped-decorator]
    def halves(numbers: Any) -> Any:
        if len(numbers) > 9:
            raise ValueError("too many")
        return numbers / 2

    assert halves(np.array([1.0, 3.0])).tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="too many"):
        halves(np.zeros(10))
    assert multiplied(in_path(tmp_path), MULTIPLYING.replace("FACTOR = 2", "FACTOR = 3")) == ([3, 6, 9], True)


@pytest.mark.usefixtures("_at_once")
def test_it_is_said_once_that_code_is_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernel._say.cache_clear()
    for factor in (7, 8):
        multiplied(in_path(tmp_path), MULTIPLYING.replace("FACTOR = 2", f"FACTOR = {factor}"))
    (line,) = capfd.readouterr().err.splitlines()
    assert line == (
        f"compiled code — none was found for searches on this kind of processor, {here().name}: it is made "
        "now and kept, which takes some 20 s for each kind of pattern, once. "
        "`python -m spark_pace.cli.kernels` makes all of it ahead."
    )
    kernel._say.cache_clear()
    multiplied(in_path(tmp_path), MULTIPLYING.replace("FACTOR = 2", "FACTOR = 7"))
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("_at_once")
def test_it_is_said_that_code_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel._say.cache_clear()
    monkeypatch.setattr(code_files, "_places", lambda name: iter([Path("/dev/null", name)]))
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    assert capfd.readouterr().err.splitlines()[1:] == [
        "compiled code — must be kept, or each process makes it anew; got no folder that can be written to. "
        "Name one by NUMBA_CACHE_DIR."
    ]


def test_code_for_another_kind_of_machine_is_made_here_too(tmp_path: Path) -> None:
    numbers = (("<i8", 1),)
    of_elf = [codes[:20] for codes in imported(in_path(tmp_path)).multiply.codes(numbers, SHIPPED).values()]
    assert [int.from_bytes(one[18:20], "little") for one in of_elf] == [62, 183]  # x86-64, aarch64


def taken(kept: Path) -> bool:
    """Whether code that is kept under the name of the only file is taken."""
    (path,) = files(kept)
    return code_files.kept_code(f"{path.parent.name}/{path.name}") is not None


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("level", ["file", "its_folder", "the_folder_above"])
@pytest.mark.parametrize("mode", [0o755, 0o775, 0o757, 0o1777])
@pytest.mark.parametrize("beside", [False, True])
def test_kept_code_that_others_may_replace_is_not_taken(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, level: str, mode: int, *, beside: bool
) -> None:
    multiplied(in_path(tmp_path))
    places(kept)[level].chmod(mode)
    if beside:  # whom the module's group is trusted with, its code is too
        monkeypatch.setattr(code_files, "__file__", str(kept.parent / "code_files.py"))
    others = stat.S_IWOTH if beside else stat.S_IWOTH | stat.S_IWGRP
    assert taken(kept) == (mode & others == 0)


def places(kept: Path) -> dict[str, Path]:
    (path,) = files(kept)
    return {"file": path, "its_folder": path.parent, "the_folder_above": kept}


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("level", ["file", "its_folder", "the_folder_above"])
def test_kept_code_is_taken_from_its_user_and_root_alone(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    multiplied(in_path(tmp_path))
    assert taken(kept)
    owner, other = os.geteuid() or 4711, 4712
    if os.geteuid() == 0:  # root's is taken by all
        os.chown(places(kept)[level], owner, owner)
    for user in (owner, other):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert taken(kept) == (user == owner)


@pytest.mark.usefixtures("_at_once")
def test_code_is_not_kept_where_it_would_not_be_taken(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.mkdir()
    kept.chmod(0o777)
    caches = tmp_path / "caches"
    monkeypatch.setattr(code_files, "_places", lambda name: iter([kept / name, caches / name]))
    assert multiplied(in_path(tmp_path)) == ([2, 4, 6], True)
    assert taken(caches)


@pytest.mark.usefixtures("_at_once")
def test_kept_code_is_not_taken_under_the_name_of_another(tmp_path: Path, kept: Path) -> None:
    multiplied(in_path(tmp_path))
    (path,) = files(kept)
    path.rename(path.with_name(path.name.replace("multiply", "search")))
    assert not taken(kept)


def test_what_is_no_file_is_not_waited_for(kept: Path) -> None:
    kept.mkdir()
    os.mkfifo(kept / "code.o")
    assert code_files.kept_code("code.o") is None
    (kept / "folder.o").mkdir()
    assert code_files.kept_code("folder.o") is None


def test_a_user_without_a_home_has_no_cache_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 123_456_789)
    assert [path.parent.name for path in code_files._places("code")] == ["shipped"]


class Table(NamedTuple):
    numbers: Any
    weights: Any
    valid: Any


@part
def weighed(table: Table, row: int, column: int) -> float:
    return float(table.numbers[row, column] * table.weights[column])


@Kernel
def weigh(table: Table, least: int, sums: Any) -> None:
    for row in range(table.numbers.shape[0]):
        for column in range(table.numbers.shape[1]):
            if table.valid[row, column] and table.numbers[row, column] >= least:
                sums[row] += weighed(table, row, column)


@pytest.mark.usefixtures("_at_once")
def test_machine_code_does_with_arrays_in_tuples_what_its_source_does() -> None:
    generator = np.random.default_rng(1)
    numbers, weights = generator.integers(-9, 9, (6, 4)), generator.random(4)
    table = Table(numbers, weights, generator.random((6, 4)) < 0.8)
    found, expected = np.zeros(6), np.zeros(6)
    weigh(table, -3, found)
    assert any(weigh.runs.values())
    weigh.function(table, -3, expected)
    assert found.tolist() == expected.tolist()
    empty = np.zeros(0)
    weigh(Table(numbers[:0], weights, table.valid[:0]), -3, empty)


def test_a_number_must_be_whole() -> None:
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        weigh(Table(np.zeros((4, 2), np.int64), np.zeros(2), np.ones((4, 2), np.bool_)), 0.5, np.zeros(4))


def test_an_array_must_be_in_one_piece() -> None:
    with pytest.raises(AssertionError, match="an array must be in one piece"):
        weigh(
            Table(np.zeros((4, 4), np.int64)[:, ::2], np.zeros(2), np.ones((4, 2), np.bool_)), 0, np.zeros(4)
        )

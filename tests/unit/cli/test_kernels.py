"""The command that compiles searches and the reader of JSON ahead, and what it gives a wheel."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from spark_pace import replay, ways
from spark_pace.cli import kernels
from spark_pace.machine_code import code_files
from spark_pace.machine_code.kernel import Kernel
from spark_pace.machine_code.memory import SHIPPED, here, loaded, read


@pytest.fixture(autouse=True)
def _not_at_once_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what the command sets for its process."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", ways.FEW_NUMBERS)


def said(*options: str) -> Result:
    return CliRunner().invoke(kernels.main, options)


def test_every_search_and_the_reader_of_json_can_be_compiled() -> None:
    result = said()
    assert result.output == f"{len(kernels.SEARCHES)} searches and the reader of JSON are compiled\n"
    assert result.exit_code == 0
    assert all(any(one.runs.values()) for one in kernels.KERNELS)


def test_a_wheel_gets_what_fits_the_sources_for_every_kind_of_machine(tmp_path: Path) -> None:
    assert said("--into", str(tmp_path)).exit_code == 0
    names = {
        one.name(layouts, target) for one in kernels.KERNELS for layouts in one.runs for target in SHIPPED
    }
    assert len(names) == len(SHIPPED) * len(kernels.KERNELS)
    assert names == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.o")}


def test_what_a_wheel_gets_does_what_its_source_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes, in all that a search is given to write to."""
    said("--into", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    calls: list[tuple[Kernel, tuple[Any, ...]]] = []
    bound = Kernel.bound

    def noted(self: Kernel, *arguments: Any, **steps: Any) -> Callable[[], None]:
        calls.append((self, deepcopy(arguments)))
        return bound(self, *arguments, **steps)

    monkeypatch.setattr(Kernel, "bound", noted)
    random = np.random.default_rng(1)
    kinds = [*map(str, random.choice([*"abc"], 90))]
    times = pa.array(np.arange(90) * 1_000_000, pa.timestamp("us", "UTC"))
    events = pa.table({"t": times, "kind": kinds, "x": random.integers(0, 6, 90)})
    replay(kernels._RULES, events)
    kernels.match_row_patterns(events)
    assert {one for one, _ in calls} == {*kernels.SEARCHES}
    for one, arguments in calls:
        words: list[int] = []
        layouts, ours = tuple(read(argument, words) for argument in arguments), deepcopy(arguments)
        given = np.array(words, np.int64)
        code = code_files.kept_code(one.name(layouts, here()))
        assert code is not None
        loaded(code)(given.ctypes.data)
        with np.errstate(all="ignore"):
            one.function(*ours)
        assert [array.tobytes() for array in arrays(arguments)] == [a.tobytes() for a in arrays(ours)]


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, tuple):
        return [array for one in value for array in arrays(one)]
    return [value] if isinstance(value, np.ndarray) else []


def test_it_says_what_cannot_be_compiled_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> dict[str, bytes]:
        raise ImportError("No module named 'numba'\nat all")

    monkeypatch.setattr(kernels, "all_codes", failing)
    result = said()
    must = "compiled code — searches and the reader of JSON must be compiled"
    assert result.output == (
        f"{must}; got ImportError: No module named 'numba'. Jobs run without, but slower.\n"
    )
    assert result.exit_code == 1


def test_it_says_what_cannot_be_loaded_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.KERNELS[0], "failure", RuntimeError("no such processor"))
    result = said()
    assert "; got RuntimeError: no such processor. Jobs run" in result.output
    assert result.exit_code == 1


def test_it_says_that_there_is_no_place_for_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "all_codes", lambda targets: {f"{targets[0].name}/search.o": b"code"})
    monkeypatch.setattr(code_files, "_places", lambda name: iter([Path("/dev/null", name)]))
    must, do = "must be kept for quick starts", "Name a folder that can be written to by NUMBA_CACHE_DIR."
    result = said()
    assert result.output == f"compiled code — {must}; got no place for it. {do}\n"
    assert result.exit_code == 1

"""The command that compiles searches and the reader of JSON ahead."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_pace import ways
from spark_pace.cli import kernels
from spark_pace.io.text import compiled_reader
from spark_pace.machine_code import code_files


@pytest.fixture(autouse=True)
def _not_at_once_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what the command sets for its process."""
    monkeypatch.setattr(ways, "FEW_NUMBERS", ways.FEW_NUMBERS)


def said() -> Result:
    return CliRunner().invoke(kernels.main)


def test_every_search_and_the_reader_of_json_can_be_compiled() -> None:
    result = said()
    assert result.output == f"{len(kernels.KERNELS)} searches and the reader of JSON are compiled\n"
    assert result.exit_code == 0
    assert all(one.is_machine_code for one in kernels.KERNELS)


def test_it_says_what_cannot_be_compiled_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    must = "compiled code — searches and the reader of JSON must be compiled"
    do = "Jobs run without, but slower."
    with monkeypatch.context() as patch:
        patch.setattr(kernels.KERNELS[0], "failure", ImportError("No module named 'numba'\nat all"))
        result = said()
    name = kernels.KERNELS[0].function.__name__
    assert result.output == f"{must}; got {name}: ImportError: No module named 'numba'. {do}\n"
    assert result.exit_code == 1
    monkeypatch.setattr(compiled_reader, "kept_code", lambda: 1 // 0)
    got = "the reader of JSON: ZeroDivisionError: integer division or modulo by zero"
    assert said().output == f"{must}; got {got}. {do}\n"


def test_it_says_that_there_is_no_place_for_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said()
    nowhere = tmp_path / "a file"
    nowhere.write_text("", encoding="ascii")
    monkeypatch.setattr(code_files, "_places", lambda name: iter([nowhere / name]))
    monkeypatch.setattr(compiled_reader, "_machine_code", lambda: b"code")
    must, do = "must be kept for quick starts", "Name a folder that can be written to by NUMBA_CACHE_DIR."
    result = said()
    assert result.output == f"compiled code — {must}; got no place for it. {do}\n"
    assert result.exit_code == 1

"""Compiled code that is kept is used as long as its sources stay as they are."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from spark_pace.core.match.search.compiled import compilation

DOUBLED = """
from spark_pace.core.match.search.compiled.compilation import kept

@kept
def doubled(number):
    return 2 * number
"""


def compiled_or_loaded(path: Path) -> tuple[int, int]:
    """How often a process that imports a file compiles its function, and how often it loads what is kept."""
    spec = importlib.util.spec_from_file_location("doubling", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.doubled(4) == 8
    stats = compilation.KEPT.pop().stats
    return sum(stats.cache_misses.values()), sum(stats.cache_hits.values())


def test_what_is_kept_is_compiled_anew_once_a_source_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "doubling.py"
    path.write_text(DOUBLED, encoding="ascii")
    assert compiled_or_loaded(path) == (1, 0)
    assert compiled_or_loaded(path) == (0, 1)
    monkeypatch.setattr(compilation, "_version", lambda: "of_other_sources")
    assert compiled_or_loaded(path) == (1, 0)


def test_the_version_is_that_of_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    version = compilation._version()
    for name in compilation.SOURCES:
        monkeypatch.setattr(compilation, "SOURCES", tuple(one for one in compilation.SOURCES if one != name))
        compilation._version.cache_clear()
        assert compilation._version() != version
        monkeypatch.undo()
    compilation._version.cache_clear()


def imported_by(module: str) -> set[str]:
    """The modules of the package that a module imports from."""
    found = set()
    for node in ast.walk(ast.parse(source(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("spark_pace"):
            inside = source(str(node.module)).name == "__init__.py"
            found |= {f"{node.module}.{alias.name}" if inside else str(node.module) for alias in node.names}
    return found


def source(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def test_the_sources_are_all_that_compiled_functions_import() -> None:
    package, name, _ = compilation.__name__.rpartition(".compiled")
    here = {f"{package}{name}.{path.stem}" for path in source(package + name).parent.glob("[a-z]*.py")}
    here |= {one for one in imported_by(f"{package}{name}.sets") if one.endswith(".unused")}
    assert here.union(*map(imported_by, here)) == set(compilation.SOURCES)

"""The names of a checkpoint's files stand in one place, and one module touches these files."""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePath

import pytest

from spark_pace.io.files import files, local
from spark_pace.spark.checkpoint import checkpoint, lock
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.java import launch

ROOT = Path(__file__).parents[4]
PACKAGE = ROOT / "spark_pace"
MODULES = [*PACKAGE.rglob("*.py"), *(ROOT / "spark_pace_bench").rglob("*.py")]
OTHER_NAMES = ("path", "first_offset")  # the second is a number, as others are
NAMES = {
    getattr(file, "folder", file).name
    for name, file in vars(Checkpoint(Path())).items()
    if name not in OTHER_NAMES
}
# the engine and rule files know no checkpoint: there, `sequence` is a key of a pattern
OTHERS = [
    path
    for path in MODULES
    if not {PACKAGE / "core", PACKAGE / "rules"} & {*path.parents} and path != Path(checkpoint.__file__)
]
# a lock is no file of a store: the kernel lets go of it when its process ends
LOCKS = [Path(lock.__file__), Path(launch.__file__)]
LAYER = Path(local.__file__)
METHODS = {
    *("open", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "truncate", "mkdir", "rmdir"),
    *("exists", "is_file", "is_dir", "stat", "glob", "rglob", "iterdir", "unlink", "rename", "hardlink_to"),
    *("memory_map", "OSFile"),
}
OF_NO_FILE = {"os.path.abspath", "os.environ.setdefault", "os.pathsep.join"}
FACE = ("files.", "local.", "_side(")  # and the module behind it that the place asks for


def texts(path: Path) -> list[str]:
    """The text constants of a file but its docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_checkpoint_spells_the_names_of_its_files(path: Path) -> None:
    assert [text for text in texts(path) if NAMES & {text, *PurePath(text).parts}] == []


def test_the_names_are_those_of_every_checkpoint_so_far() -> None:
    assert {
        *(".lock", ".lock-jvm", "source.json", "layout.json", "manifest.jsonl", "log.json", "clock.json"),
        *("metadata", "offsets", "commits", "sequence", "waiting", "lookup", "files.json"),
    } == NAMES
    told = (Path(checkpoint.__file__).parents[3] / "docs" / "operations.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in told and f"`{name}/`" not in told] == []


def touching(path: Path) -> list[str]:
    """The calls of a module that touch the file system."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [ast.unparse(call.func) for call in calls if touches(call)]


def touches(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name.startswith(FACE) or name == "stat":
        return False
    if name.split(".")[0] in ("os", "shutil", "tempfile", "mmap"):
        return name not in OF_NO_FILE
    method = name.rpartition(".")[2]
    # a path is replaced by one argument, a part of a text by two
    return method in METHODS or (name.endswith(".replace") and len(call.args) == 1)


def knows_checkpoints(path: Path) -> bool:
    text = path.read_text()
    known = (
        "spark_pace.spark.checkpoint" in text or re.search(r"files\.files import .*_json", text) is not None
    )
    return known or Path(checkpoint.__file__).parent == path.parent or path == Path(files.__file__)


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if knows_checkpoints(path) and path not in (LAYER, *LOCKS)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_one_module_touches_the_files_of_a_checkpoint(path: Path) -> None:
    assert touching(path) == []


def test_what_touches_a_file_is_found() -> None:
    assert {"open", "os.replace", "os.scandir", "path.unlink", "mmap.mmap"} <= set(touching(LAYER))
    assert all(touching(path) for path in LOCKS)

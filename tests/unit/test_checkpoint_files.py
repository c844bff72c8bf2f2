"""The names of a checkpoint's files stand in one place."""

from __future__ import annotations

import ast
from pathlib import Path, PurePath

import pytest

from spark_pace.spark.checkpoint import checkpoint
from spark_pace.spark.checkpoint.checkpoint import Checkpoint

PACKAGE = Path(__file__).parents[2] / "spark_pace"
NAMES = {
    getattr(Checkpoint(Path()), name).name
    for name, value in vars(Checkpoint).items()
    if isinstance(value, property)
}
# the engine and rule files know no checkpoint: there, `sequence` is a key of a pattern
OTHERS = [
    path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in ("core", "rules") and path != Path(checkpoint.__file__)
]


def texts(path: Path) -> list[str]:
    """The text constants of a file but its docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_checkpoint_spells_the_names_of_its_files(path: Path) -> None:
    assert [text for text in texts(path) if NAMES & {text, *PurePath(text).parts}] == []


def test_the_names_are_those_of_every_checkpoint_so_far() -> None:
    assert {
        *(".lock", ".lock-jvm", "source.json", "layout.json", "manifest.jsonl"),
        *("offsets", "commits", "sequence", "waiting"),
    } == NAMES

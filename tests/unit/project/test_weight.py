"""How much there is to read: tokens of code, files and words of the documents, each held at what it is.

A step that makes something lighter lowers the figure with it.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_TOKENS = {"spark_pace": 378_950, "tests": 389_957}
MOST_FILES = {"spark_pace": 257}
NOT_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def tokens(text: str) -> int:
    """How many tokens of code a module has, without its imports, docstrings and comments."""
    left_out = {line for first, last in not_weighed(ast.parse(text)) for line in range(first, last + 1)}
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in NOT_CODE and token.start[0] not in left_out for token in found)


def not_weighed(module: ast.Module) -> Iterator[tuple[int, int]]:
    """The first and the last line of each import and docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node.lineno, node.end_lineno or 0
        elif isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].end_lineno or 0


@pytest.mark.parametrize("folder", MOST_TOKENS)
def test_the_code_does_not_grow(folder: str):
    weights = [tokens(path.read_text()) for path in (ROOT / folder).rglob("*.py")]
    assert sum(weights) <= MOST_TOKENS[folder]


@pytest.mark.parametrize("folder", MOST_FILES)
def test_there_are_no_more_files(folder: str):
    assert len([*(ROOT / folder).rglob("*.py")]) <= MOST_FILES[folder]


def test_code_is_weighed_without_imports_docstrings_and_comments():
    text = '"""Of this."""\n\nimport ast\n\n\ndef f(x):\n    """Do it."""\n    return x + 1  # more\n'
    assert tokens(text) == len(["def", "f", "(", "x", ")", ":", "return", "x", "+", "1"])

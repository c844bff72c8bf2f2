"""What the tutorial says of Java, and how a command is found that does not print what a document shows."""

import sys
from pathlib import Path

from tests.support.documents import differing, fences
from tests.unit.project.test_docs import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_the_tutorial_says_that_a_job_needs_java_before_it_starts_one():
    text = TUTORIAL.read_text()
    assert 0 < text.index("**A job needs Java**") < text.index("spark-pace run")


def test_a_command_that_prints_something_else_is_found(tmp_path: Path):
    (tmp_path / "page.md").write_text("```console\n$ echo 3 of 4 in 5 s\n3 of 5 in 6 s\n$ echo a\na\n```\n")
    (wrong,) = differing(fences(tmp_path / "page.md"), tmp_path, Path(sys.executable).parent)
    assert wrong == ("echo 3 of 4 in 5 s", "3 of 4 in 5 s\n", "3 of 5 in 6 s\n")

"""What jobs leave in the directory for temporary files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from spark_pace.job_file import read_job
from tests.integration.test_interrupted_jobs import assert_complete, finish, job_file, signalled_in_the_middle

pytestmark = pytest.mark.integration

__all__ = ["job_file"]


def test_what_a_killed_job_leaves_is_removed_by_the_next_start(
    job_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert signalled_in_the_middle(job_file, signal.SIGKILL, os.kill) == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert {path.name for path in left.iterdir()} == {"home", "tmp"}
    assert any(path.name.startswith("blockmgr-") for path in (left / "tmp").iterdir())
    others = temporary / "spark-pace-sessions"
    others.mkdir()
    finish(job_file)
    assert list(temporary.iterdir()) == [others]
    assert_complete(read_job(job_file))

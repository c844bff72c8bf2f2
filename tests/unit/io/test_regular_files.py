"""What is no regular file is refused where a file is read, and nobody waits for it."""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace import why
from spark_pace.core.plan.rule import EventSchema, Field, SideTable
from spark_pace.errors import ConfigError, StateError
from spark_pace.io.delta_log import DeltaLog
from spark_pace.io.event_files import stored_rows
from spark_pace.io.files.files import read_json
from spark_pace.io.files.local import Objection, RegularFile
from spark_pace.io.side_tables import read_side_table
from spark_pace.job_file import check_files

GOT = "a device, a pipe or a socket"
RULES = """
events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}
rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
"""
JOB = """
name: test
source: {kind: files, format: json, path: in}
rules: [rules]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
"""


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # a longer path is refused


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def of_rules(folder: Path, make: Callable[[Path], None]) -> str:
    (folder / "rules").mkdir()
    (folder / "job.yaml").write_text(JOB)
    make(folder / "rules" / "a.yaml")
    (problem,) = check_files([folder / "job.yaml"])
    return str(problem)


def of_a_job(folder: Path, make: Callable[[Path], None]) -> str:
    make(folder / "job.yaml")
    (problem,) = check_files([folder / "job.yaml"])
    return str(problem)


def of_a_side_table(folder: Path, make: Callable[[Path], None], name: str = "hosts.csv") -> str:
    make(folder / name)
    side = SideTable("hosts", str(folder / name), (("host", "host"),), (Field("owner", "STRING"),))
    fields = (Field("t", "TIMESTAMP"), Field("host", "STRING"), *side.fields)
    with pytest.raises(Exception, match=r"lookup\.hosts") as raised:
        read_side_table(side, EventSchema(fields, "t", side_tables=(side,)))
    return str(raised.value)


def of_a_parquet_side_table(folder: Path, make: Callable[[Path], None]) -> str:
    return of_a_side_table(folder, make, "hosts.parquet")


def of_a_commit(folder: Path, make: Callable[[Path], None]) -> str:
    write_deltalake(folder / "table", pa.table({"x": [1]}))
    make(folder / "table" / "_delta_log" / "00000000000000000001.json")
    with pytest.raises(Exception, match="version 1") as raised:
        DeltaLog(folder / "table").commit(1)
    return str(raised.value)


def of_a_file_of_a_table(folder: Path, make: Callable[[Path], None]) -> str:
    write_deltalake(folder / "table", pa.table({"x": [1]}))
    log = DeltaLog(folder / "table")
    (file,) = log.files(0)
    (folder / "table" / file.path).unlink()
    make(folder / "table" / file.path)
    with pytest.raises(pa.ArrowInvalid) as raised:
        stored_rows(log.folder, file, ["x"], {})
    return str(raised.value)


def of_a_checkpoint(folder: Path, make: Callable[[Path], None]) -> str:
    make(folder / "layout.json")
    with pytest.raises(StateError, match=r"layout\.json — must be as it was written") as raised:
        read_json(folder / "layout.json")
    return str(raised.value)


@pytest.mark.parametrize("make", [a_pipe, a_socket, a_device])
@pytest.mark.parametrize(
    "told",
    [
        *(of_rules, of_a_job, of_a_side_table, of_a_parquet_side_table, of_a_commit, of_a_file_of_a_table),
        of_a_checkpoint,
    ],
)
def test_what_is_no_file_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    told: Callable[[Path, Callable[[Path], None]], str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert GOT in told(tmp_path, make)


def test_why_does_not_wait_for_a_line_of_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"t": "2024-01-01", "x": 9}\n')
    os.mkfifo(tmp_path / "in" / "b.json")
    (tmp_path / "rules.yaml").write_text(RULES)
    with pytest.raises(ConfigError, match=r"must be the position of a record; got b\.json:3\."):
        why(tmp_path / "rules.yaml", tmp_path / "in", rule="high", at="b.json:3")


def test_a_file_is_read_whatever_takes_its_place(tmp_path: Path) -> None:
    """It stays the one that was opened; a folder and what is not there have the system's own errors."""
    path = tmp_path / "x"
    path.write_text("first")
    with RegularFile(str(path), str(tmp_path)) as file:
        path.unlink()
        path.write_text("second")
        assert file.readall() == b"first"
    with pytest.raises(IsADirectoryError):
        RegularFile(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        RegularFile(str(tmp_path / "y"))


def test_links_may_lead_anywhere_inside(tmp_path: Path) -> None:
    """The folder may be a link itself, and a name may begin as the folder's does."""
    inside = tmp_path / "in"
    (inside / "sub").mkdir(parents=True)
    (tmp_path / "in-2").mkdir()
    for path in (inside / "a", tmp_path / "in-2" / "b"):
        path.write_text(path.name)
    (inside / "sub" / "good").symlink_to("../a")
    (inside / "bad").symlink_to("../in-2/b")
    (tmp_path / "link").symlink_to("in")
    for root in (inside, tmp_path / "link"):
        assert RegularFile(str(root / "sub" / "good"), str(root)).readall() == b"a"
        with pytest.raises(Objection, match="must lie in the source's folder; got a link out of it"):
            RegularFile(str(root / "bad"), str(root))


def test_an_objection_can_be_handed_on() -> None:
    objection = pickle.loads(pickle.dumps(Objection("must be; got none")))
    assert (str(objection), objection.strerror) == ("must be; got none", "none")

"""Every wrong rule or job file of tests/golden/bad is refused with exactly the message beside it.

There is a folder for each section of a rule file, one for job files, and one for what is no document.
"""

import os
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError, RuleError
from spark_pace.job_file import check_files, read_job
from spark_pace.rules import load_rules

BAD = Path(__file__).parents[2] / "golden" / "bad"
FILES = sorted(BAD.glob("*/*.yaml"), key=lambda path: path.name)
OF_JOBS = BAD / "job"
VALID_RULES = """events: {schema: "time TIMESTAMP, kind STRING", event_time: time}
rules:
  - {name: r, pattern: {sequence: [a: kind = 'a']}}
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_bad_file_is_refused_with_its_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    problems = check_files([path.name])
    assert "".join(f"{problem}\n" for problem in problems) == path.with_suffix(".txt").read_text()
    assert problems


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reading_raises_what_the_check_reports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    read, error = (read_job, ConfigError) if path.parent == OF_JOBS else (load_rules, RuleError)
    with pytest.raises(error) as caught:
        read(path.name)
    assert list(caught.value.problems) == check_files([path.name])


def test_every_message_belongs_to_a_file_in_the_folder_of_a_section() -> None:
    assert {path.with_suffix(".yaml") for path in BAD.rglob("*.txt")} == set(FILES)
    assert [path for path in BAD.iterdir() if path.is_file()] == []


def test_every_file_has_a_number_of_its_own() -> None:
    assert len({path.name[:3] for path in FILES}) == len(FILES)


def test_a_file_of_10_mb_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_text(VALID_RULES + "# long\n" * 1_500_000)
    assert os.path.getsize("big.yaml") > 10_000_000
    assert [str(problem) for problem in check_files(["big.yaml"])] == [
        "big.yaml — must be at most 1 MiB; got a larger file. Split it into several files.",
    ]


def test_a_file_that_is_not_there_is_named() -> None:
    assert [str(problem) for problem in check_files(["none.yaml"])] == [
        "none.yaml — must be a file that can be read; got no such file or directory. Check the path.",
    ]


def test_a_directory_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(OF_JOBS)
    assert [str(problem) for problem in check_files(["good"])] == [
        "good — must be a file that can be read; got is a directory. Check the path."
    ]


def test_a_cycle_of_links_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").symlink_to("b.yaml")
    Path("b.yaml").symlink_to("a.yaml")
    assert [str(problem) for problem in check_files(["a.yaml"])] == [
        "a.yaml — must be a file that can be read; got too many levels of symbolic links. Check the path.",
    ]


def test_bytes_that_are_no_text_are_named_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.yaml").write_bytes(b"rules:\n  - name: caf\xe9\n")
    assert [str(problem) for problem in check_files(["latin.yaml"])] == [
        "latin.yaml:2:14 — must be UTF-8 text; got the byte 0xe9. Save it as UTF-8.",
    ]


def test_a_control_character_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bell.yaml").write_bytes(b"rules:\n  - name: a\x07b\n")
    assert [str(problem) for problem in check_files(["bell.yaml"])] == [
        "bell.yaml:2:12 — must be printable text; got the character #x0007. Remove it.",
    ]


def test_problems_of_several_files_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BAD)
    first, second = (str(path.relative_to(BAD)) for path in (FILES[0], FILES[3]))
    problems = check_files([first, "job/good/rules.yaml", second])
    assert [problem.where.split(":")[0] for problem in problems] == [first, second]

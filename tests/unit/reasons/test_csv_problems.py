"""What is wrong with a CSV file is told by its header, its values, and the position that an editor shows."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError
from spark_pace.io.replay import replay_files as replay
from spark_pace.reasons import why
from spark_pace.rules import load_rules
from tests.support.commands import spark_pace
from tests.unit.io.test_event_files import T, read

RULES = """
events: {schema: "t TIMESTAMP, n BIGINT, amount DOUBLE", event_time: t}
rules:
  - {name: r, pattern: {sequence: [a: n > 0, b: amount > 1]}, within: 1 min}
"""


@pytest.mark.parametrize(
    ("header", "got"),
    [
        ("n,ts", 'n, ts. Did you mean "ts"?'),
        ("n,tt", 'n, tt. Did you mean "tt"?'),
        ("n,T", 'n, T. Did you mean "T"?'),
        (f"{T},1", f"{T}, 1. Its first line must be the header."),
        ("", "nothing. Its first line must be the header."),
    ],
)
def test_a_header_without_the_event_time_is_one_problem(tmp_path: Path, header: str, got: str) -> None:
    result = read(tmp_path, f"{header}\n{T},1\n{T},2\n{T},3\n", "csv")
    (bad,) = result.bad.to_pylist()
    reason = f"the file — must have the column t, the event time, in its header; got: {got}"
    assert (bad["offset"], bad["reason"], bad["raw"]) == (0, reason, header.encode())
    assert (result.events.num_rows, result.read_rows) == (0, 1)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 400])
def test_a_number_that_no_double_holds_makes_the_row_bad(tmp_path: Path, number: str) -> None:
    result = read(tmp_path, f"t,x\n{T},inf\n{T},{number}\n{T},nan\n{T},-inf\n", "csv")
    assert result.bad["reason"].to_pylist() == [
        f"x — must be DOUBLE; got: {number}, which is too large"[:300]
    ]
    assert [str(x) for x in result.events["x"].to_pylist()] == ["inf", "nan", "-inf"]
    for texts in (1, 5_000):  # compiled code reads long texts only
        lines = [f'{{"t":"{T}","x":{x}}}' for x in ["1.5"] * texts + [number]]
        found = read(tmp_path, "\n".join([*lines, f'{{"t":"{T}","x":-Infinity}}']), "json")
        assert found.bad["offset"].to_pylist() == [texts]
        assert found.events["x"].to_pylist() == [1.5] * texts + [-math.inf]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (f"{T}", "the record — must have the columns t, n, s; got: 1 value"),
        (f"{T},1,2,3", "the record — must have the columns t, n, s; got: 4 values"),
        (f"{T},1,\xff", "s — must be STRING; got: no UTF-8"),
        (f"{T},1.5,x", "n — must be BIGINT; got: '1.5'"),
    ],
)
def test_a_row_is_told_in_words_of_our_own(tmp_path: Path, row: str, reason: str) -> None:
    good = f"{T},1,a"
    result = read(tmp_path, "\n".join(["t,n,s", good, good, row, good]).encode("latin-1"), "csv")
    assert result.bad["offset"].to_pylist() == [2]
    assert result.bad["reason"].to_pylist() == [reason]


def test_replay_names_columns_of_the_header_that_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "events.csv").write_text(f"t,nn,amont,kind\n{T},1,2,a\n")
    answer = spark_pace("replay", "rules.yaml", "events.csv", cwd=tmp_path)
    assert answer.stderr.splitlines()[1:] == [
        f"events.csv — must have the column {name} in its header; got: t, nn, amont, kind, "
        f'so it is null in its events. Did you mean "{meant}"?'
        for name, meant in (("n", "nn"), ("amount", "amont"))
    ]


def test_a_column_that_one_file_lacks_is_told_of_the_first(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for name, header, row in (("a", "t,n,amount", "1,2"), ("b", "t,x", "1"), ("c", "t,n,y", "1,2")):
        (events / f"{name}.csv").write_text(f"{header}\n{T},{row}\n")
    told = (
        "b.csv — must have the column {} in its header; got: t, x, so it is null in its events. "
        "Correct the schema or the header."
    )
    lacking = replay(load_rules(RULES), events).lacking
    assert lacking == {name: told.format(name) for name in ("n", "amount")}


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("events.csv", f"t,n,amount\n\n{T},1,5\n", 3),
        ("events.jsonl", f'\n{{"t": "{T}", "n": 1, "amount": 5}}\n', 2),
    ],
)
def test_why_takes_the_line_of_a_file(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    rules = load_rules(RULES)
    answer = why(rules, tmp_path / name, rule="r", at=f"{name}:L{line}")
    assert (answer.source, answer.offset, answer.attributes["amount"]) == (name, 1, 5.0)
    with pytest.raises(ConfigError, match=f'--at — must be the position of a record; got "?{name}:L9"?'):
        why(rules, tmp_path / name, rule="r", at=f"{name}:L9")
    wrong = f"{name}:L{line - 2}"
    told = f"--at — must be the line of a record; got {wrong}. The first record is in line {line - 1}."
    with pytest.raises(ConfigError, match=re.escape(told)):
        why(rules, tmp_path / name, rule="r", at=wrong)

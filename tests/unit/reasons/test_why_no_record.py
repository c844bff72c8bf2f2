"""What `why` says of lines of a file that are no records, and of positions that name a file by its path."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spark_pace.errors import ConfigError
from spark_pace.reasons import why
from spark_pace.rules import load_rules

RULES = """
events: {{schema: 'time TIMESTAMP, s STRING', event_time: time, text: {{{text}, unmatched: ignore}}}}
rules:
  - {{name: low, pattern: {{sequence: [a: s = 'a']}}}}
  - {{name: high, from: low, pattern: {{sequence: [a: "true"]}}}}
"""
REGEX = r"regex: '(?P<time>20\S+) (?P<s>.*)'"
T = "2024-01-01T00:00:00"
BLANK = "it is a blank line, which is no record"
IGNORED = "it is an ignored line: the record — must match the regex of the section text"
NO_JSON = (
    "it is an ignored line: the record — must be a JSON object that begins with { and ends with } in its line"
)


@pytest.mark.parametrize("rule", ["low", "high"])
@pytest.mark.parametrize(
    ("text", "name", "lines", "at", "reason"),
    [
        (REGEX, "a.log", [f"{T} a", "oops", " \t", f"{T} a"], "a.log:L2", IGNORED),
        (REGEX, "a.log", [f"{T} a\r", "oops\r", "\r", f"{T} a\r"], "a.log:L3", BLANK),
        (REGEX, "a.log.gz", [f"{T} a", "oops", "", f"{T} a"], "a.log.gz:2", BLANK),
        (REGEX, "a.log", ["oops"], "a.log:L1", IGNORED),
        ("preset: json_in_text", "a.log", ["no brace"], "a.log:L1", NO_JSON),
        (REGEX, "a.csv", ["time,s", "", f"{T},a"], "a.csv:L2", BLANK),
        (REGEX, "a.json", ["", f'{{"time": "{T}", "s": "a"}}'], "a.json:L1", BLANK),
    ],
)
@pytest.mark.parametrize("is_in_folder", [False, True])
def test_a_line_that_is_no_record_is_told(
    tmp_path: Path,
    rule: str,
    text: str,
    name: str,
    lines: list[str],
    at: str,
    reason: str,
    is_in_folder: bool,
) -> None:
    written = "\n".join([*lines, ""]).encode()
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / name
    file.write_bytes(gzip.compress(written) if name.endswith(".gz") else written)
    rules = load_rules(RULES.format(text=text))
    answer = why(rules, file.parent if is_in_folder else file, rule=rule, at=at)
    assert (answer.not_in_stream, answer.attributes, answer.event_time) == (reason, {}, None)
    assert reason in str(answer)


def test_what_is_beyond_the_file_is_refused_and_a_path_is_told_the_names(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text(f"{T} a\noops\n")
    rules = load_rules(RULES.format(text=REGEX))
    with pytest.raises(ConfigError, match=r"got a.log:L3. There is 1 record in a.log.$"):
        why(rules, file, rule="low", at="a.log:L3")
    with pytest.raises(ConfigError, match=rf"got {file}:L1. There is 1 record in a.log.$"):
        why(rules, file, rule="low", at=f"{file}:L1")

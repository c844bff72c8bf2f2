"""What the presets of lines of text take for a user, and for a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.rules.schema import PRESETS
from tests.unit.io.text.test_regex_lines import SYSLOG, read, schema_of


@pytest.mark.parametrize(
    ("user", "told"),
    [("-", None), ("ann", "ann"), ("a", "a"), ("ann b", "ann b"), ("-a- b", "-a- b"), ("--", "--")],
)
def test_users_of_a_web_server(tmp_path: Path, user: str, told: str | None) -> None:
    schema = schema_of(
        PRESETS["combined"], {"time": "TIMESTAMP", "address": "STRING", "user": "STRING"}, "time"
    )
    line = f'10.0.0.7 - {user} [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 23'
    found = read(tmp_path, f"{line}\nwww.example.org:443 {line}", schema)
    assert (found.events["user"].to_pylist(), found.bad["offset"].to_pylist()) == ([told], [1])


@pytest.mark.parametrize("tag", ["2024 w sshd[1]", "w my app", "w last message repeated 2 times"])
def test_a_program_of_syslog_has_no_blank(tmp_path: Path, tag: str) -> None:
    schema = schema_of(replace(SYSLOG, year=2024), {"time": "TIMESTAMP", "program": "STRING"}, "time")
    assert read(tmp_path, f"May  6 00:00:12 {tag}: x", schema).bad_rows == 1


LINE = '10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 23'


@pytest.mark.parametrize(
    ("behind", "agent", "rest"),
    [
        ("", None, None),
        (' "-" "curl/8.5"', "curl/8.5", None),
        (' "-" "-" "10.1.1.1, 10.2.2.2"', None, '"10.1.1.1, 10.2.2.2"'),
        (' "http://a/" "curl/8.5" rt=0.012 uct="0.001"', "curl/8.5", 'rt=0.012 uct="0.001"'),
        (r' "http://a/?\"" "a \"b\" c" "-"', r"a \"b\" c", '"-"'),
        (r' "-" "a\x22 b"', r"a\x22 b", None),
        (' "-" "a "b" c"', 'a "b" c', None),
    ],
)
def test_what_a_web_server_writes_behind_the_agent_is_the_rest(
    tmp_path: Path, behind: str, agent: str | None, rest: str | None
) -> None:
    types = {"time": "TIMESTAMP", "agent": "STRING", "rest": "STRING"}
    found = read(tmp_path, LINE + behind, schema_of(PRESETS["combined"], types, "time"))
    assert found.bad_rows == 0
    assert (found.events["agent"].to_pylist(), found.events["rest"].to_pylist()) == ([agent], [rest])

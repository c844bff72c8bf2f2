"""What has no sense under a key is refused: in rules of every kind, and in jobs with every kind of source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_pace import check
from spark_pace.job_file.reader import JOB_KEYS
from spark_pace.rules.rule_file import RULE_KEYS
from spark_pace.rules.schema import OF_JOBS, SCHEMA_KEYS

EVENTS = {"schema": "time TIMESTAMP, kind STRING, x DOUBLE", "event_time": "time"}
AB = [{"a": "kind = 'a'"}, {"b": "kind = 'b'"}]
SPAN = {"every": "10 s", "size": "60 s"}
KINDS: dict[str, dict[str, Any]] = {
    "sequence": {"pattern": {"sequence": AB}, "within": "1 min"},
    "conjunction": {"pattern": {"conjunction": AB}, "within": "1 min"},
    "alternatives": {"pattern": {"disjunction": [{"sequence": AB}, {"c": "kind = 'c'"}]}, "within": "1 min"},
    "pattern in a span": {"pattern": {"sequence": AB}, "span": SPAN},
    "operator": {"operator": "m:f", "span": SPAN, "emit": {"n": "BIGINT"}},
    "aggregates": {"span": SPAN, "emit": {"n": "count(*)"}},
    "moves": {"fold": {"initial": "s", "moves": [{"from": "s", "when": "kind = 'a'", "to": "t"}]}},
    "function": {"fold": "m:f", "emit": {"n": "BIGINT"}},
    "row pattern": {
        "match_recognize": "ORDER BY time PATTERN (a b) WITHIN INTERVAL '5' SECOND DEFINE b AS x > 5"
    },
}
TAKEN = {"name", "description"}  # any text may stand there
JOB = {
    "name": "j",
    "source": {"kind": "files", "format": "json", "path": "in"},
    "rules": ["rules.yaml"],
    "sink": {"kind": "delta", "path": "out"},
    "checkpoint": "out/_checkpoint",
}
SOURCES: dict[str, dict[str, Any]] = {
    "files": {"kind": "files", "format": "json", "path": "in"},
    "kafka": {"kind": "kafka", "servers": "localhost:9092", "topics": ["t"], "format": "json"},
    "delta": {"kind": "delta", "path": "in"},
}
OF_SOURCES = {*SOURCES["files"], *SOURCES["kafka"], "from_version", "max_files_per_trigger", "options"}


def refused(document: dict[str, Any]) -> int:
    return len(check(document).problems)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_of_any_kind_takes_no_nonsense_under_any_key(kind: str) -> None:
    rule = {"name": "r", **KINDS[kind]}
    assert not refused({"events": EVENTS, "rules": [rule]})
    silent = {
        (key, json.dumps(value))
        for value in ("nonsense", [[]])
        for key in RULE_KEYS
        if not refused({"events": EVENTS, "rules": [{**rule, key: value}]})
    }
    assert silent == {(key, '"nonsense"') for key in TAKEN}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_of_any_kind_takes_no_nonsense_under_any_key(kind: str, tmp_path: Path) -> None:
    jobs = ({**JOB, "source": {**SOURCES[kind], key: [[]]}} for key in sorted(OF_SOURCES))
    assert [job for job in jobs if not refused_in_a_file(job, tmp_path)] == []
    misnamed = {**JOB, "source": {**SOURCES[kind], "kind": "nonsense"}}
    assert refused_in_a_file(misnamed, tmp_path)
    assert not refused_in_a_file({**JOB, "source": SOURCES[kind]}, tmp_path)


def test_a_job_takes_no_nonsense_under_any_key(tmp_path: Path) -> None:
    jobs = [{**JOB, key: [[]]} for key in JOB_KEYS]
    jobs += [{**JOB, "events": {key: [[]]}} for key in (*OF_JOBS, *SCHEMA_KEYS)]
    assert [job for job in jobs if not refused_in_a_file(job, tmp_path)] == []


def refused_in_a_file(job: dict[str, Any], directory: Path) -> int:
    rule = {"name": "r", **KINDS["sequence"]}
    (directory / "rules.yaml").write_text(json.dumps({"events": EVENTS, "rules": [rule]}))
    (directory / "job.yaml").write_text(json.dumps(job))
    return len(check(directory / "job.yaml").problems)

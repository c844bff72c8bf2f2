"""What is read of a file, record by record, by the cases of `tests/golden/records`.

A case has `lines`, those of the file; of each event the values of some attributes (`rows`), of each bad
record how its reason begins (`bad`), by their offsets; and how many lines were `ignored`. `format` and
`events`, the section of a rule file, are the file's or the case's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_pace import load_rules
from spark_pace.io.event_files import read_events
from tests.support.golden_cases import DIRECTORY


def cases() -> list[Any]:
    found = []
    for path in sorted((DIRECTORY / "records").glob("*.yaml")):
        told = yaml.safe_load(path.read_text())
        own = {"format": told["format"], "events": told["events"], "bad": {}, "ignored": 0}
        found += [
            pytest.param(own | case, id=f"{path.stem}-{number}")
            for number, case in enumerate(told["cases"], 1)
        ]
    return found


@pytest.mark.parametrize("case", cases())
def test_what_is_read_of_a_file_is_what_the_golden_case_says(case: dict[str, Any], tmp_path: Path) -> None:
    rule = {"name": "r", "pattern": {"sequence": [{"a": "true"}]}}
    (rule,) = load_rules({"events": case["events"], "rules": [rule]})
    path, lines = tmp_path / "file", [line.encode() for line in case["lines"]]
    path.write_bytes(b"\n".join(lines))
    read = read_events(str(path), case["format"], rule.schema, "file")
    events = {row["@offset"]: row for row in read.events.to_pylist()}
    assert {
        offset: {name: shown(events[offset][name]) for name in case["rows"].get(offset, {})}
        for offset in events
    } == case["rows"]
    bad = {row["offset"]: row for row in read.bad.to_pylist()}
    assert {
        offset: row["reason"][: len(case["bad"].get(offset, row["reason"]))] for offset, row in bad.items()
    } == case["bad"]
    header = case["format"] == "csv"
    assert all(row["raw"] == lines[offset + header] for offset, row in bad.items())
    assert (read.ignored_rows, read.read_rows) == (case["ignored"], len(events) + len(bad))


def shown(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) or value is None else str(value)

"""What `why` says of single events, by the cases of `tests/golden/why`."""

from __future__ import annotations

from typing import Any

import pytest

from spark_pace.reasons import why
from tests.support.golden_cases import DIRECTORY, GoldenCase, golden_cases, listed
from tests.support.results import table_of

QUESTIONS = [
    pytest.param(case, asked, told, id=f"{case.name}-{asked}")
    for case in golden_cases(DIRECTORY / "why")
    for asked, told in case.told["asked"].items()
]


@pytest.mark.parametrize(("case", "asked", "told"), QUESTIONS)
def test_it_says_what_the_golden_case_says(case: GoldenCase, asked: str, told: Any) -> None:
    rule = case.load_rule()
    events = table_of(rule, case.events).select([field.name for field in rule.schema.fields])
    place = [event.row["id"] for event in case.events].index(asked)
    answer = why([rule], events, rule=rule.name, at=f"table:{place}")
    expected = told if isinstance(told, dict) else {"says": told}
    lines = str(answer).splitlines()
    for text in listed(expected.get("says", [])):
        assert any(line.endswith(text) for line in lines), (text, *lines)
    for text in listed(expected.get("not", [])):
        assert text not in str(answer)
    if "candidates" in expected:
        assert [str(one) for one in answer.candidates] == listed(expected["candidates"])

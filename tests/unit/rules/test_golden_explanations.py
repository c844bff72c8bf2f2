"""What `explain` says of rules, by the cases of `tests/golden/explain`."""

from __future__ import annotations

import pytest

from spark_pace.rules import explain
from tests.support.golden_cases import DIRECTORY, GoldenCase, golden_cases, listed


@pytest.mark.parametrize("case", golden_cases(DIRECTORY / "explain"), ids=lambda case: case.name)
def test_it_says_what_the_golden_case_says(case: GoldenCase) -> None:
    lines, label = explain(case.load_rule()), ""
    told = dict[str, list[str]]()
    for line in lines[1:]:
        label, text = line[2:14].strip() or label, line[15:].strip()
        told.setdefault(label, []).append(text)
        key, _, rest = text.partition(": ")
        told.setdefault(f"{label}.{key}", []).append(rest)
    for label, texts in case.told.get("explained", {}).items():
        for text in listed(texts):
            if text.startswith("="):
                assert text[1:] in told[label]
            else:
                assert any(text in line for line in told[label]), (text, told[label])
    assert not [text for text in listed(case.told.get("not", [])) if text in "\n".join(lines)]

"""The key that `why` is asked for is found by its values, whatever their spelling."""

from __future__ import annotations

from decimal import Decimal

from spark_pace import replay, why

RULES = """
events: {schema: "time TIMESTAMP, p DECIMAL(10,2), k STRING", event_time: time}
rules:
  - {name: r, partition_by: [p, k], pattern: {sequence: [a: k <> 'z']}}
"""


def test_the_key_of_a_match_is_found_by_its_values() -> None:
    events = [{"time": "2024-01-01T00:00:00Z", "p": Decimal(p), "k": "u"} for p in ("1.50", "1.05")]
    (_, key) = replay(RULES, events).matches["key"].to_pylist()
    assert key == '{"p":1.50,"k":"u"}'
    for given in (key, '{"k": "u", "p": 1.5}', '{"p": 15e-1, "k": "\\u0075"}'):
        assert why(RULES, events, rule="r", at=0, key=given).offset == 0

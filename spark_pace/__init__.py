"""Complex event processing on Spark: rules in YAML, selections matched in parallel, one ordered output.

What stands here is the Python API. It is imported when it is first asked for, so ``import spark_pace`` costs
next to nothing and starts no JVM.

    >>> import spark_pace
    >>> rules = '''
    ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
    ... rules:
    ...   - name: rise
    ...     pattern: {sequence: [{a: x < 5}, {b: x > 5}]}
    ...     within: 1 min
    ...     emit: {to: b.x}
    ... '''
    >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
    >>> found = spark_pace.replay(rules, events)
    >>> found
    2 records; matches: rise 1
    >>> found.matches["to"].to_pylist()
    [9.0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spark_pace.api import (
        Check,
        Explained,
        check,
        create_views,
        detect,
        explain,
        load_rules,
        read_table,
        replay,
        sql,
        timeline,
        why,
    )
    from spark_pace.core.plan.rule import EventSchema, Rule
    from spark_pace.io.replay import Matches, Replay
    from spark_pace.io.timeline import Timeline
    from spark_pace.reasons import Why

__all__ = [
    "Check", "EventSchema", "Explained", "Matches", "Replay", "Rule", "Timeline", "Why", "__version__",
    "check", "create_views", "detect", "explain", "load_rules", "read_table", "replay", "sql", "timeline",
    "why",
]  # fmt: skip
_ELSEWHERE = {
    **dict.fromkeys(("EventSchema", "Rule"), "spark_pace.core.plan.rule"),
    "Matches": "spark_pace.io.replay",
    "Replay": "spark_pace.io.replay",
    "Timeline": "spark_pace.io.timeline",
    "Why": "spark_pace.reasons",
}


def __dir__() -> list[str]:
    """What stands here, for those who complete names."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import what is asked for the first time."""
    if name not in __all__:
        raise AttributeError(f"module 'spark_pace' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "spark_pace.api")), name)

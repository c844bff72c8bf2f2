"""The events of an optional component in last place are sought once for each candidate."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType

import pytest

from spark_pace import ways
from spark_pace.core.match.contexts import CONTEXTS
from spark_pace.core.match.contexts.contexts import match_bounded, takes_optional_last
from spark_pace.core.match.search import limits
from spark_pace.core.match.stream import Horizon, Stream
from spark_pace.core.plan.rule import Within
from spark_pace.core.tables import SPENT
from tests.unit.core.match.test_compiled_turns import pattern_of, stream_of

THAT_TAKE_IT = [name for name, context in CONTEXTS.items() if takes_optional_last(context.way)]
BY_COLUMNS = "first(l.x) = b.x"
COMPILED = "first(l.x) + a.x < b.x"


@pytest.mark.parametrize("taking", ["", BY_COLUMNS, COMPILED], ids=["none", "looked up", "compiled"])
@pytest.mark.parametrize("name", THAT_TAKE_IT)
def test_what_follows_a_candidate_is_sought_once(
    name: str, taking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "FIRST_OPENINGS", 1)  # of one open selection, so that it goes on by blocks
    context, matches = CONTEXTS[name], 0
    for seed in range(20):
        told = f"a b l:0..{1 if taking else 1 + seed % 3} | {taking}"
        pattern = replace(pattern_of(told, context=name), within=Within(time_us=3 + seed % 9))
        drawn = stream_of(seed, len(pattern.components), overlapping=False)
        stream, sought = Stream(drawn.events.drop_columns([SPENT]), drawn.starts), list[tuple[int, ...]]()

        def note(
            frame: FrameType, event: str, argument: object, sought: list[tuple[int, ...]] = sought
        ) -> None:
            if event == "call" and frame.f_code is limits.behind.__code__:
                sought.extend(map(tuple, frame.f_locals["matrix"].tolist()))

        before = sys.gettrace()
        sys.settrace(note)
        try:
            matches += match_bounded(context.way, stream, pattern, Horizon(10**9)).matches
        finally:
            sys.settrace(before)
        assert len(sought) == len(set(sought)), seed
    assert matches > 20

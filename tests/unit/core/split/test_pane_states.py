"""States of builds that carried a row for the events of each pane load, and the stream goes on as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace import ways
from spark_pace.core.local_run import LocalRun
from spark_pace.core.split.slot_splitter import SlotSplitter
from tests.support.pane_states import FIRST, KEPT, batches, plan, state_after


@pytest.mark.parametrize("small", [4, ways.SMALL])
def test_a_state_with_a_row_for_each_pane_goes_on_as_the_stream_does(
    tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "SMALL", small)
    whole, later = LocalRun(plan(tmp_path)), LocalRun(plan(tmp_path))
    first, rest = batches()[:FIRST], [*batches()[FIRST:], None]
    for batch in first:
        whole.step(batch)
    later.splitters = [SlotSplitter(later.plan, 0, KEPT.read_bytes())]
    later.next_out_seq = whole.next_out_seq
    for batch in rest:
        expected = whole.step(batch, finish=batch is None).matches.to_pylist()
        found = later.step(batch, finish=batch is None).matches.to_pylist()
        assert len(found) > 10
        assert list(map(str, found)) == list(map(str, expected))  # NaN is NaN so


def test_that_state_is_not_one_of_today(tmp_path: Path) -> None:
    assert KEPT.read_bytes() != state_after(tmp_path, FIRST)

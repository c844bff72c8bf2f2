"""Kernels give the oracle's matches as plain Python, too, as they run where no machine code is to be had."""

from __future__ import annotations

import pytest

from spark_pace import ways
from spark_pace.cli.kernels import KERNELS
from spark_pace.machine_code import kernel
from tests.long.differential.chunk import KINDS, Tally, run_chunk


def test_the_source_of_kernels_gives_the_oracles_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "FEW_NUMBERS", 1 << 62)
    monkeypatch.setattr(kernel, "kept_code", lambda name: None)
    for one in KERNELS:
        monkeypatch.setattr(one, "_runs", {})
    tally = Tally()
    for number in range(len(KINDS)):
        tally.add(run_chunk(90, number, 1))
    assert not tally.differing, tally.differing[0]
    assert tally.matched > tally.pairs / 2
    assert not any(one.is_machine_code for one in KERNELS)
    unused = {one.function.__name__ for one in KERNELS if not one.layouts}
    assert unused <= {"_production_sets"}  # no random rule asks for a strategy

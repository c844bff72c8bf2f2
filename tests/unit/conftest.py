"""A process that runs Python operators, for the tests that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_pace.spark.stages.operator_process import OperatorProcess


@pytest.fixture
def process() -> Iterator[OperatorProcess]:
    process = OperatorProcess()
    yield process
    process.stop()

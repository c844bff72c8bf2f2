"""Runs the Python functions of folds in a process of their own: one that hangs or crashes costs no worker.

Each of Spark's Python workers has one such process, which is used until it ends. An event cannot be skipped,
for the next ones rest on the state behind it. So what fails is asked once more, all of it and in a new
process, and if it fails there too, the job stops; the step of the process tells at which event.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from spark_pace.core.frames import decode, encode
from spark_pace.core.functions.python_fold import Folded, Runs, fold_runs
from spark_pace.core.functions.python_function import ATTEMPTS, load_operator
from spark_pace.errors import OperatorError
from spark_pace.spark.stages.operator_child import Child, Ended, KeptChild, Link

_LOADING = -1  # the step before the first event
_LOADING_US = 600_000_000


class FoldProcess(KeptChild):
    """Calls the functions of folds in a child process."""

    def __init__(self) -> None:
        """Start nothing yet."""
        super().__init__(_serve)

    def call(self, runs: Runs, timeout_us: int) -> Folded:
        """What the function makes of the runs.

        Args:
            runs: the runs.
            timeout_us: how long one call may take.

        Raises:
            OperatorError: the function cannot be imported, or has failed in two processes.
        """
        request = pickle.dumps((sys.path, runs, timeout_us), pickle.HIGHEST_PROTOCOL)
        for attempt in range(ATTEMPTS):
            if attempt:
                self.stop()
            self.start()
            child = self._child
            assert child is not None
            try:
                return _asked(child, request)
            except Ended as ended:
                self._child, failure = None, _failure(runs, child.step.number, str(ended))
            except OperatorError as error:
                failure = error
        self.stop()
        raise failure


def _failure(runs: Runs, row: int, reason: str) -> OperatorError:
    if row != _LOADING:
        return runs.failed(row, reason)
    must, do = "must be importable where the splitters run", "Mend what its module does on import."
    return OperatorError(f"fold {runs.rule.function} — {must}; got: {reason}. {do}")


def _asked(child: Child, request: bytes) -> Folded:
    child.step.begin(_LOADING, _LOADING_US)
    child.send(request)
    answer: Any = pickle.loads(child.receive())
    if isinstance(answer, OperatorError):
        raise answer
    rows, fields, states = answer
    return Folded(np.frombuffer(rows, np.int64), decode(fields), states)


def _serve(link: Link) -> None:
    """Fold runs until there are no more. Runs in the child."""
    while (message := link.receive()) is not None:
        runs: Runs
        path, runs, timeout_us = pickle.loads(message)
        link.step.begin(_LOADING, _LOADING_US)
        sys.path[:] = path  # Spark may have brought Python files since the fork
        answer: Any
        try:
            load_operator(str(runs.rule.function))
            folded = fold_runs(runs, partial(link.step.begin, limit_us=timeout_us), (BaseException,))
            answer = (folded.rows.tobytes(), encode(folded.fields.combine_chunks()), folded.states)
        except OperatorError as error:
            answer = OperatorError(str(error))
        with suppress(Exception):  # a function may have closed it
            sys.stdout.flush()
        link.send(pickle.dumps(answer))

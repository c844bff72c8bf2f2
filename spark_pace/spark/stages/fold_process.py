"""Runs the Python functions of folds in a separate process; one that hangs or crashes ends no worker.

Each of Spark's Python workers has one such process, which is used until it ends. An event cannot be skipped,
because later events depend on the state after it. So if the function fails, all is computed once more in a
new process; if it fails there too, the job stops. The step of the process says at which event it failed.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.frames import encode_parcel
from spark_pace.core.python_functions import ATTEMPTS, Folded, Runs, emit_schema, fold_runs, load_operator
from spark_pace.errors import OperatorError
from spark_pace.spark.stages.operator_child import Ended, KeptChild, Link

_LOADING = -1  # the step before the first event: the import of the function's module
_LOADING_US = 600_000_000


class FoldProcess(KeptChild):
    """The child process that calls the functions of folds."""

    def __init__(self) -> None:
        """Start nothing yet."""
        super().__init__(_serve)

    def call(self, runs: Runs, timeout_us: int) -> Folded:
        """Fold the runs.

        Args:
            runs: the events of each key, and the function.
            timeout_us: how long one call may take.

        Returns:
            The rows with matches, their fields, and the new states.

        Raises:
            OperatorError: the function cannot be imported, or has failed in two processes.
        """
        request = pickle.dumps((sys.path, runs, timeout_us), pickle.HIGHEST_PROTOCOL)
        attempts = 0
        while attempts < ATTEMPTS:
            self.start()
            child = self._child
            assert child is not None
            # a failure in a used process does not count, because earlier calls may have spoilt it
            attempts, child.fresh = attempts + child.fresh, False
            try:
                child.step.begin(_LOADING, _LOADING_US)
                child.send(request)
                return child.answer(partial(_read, runs))
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


def _read(runs: Runs, told: dict[str, Any], tables: list[pa.Table]) -> Folded:
    fields, rows = tables
    schema, states = emit_schema(runs.rule), [str(state) for state in told["states"]]
    places = rows["row"].cast(pa.int64()).to_numpy()
    is_whole = len(states) == len(runs) and (len(places) == fields.num_rows or not schema.names)
    in_order = (np.diff(places, prepend=0, append=len(runs.seq) - 1) >= 0).all()
    if not (fields.schema.equals(schema) and is_whole and in_order):
        raise ValueError("no answer")
    fields.validate(full=True)
    return Folded(places, fields, states)


def _serve(link: Link) -> None:
    """In the child: fold runs until the parent sends no more."""
    while (message := link.receive()) is not None:
        runs: Runs
        path, runs, timeout_us = pickle.loads(message)
        link.step.begin(_LOADING, _LOADING_US)
        sys.path[:] = path  # Spark may have added Python files since the fork
        try:
            load_operator(str(runs.rule.function))
            folded = fold_runs(runs, partial(link.step.begin, limit_us=timeout_us), (BaseException,))
            tables = [folded.fields.combine_chunks(), pa.table({"row": folded.rows})]
            answer = encode_parcel({"states": folded.states}, tables)
        except OperatorError as error:
            answer = encode_parcel({"error": str(error)}, [])
        with suppress(Exception):  # the function may have closed it
            sys.stdout.flush()
        link.send(answer)

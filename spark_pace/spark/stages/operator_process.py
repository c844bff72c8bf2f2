"""Runs Python functions in a separate process: operators, and those of folds.

An operator that hangs or crashes costs only its selection. Each of Spark's Python workers has one such
process. It is forked when the first lane comes and used until it ends, so that an operator can keep what it
has loaded. A whole lane is sent at once; the answers come back in pieces, while the operator works on later
selections. When the process ends, a new one is sent the lane, and asked for the missing answers. This module
says how long each step may take; `Child` watches the time and ends the process.

It can be unclear which selection is to blame: an operator may leave threads, limits or handlers behind that
harm a later selection, or silently spoil the connection. So the selections that could be to blame are asked
for one by one, and a failure counts only in a process that has worked on nothing else. If very many
selections of a lane fail, this would start a process for each of them. Then a new process also decides on a
few selections after its first one, and one of these may cost the others their rows.

In a fold an event cannot be skipped, because later events depend on the state after it. So if the function
fails, all is computed once more in a new process; if it fails there too, the job stops. The step of the
process says at which event it failed.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.frames import encode_parcel
from spark_pace.core.operate.python_operator import Answer, Answers, Spans, call_operator, gathered
from spark_pace.core.python_functions import ATTEMPTS, Folded, Runs, emit_schema, fold_runs, load_operator
from spark_pace.errors import OperatorError
from spark_pace.spark.stages.operator_child import Child, Ended, Link

_LOADING = -1  # the step before the first selection; even a small operator may import large libraries
_LOADING_US = 600_000_000
_PIECE_SECONDS = 0.1
_PIECE_BYTES = 4 << 20
_SHARE = 20  # a new process decides on a 20th of the number that has failed in the lane, at least one


@dataclass(frozen=True)
class _Request:
    """A request for the answers to some spans of a lane.

    Attributes:
        path: the value for `sys.path`.
        spans: those of the lane.
        first: the index of the first span.
        last: the index after the last span.
        ended: how often a process has ended at the first span.
        fresh: True if the process has not worked on any span yet.
        decided: the number of spans, from the first on, for which a failure in a fresh process counts;
            other processes decide on the rest.
        timeout_us: how long the operator may work on a span.
    """

    path: list[str]
    spans: Spans
    first: int
    last: int
    ended: int
    fresh: bool
    decided: int
    timeout_us: int

    def attempts(self, place: int) -> int:
        """The number of times that this process tries a selection; 0 if a failure does not count here."""
        if not self.fresh or place >= self.first + self.decided:
            return 0
        return ATTEMPTS - self.ended if place == self.first else ATTEMPTS

    def serve(self, link: Link) -> None:
        """In the child: send the answers in pieces.

        Raises:
            OperatorError: the operator cannot be imported.
        """
        load_operator(str(self.spans.rule.operator))
        waiting: list[Answer] = []
        took: list[float] = []
        size, since = 0, time.monotonic()
        for place in range(self.first, self.last):
            link.step.begin(place, self.timeout_us)
            attempts = self.attempts(place)
            began = time.perf_counter()
            answer = call_operator(self.spans.rule, self.spans[place], attempts or 1, BaseException)
            took.append(time.perf_counter() - began)
            link.check()
            if isinstance(answer, str) and not attempts:
                self._hand_on(link, waiting, took[:-1])
                os._exit(1)
            waiting.append(answer)
            size += len(answer) if isinstance(answer, str) else answer.nbytes
            if size > _PIECE_BYTES or time.monotonic() - since > _PIECE_SECONDS or place == self.last - 1:
                self._hand_on(link, waiting, took)
                waiting, took, size, since = [], [], 0, time.monotonic()

    def _hand_on(self, link: Link, waiting: list[Answer], took: list[float]) -> None:
        answers = gathered(self.spans.rule, waiting)
        told = {"counts": answers.counts, "failed": answers.failed, "seconds": took}
        _send(link, told, [answers.rows.combine_chunks()])


@dataclass(frozen=True)
class _Folding:
    """A request to fold runs.

    Attributes:
        path: the value for `sys.path`.
        runs: the events of each key, and the function.
        timeout_us: how long one call may take.
    """

    path: list[str]
    runs: Runs
    timeout_us: int

    def serve(self, link: Link) -> None:
        """In the child: fold, and send the result.

        Raises:
            OperatorError: the function has failed, or cannot be imported.
        """
        load_operator(str(self.runs.rule.function))
        begin = partial(link.step.begin, limit_us=self.timeout_us)
        folded = fold_runs(self.runs, begin, (BaseException,))
        _send(
            link, {"states": folded.states}, [folded.fields.combine_chunks(), pa.table({"row": folded.rows})]
        )


class OperatorProcess:
    """The child process that calls functions; it is forked when it is needed, and used until it ends."""

    def __init__(self) -> None:
        """Start no process yet."""
        self._child: Child | None = None

    def start(self) -> Child:
        """Fork the child if there is none, early, so that it does not get what this process opens later."""
        if self._child is None:
            self._child = Child(_serve)
        return self._child

    def stop(self) -> None:
        """End the child if there is one."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def call(self, spans: Spans, timeout_us: int) -> Iterator[Answers]:
        """Yield the answers to all spans, in order.

        An operator fails if it raises, takes longer than `timeout_us`, or ends the process. After `ATTEMPTS`
        failures the selection has failed, and the last failure is the reason.

        Raises:
            OperatorError: the operator cannot be imported.
        """
        schema = emit_schema(spans.rule)
        ends: Counter[int] = Counter()
        done, failed, reason = 0, 0, ""
        try:
            while done < len(spans):
                if ends[done] >= ATTEMPTS:
                    done, failed = done + 1, failed + 1
                    yield gathered(spans.rule, [reason])
                    continue
                if ends[done]:  # a process has ended at this selection: a new one is asked
                    self.stop()
                child = self.start()
                fresh, child.fresh = child.fresh, False
                decided = max(1, failed // _SHARE)
                last = min(done + decided, len(spans)) if done <= max(ends, default=_LOADING) else len(spans)
                request = _Request(sys.path, spans, done, last, ends[done], fresh, decided, timeout_us)
                try:
                    for answers in _asked(child, request, schema):
                        done, failed = done + len(answers.counts), failed + len(answers.failed)
                        yield answers
                except Ended as ended:
                    self._child = None
                    # a process that is not fresh may have been spoilt by an earlier selection
                    if child.step.number != _LOADING or fresh:
                        ends[child.step.number] += 1
                        reason = str(ended)
                    if ends[_LOADING] >= ATTEMPTS:
                        raise _not_loaded(f"operator {spans.rule.operator}", "operators", reason) from None
        finally:
            if done < len(spans):  # nobody waits for the answers that are still to come
                self.stop()

    def fold(self, runs: Runs, timeout_us: int) -> Folded:
        """Fold the runs.

        Args:
            runs: the events of each key, and the function.
            timeout_us: how long one call may take.

        Returns:
            The rows with matches, their fields, and the new states.

        Raises:
            OperatorError: the function cannot be imported, or has failed in two processes.
        """
        request = pickle.dumps(_Folding(sys.path, runs, timeout_us), pickle.HIGHEST_PROTOCOL)
        attempts = 0
        while attempts < ATTEMPTS:
            child = self.start()
            # a failure in a used process does not count, because earlier calls may have spoilt it
            attempts, child.fresh = attempts + child.fresh, False
            try:
                child.step.begin(_LOADING, _LOADING_US)
                child.send(request)
                return child.answer(partial(_folded, runs))
            except Ended as ended:
                self._child, failure = None, _fold_failed(runs, child.step.number, str(ended))
            except OperatorError as error:
                failure = error
                self.stop()
        raise failure


def _asked(child: Child, request: _Request, schema: pa.Schema) -> Iterator[Answers]:
    """Send a request, and yield the answers.

    Only a new process gets a long time for loading. In another one an operator may have swallowed the
    request, so it gets the usual time.
    """
    child.step.begin(_LOADING, _LOADING_US if request.fresh else request.timeout_us)
    child.send(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
    done = request.first
    while done < request.last:
        answers = child.answer(partial(_read, schema, request.last - done))
        done += len(answers.counts)
        yield answers


def _read(schema: pa.Schema, most: int, told: dict[str, Any], tables: list[pa.Table]) -> Answers:
    (rows,) = tables
    counts = tuple(map(int, told["counts"]))
    is_whole = sum(counts) == rows.num_rows or not schema.names  # Arrow counts no rows without columns
    if not (rows.schema.equals(schema) and is_whole and len(counts) <= most and min(counts) >= 0):
        raise ValueError("no answer")
    rows.validate(full=True)
    failed = {int(place): str(reason) for place, reason in told["failed"].items()}
    return Answers(rows, counts, failed, tuple(map(float, told["seconds"])))


def _folded(runs: Runs, told: dict[str, Any], tables: list[pa.Table]) -> Folded:
    fields, rows = tables
    schema, states = emit_schema(runs.rule), [str(state) for state in told["states"]]
    places = rows["row"].cast(pa.int64()).to_numpy()
    is_whole = len(states) == len(runs) and (len(places) == fields.num_rows or not schema.names)
    in_order = (np.diff(places, prepend=0, append=len(runs.seq) - 1) >= 0).all()
    if not (fields.schema.equals(schema) and is_whole and in_order):
        raise ValueError("no answer")
    fields.validate(full=True)
    return Folded(places, fields, states)


def _not_loaded(what: str, where: str, reason: str) -> OperatorError:
    must, do = f"must be importable where the {where} run", "Mend what its module does on import."
    return OperatorError(f"{what} — {must}; got: {reason}. {do}")


def _fold_failed(runs: Runs, row: int, reason: str) -> OperatorError:
    if row != _LOADING:
        return runs.failed(row, reason)
    return _not_loaded(f"fold {runs.rule.function}", "splitters", reason)


def _serve(link: Link) -> None:
    """In the child: answer requests until the parent sends no more."""
    while (message := link.receive()) is not None:
        asked: _Request | _Folding = pickle.loads(message)
        link.step.begin(_LOADING, _LOADING_US)
        sys.path[:] = asked.path  # Spark may have added Python files since the fork
        try:
            asked.serve(link)
        except OperatorError as error:
            _send(link, {"error": str(error)}, [])


def _send(link: Link, told: dict[str, Any], tables: list[pa.Table]) -> None:
    with suppress(Exception):  # the function may have closed it
        sys.stdout.flush()
    link.send(encode_parcel(told, tables))

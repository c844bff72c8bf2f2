"""Runs Python operators in a separate process; one that hangs or crashes costs only its selection.

Each of Spark's Python workers has one such process. It is forked when the first lane comes and used until it
ends, so that an operator can keep what it has loaded. A whole lane is sent at once; the answers come back in
pieces, while the operator works on later selections. When the process ends, a new one is asked for the
missing answers. This module says how long each step may take; `Child` watches the time and ends the process.

It can be unclear which selection is to blame: an operator may leave threads, limits or handlers behind that
harm a later selection, or silently spoil the connection. So the selections that could be to blame are asked
for one by one, and a failure counts only in a process that has worked on nothing else. If very many
selections of a lane fail, this would start a process for each of them. Then a new process also decides on a
few selections after its first one, and one of these may cost the others their rows.
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

import pyarrow as pa

from spark_pace.core.frames import encode_parcel
from spark_pace.core.operate.python_operator import Answer, Answers, Spans, call_operator, gathered
from spark_pace.core.python_functions import ATTEMPTS, emit_schema, load_operator
from spark_pace.errors import OperatorError
from spark_pace.spark.stages.operator_child import Child, Ended, KeptChild, Link

_LOADING = -1  # the step before the first selection; even a small operator may import large libraries
_LOADING_US = 600_000_000
_PIECE_SECONDS = 0.1
_PIECE_BYTES = 4 << 20
_SHARE = 20  # a new process decides on a 20th of the number that has failed in the lane, at least one


@dataclass(frozen=True)
class _Request:
    """A request for the answers to some spans of the lane that was sent before.

    Attributes:
        path: the value for `sys.path`.
        first: the index of the first span.
        last: the index after the last span.
        ended: how often a process has ended at the first span.
        fresh: True if the process has not worked on any span yet.
        decided: the number of spans, from the first on, for which a failure in a fresh process counts;
            other processes decide on the rest.
        timeout_us: how long the operator may work on a span.
    """

    path: list[str]
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


class OperatorProcess(KeptChild):
    """The child process that calls operators."""

    def __init__(self) -> None:
        """Start no process yet."""
        super().__init__(_serve)

    def call(self, spans: Spans, timeout_us: int) -> Iterator[Answers]:
        """Yield the answers to all spans, in order.

        An operator fails if it raises, takes longer than `timeout_us`, or ends the process. After `ATTEMPTS`
        failures the selection has failed, and the last failure is the reason.

        Raises:
            OperatorError: the operator cannot be imported.
        """
        lane, schema = pickle.dumps(spans, pickle.HIGHEST_PROTOCOL), emit_schema(spans.rule)
        ends: Counter[int] = Counter()
        done, failed, reason = 0, 0, ""
        told: Child | None = None  # the process that has the lane
        try:
            while done < len(spans):
                if ends[done] >= ATTEMPTS:
                    done, failed = done + 1, failed + 1
                    yield gathered(spans.rule, [reason])
                    continue
                child = self._child_for(ends[done])
                fresh, child.fresh = child.fresh, False
                decided = max(1, failed // _SHARE)
                last = min(done + decided, len(spans)) if done <= max(ends, default=_LOADING) else len(spans)
                request = _Request(sys.path, done, last, ends[done], fresh, decided, timeout_us)
                try:
                    for answers in _asked(child, None if told is child else lane, request, schema):
                        done, failed = done + len(answers.counts), failed + len(answers.failed)
                        yield answers
                    told = child
                except Ended as ended:
                    self._child = None
                    # a process that is not fresh may have been spoilt by an earlier selection
                    if child.step.number != _LOADING or fresh:
                        ends[child.step.number] += 1
                        reason = str(ended)
                    if ends[_LOADING] >= ATTEMPTS:
                        raise _not_loaded(spans, reason) from None
        finally:
            if done < len(spans):  # nobody waits for the answers that are still to come
                self.stop()

    def _child_for(self, ends: int) -> Child:
        """The process for a selection; a new one if `ends`, how often a process has ended at it, is not 0."""
        if ends:
            self.stop()
        self.start()
        assert self._child is not None
        return self._child


def _asked(child: Child, lane: bytes | None, request: _Request, schema: pa.Schema) -> Iterator[Answers]:
    """Send a request, and yield the answers.

    Only a new process gets a long time for loading. In another one an operator may have swallowed the
    request, so it gets the usual time.
    """
    child.step.begin(_LOADING, _LOADING_US if request.fresh else request.timeout_us)
    if lane is not None:
        child.send(lane)
    child.send(pickle.dumps(request))
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


def _not_loaded(spans: Spans, reason: str) -> OperatorError:
    must, do = "must be importable where the operators run", "Mend what its module does on import."
    return OperatorError(f"operator {spans.rule.operator} — {must}; got: {reason}. {do}")


def _serve(link: Link) -> None:
    """In the child: answer requests until the parent sends no more."""
    spans: Spans | None = None
    while (message := link.receive()) is not None:
        asked: Spans | _Request = pickle.loads(message)
        if isinstance(asked, Spans):
            spans = asked
            continue
        assert spans is not None and spans.rule.operator is not None
        link.step.begin(_LOADING, _LOADING_US)
        sys.path[:] = asked.path  # Spark may have added Python files since the fork
        try:
            load_operator(spans.rule.operator)
        except OperatorError as error:
            link.send(encode_parcel({"error": str(error)}, []))
            continue
        _answer(link, spans, asked)


def _answer(link: Link, spans: Spans, request: _Request) -> None:
    waiting: list[Answer] = []
    took: list[float] = []
    size, since = 0, time.monotonic()
    for place in range(request.first, request.last):
        link.step.begin(place, request.timeout_us)
        attempts = request.attempts(place)
        began = time.perf_counter()
        answer = call_operator(spans.rule, spans[place], attempts or 1, BaseException)
        took.append(time.perf_counter() - began)
        link.check()
        if isinstance(answer, str) and not attempts:
            _hand_on(link, spans, waiting, took[:-1])
            os._exit(1)
        waiting.append(answer)
        size += len(answer) if isinstance(answer, str) else answer.nbytes
        if size > _PIECE_BYTES or time.monotonic() - since > _PIECE_SECONDS or place == request.last - 1:
            _hand_on(link, spans, waiting, took)
            waiting, took, size, since = [], [], 0, time.monotonic()


def _hand_on(link: Link, spans: Spans, waiting: list[Answer], took: list[float]) -> None:
    with suppress(Exception):  # an operator may have closed it
        sys.stdout.flush()
    answers = gathered(spans.rule, waiting)
    told = {"counts": answers.counts, "failed": answers.failed, "seconds": took}
    link.send(encode_parcel(told, [answers.rows.combine_chunks()]))

"""The process in which a worker runs Python operators: one that hangs or crashes costs its selection, and nothing else.

There is one for each of Spark's Python workers, forked when the first lane comes and used until it ends, so that an
operator can keep what it has loaded. A lane crosses whole; answers come back in pieces while later selections are
worked on. When the process ends, what it has not yet given back is asked for again of a new one.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from spark_pace.core.frames import decode, encode
from spark_pace.core.selection_view import ATTEMPTS, Answer, Answers, Spans, call_operator, gathered, load_operator
from spark_pace.errors import OperatorError
from spark_pace.spark.child import Child, Ended, Step, next_message, send_message

_LOADING = -1  # the step before the first selection: large libraries may come with a small operator
_LOADING_US = 600_000_000
_PIECE_SECONDS = 0.1
_PIECE_BYTES = 4 << 20


class OperatorProcess:
    """Calls operators in a child process."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._child: Child | None = None

    def start(self) -> None:
        """Fork now, if that is not done: the less this process holds, the less the child does."""
        if self._child is None:
            self._child = Child(_serve)

    def stop(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def call(self, spans: Spans, timeout_us: int) -> Iterator[Answers]:
        """The answers to all spans, in order.

        An operator that takes longer than `timeout_us`, or ends the process, has failed once; after `ATTEMPTS` its
        selection is failed with that as the reason.

        Raises:
            OperatorError: the operator cannot be imported.
        """
        lane = pickle.dumps(spans, pickle.HIGHEST_PROTOCOL)
        ends: Counter[int] = Counter()
        given_up: dict[int, str] = {}
        done = 0
        try:
            while done < len(spans):
                self.start()
                assert self._child is not None
                try:
                    for answers in _asked(self._child, lane, done, len(spans), (ends, given_up, timeout_us)):
                        done += len(answers.counts)
                        yield answers
                except Ended as ended:
                    place, self._child = self._child.step.number, None
                    ends[place] += 1
                    if ends[place] >= ATTEMPTS:
                        given_up[place] = str(ended)
                    if _LOADING in given_up:
                        raise _not_loaded(spans, str(ended)) from None
        finally:
            if done < len(spans):  # what is still on its way belongs to nobody
                self.stop()


def _asked(child: Child, lane: bytes, first: int, last: int, terms: tuple[Mapping[int, int], Mapping[int, str], int]) -> Iterator[Answers]:
    """The answers to the spans from `first` to before `last`."""
    child.step.begin(_LOADING, _LOADING_US)
    child.send(pickle.dumps((sys.path, first, *terms)))
    child.send(lane)
    while first < last:
        counts, failed, rows = _opened(child.receive())
        first += len(counts)
        yield Answers(decode(rows), counts, failed)


def _opened(message: bytes) -> Any:
    answer = pickle.loads(message)
    if isinstance(answer, OperatorError):
        raise answer
    return answer


def _not_loaded(spans: Spans, reason: str) -> OperatorError:
    return OperatorError(f"operator {spans.rule.operator} — must be importable where the operators run; got: {reason}. Mend what its module does on import.")


def _serve(stream: BinaryIO, step: Step) -> None:
    """What the child does: answer for lanes until there are no more."""
    while (head := next_message(stream)) is not None and (lane := next_message(stream)) is not None:
        path, first, *terms = pickle.loads(head)
        sys.path[:] = path  # files for Python may have come since the fork
        spans: Spans = pickle.loads(lane)
        assert spans.rule.operator is not None
        try:
            load_operator(spans.rule.operator)
        except OperatorError as error:
            send_message(stream, pickle.dumps(OperatorError(str(error))))
            continue
        _answer(stream, step, spans, first, *terms)


def _answer(stream: BinaryIO, step: Step, spans: Spans, first: int, ends: Mapping[int, int], given_up: Mapping[int, str], timeout_us: int) -> None:
    waiting: list[Answer] = []
    size, since = 0, time.monotonic()
    for place in range(first, len(spans)):
        step.begin(place, timeout_us)
        answer = given_up[place] if place in given_up else call_operator(spans.rule, spans[place], ATTEMPTS - ends[place])
        waiting.append(answer)
        size += len(answer) if isinstance(answer, str) else answer.nbytes
        if size > _PIECE_BYTES or time.monotonic() - since > _PIECE_SECONDS or place == len(spans) - 1:
            answers = gathered(spans.rule, waiting)
            sys.stdout.flush()
            send_message(stream, pickle.dumps((answers.counts, answers.failed, encode(answers.rows.combine_chunks()))))
            waiting, size, since = [], 0, time.monotonic()

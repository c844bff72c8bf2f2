"""What stands still in a job, or needs somebody's eye, and why: sentences for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.order import MOST_NAMED
from spark_pace.errors import age, counted, one_line, shown_length, shown_time
from spark_pace.io.metrics import ENOUGH_RECORDS, null_in_every_record
from spark_pace.job_file import JobSpec
from spark_pace.job_file.reader import keys_told
from spark_pace.spark.running import Running
from spark_pace.watching.history import History

STANDS_AFTER_SECONDS = 30.0
CLOSE_SECONDS = 60  # who is no further behind keeps up
AHEAD_SECONDS = 60  # clocks of machines differ by less
_LATELY_US = 60_000_000
_FEW = 3  # batches; what lies further back than these, and than a minute, says nothing of now
_LEAST_SECONDS = 20  # a shorter time does not tell the speed
_STEADY = 0.2  # seconds a second by which a lag may change
_BUSY = 0.7  # of its time a job takes for batches where it cannot keep up
_SLOW_SECONDS = 60  # a batch that takes longer is told
_UNUSUAL = 10  # a silence so many times as long as the usual one is told
_MANY = 0.01  # of the last records
_OF_LOST = {
    "late": "came late: they are in the table late, and rules did not see them. "
    "delay is too short, or one source is slower than the others.",
    "bad_records": "could not be read: they are in the table quarantine, each with its reason, and rules did "
    "not see them.",
}
_MOST = 10_000  # characters of what is wrong in rules


def troubles(spec: JobSpec | None, history: History, state: Running | None, now: datetime) -> list[str]:
    """What is wrong, the gravest first; empty where all is well.

    Args:
        spec: the job; None if it is not known.
        history: of its batches.
        state: of its checkpoint; None if that is not known.
        now: the time.
    """
    found, last = list[str](), history.last
    if state is not None and state.process is None and not (last is not None and last["finished"]):
        found.append(_stopped(last, state, now))
    found += [told for _, told in of_stream(spec, history, state, now)]
    if last is not None and not last["finished"]:
        lag = None if state is None or state.process is None else lag_of(history, now)
        found += [] if lag is None else [lag[1]]
        found += _idle(last["idle_sources"], last["idle_names"] or ())
        found += _unheard(last["unheard_sources"] or (), is_ahead=_is_ahead(history.newest, now))
    if state is not None:
        found += _files(state)
        found += _slow(state, now)
    if last is not None:
        found += _lost(history)
        found += _absent(history, last)
        if last["over_bound"] is not None:
            found.append(f"latency_bound cannot be kept: {one_line(last['over_bound'])}.")
    return found


def of_stream(
    spec: JobSpec | None, history: History, state: Running | None, now: datetime
) -> Iterator[tuple[str, str]]:
    """What a look at the clock tells of a stream that has not ended: pairs of a kind and a sentence.

    It `stands`, it is `silent`, or its newest event is `ahead` of now.
    """
    last = history.last
    if last is None:
        since = None if state is None or state.batch is not None else state.since
        if since is not None and (now - since).total_seconds() > patience(spec):
            runs = f"the job runs for {age(since, now)}, and has done no batch"
            yield "silent", f"Nothing has come yet: {runs}."
        return
    if last["finished"]:
        return
    if state is None or state.process is not None:
        yield from _standing(history, last, now)
        yield from _silent(spec, history, last, now, is_under_way=state is None or state.batch is not None)
    if (newest := history.newest) is not None and _is_ahead(newest, now):
        told = f"The newest event is of {shown_time(newest)}, {age(now, newest)} ahead of now."
        do = "Once the frontier follows it, events of now are late: mend the clock of what sends it."
        yield "ahead", f"{told} {do}"


def _stopped(last: dict[str, Any] | None, state: Running, now: datetime) -> str:
    if last is None:
        return f"The job has done no batch, and {state.absent}."
    at = last["written_at"]
    written = f"Its last batch was written {age(at, now)} ago, at {shown_time(at)}"
    return f"The job {state.absent}. {written}; the next start goes on from there."


def _standing(history: History, last: dict[str, Any], now: datetime) -> Iterator[tuple[str, str]]:
    if not last["pending"] or history.stands is None:
        return
    frontier, since = history.stands
    if (now - since).total_seconds() >= STANDS_AFTER_SECONDS:
        waiting = counted(last["pending"], "event")
        stands = f"The frontier stands at {shown_time(frontier)} since {shown_time(since)}"
        yield "stands", f"{stands}, with {waiting} waiting for it. {_what_moves_it(last['slowest_source'])}"


def _silent(
    spec: JobSpec | None, history: History, last: dict[str, Any], now: datetime, *, is_under_way: bool
) -> Iterator[tuple[str, str]]:
    """Where nothing comes, batches end or go on by a clock alone, and nothing else need look wrong."""
    by_clock = not last["records"] and last["batch_id"] > 0  # Spark's first batch may have none
    if spec is not None:
        by_clock = spec.events.clock is not None
    if is_under_way and not by_clock:
        return
    usual, at, when = 0.0, pc.min(history.batches["written_at"]).as_py(), "yet"
    if history.came is not None:
        first, at, number = history.came
        usual = _UNUSUAL * (at - first).total_seconds() / max(1, number - 1)
        when = f"since {shown_time(at)}, for {age(at, now)}"
    if (now - at).total_seconds() > max(patience(spec), usual):
        yield "silent", f"Nothing has come from any source {when}{_what_waits(last, by_clock)}"


def _what_waits(last: dict[str, Any], by_clock: bool) -> str:
    if by_clock:
        return ": the clock alone moves the frontier."
    if last["pending"] or not last["open"]:  # of pending events is told that the frontier stands
        return "."
    waits = f"{counted(last['open'], 'selection')} may wait for the frontier"
    return f", and {waits}. {_what_moves_it(last['slowest_source'])}"


def patience(spec: JobSpec | None) -> float:
    """The shortest silence of a job that is told, in seconds: 30, or two of its triggers."""
    if spec is None:
        return STANDS_AFTER_SECONDS
    every = math.inf if spec.trigger_us == "available_now" else spec.trigger_us / 1e6
    return max(STANDS_AFTER_SECONDS, 2 * every)


def lag_of(history: History, now: datetime) -> tuple[str, str] | None:
    """How a lag of more than a minute has changed lately; None if it has not, or there is none.

    Returns:
        A kind (the job falls behind, or its input does, or the job catches up), and a sentence about it.
    """
    rows = history.batches.select(["records", "written_at", "max_event_time", "seconds", "batch_seconds"])
    rows = rows.filter(pc.greater(rows["records"], 0))
    newest = pc.fill_null_forward(pc.cumulative_max(rows["max_event_time"].cast(pa.int64()), skip_nulls=True))
    is_known = newest.is_valid()  # what came until then could not be read
    rows, newest = rows.filter(is_known), newest.filter(is_known).to_numpy()
    at = rows["written_at"].cast(pa.int64()).to_numpy()
    if not len(at) or now.timestamp() * 1e6 - at[-1] > _LATELY_US:
        return None
    first = min(max(0, len(at) - _FEW), int((at >= at[-1] - _LATELY_US).argmax()))
    lags, lasted = (at - newest) / 1e6, (at[-1] - at[first]) / 1e6
    if lags[-1] <= CLOSE_SECONDS or lasted < _LEAST_SECONDS or newest[first] == newest[-1]:
        return None
    took = pc.coalesce(rows["batch_seconds"], rows["seconds"]).to_numpy()[first + 1 :].sum()
    is_busy, grown = took >= _BUSY * rows["seconds"].to_numpy()[first + 1 :].sum(), lags[-1] - lags[first]
    told = f"the newest event is {shown_length(lags[-1])} behind the clock"
    if grown < -_STEADY * lasted:  # whose batches leave time has read what there was, however old it is
        left = f"At this speed it has caught up in about {shown_length(lags[-1] * lasted / -grown)}."
        return ("catches up", f"The job is behind: {told}. {left}") if is_busy else None
    if grown <= _STEADY * lasted:
        return None
    told += f", {shown_length(grown)} more than {shown_length(lasted)} before"
    if is_busy:
        return "falls behind", f"The job falls behind: {told}. It is too slow for its input."
    return "input", f"The input falls behind: {told}, and the job waits for it. What sends it is slow."


def _unheard(sources: Sequence[str], *, is_ahead: bool) -> Iterator[str]:
    if sources:
        others = " and perhaps others" if len(sources) == MOST_NAMED else ""
        unless = ", unless idle_after leaves them out"
        if is_ahead:
            unless = "; idle_after would leave out all others too, for the newest event is ahead of now"
        yield (
            f"Never heard of, though expected: {', '.join(map(one_line, sources))}{others}. "
            f"The frontier waits for what they send{unless}. Look for a slip in their names first."
        )


def _what_moves_it(slowest_source: str | None) -> str:
    mover = "a later event"
    if slowest_source is not None:
        mover += f" of the source {one_line(slowest_source)}"
    return f"Only {mover} moves it, or a clock in events."


def _is_ahead(newest: datetime | None, now: datetime) -> bool:
    return newest is not None and (newest - now).total_seconds() > AHEAD_SECONDS


def _files(state: Running) -> Iterator[str]:
    if state.note is not None and state.note.rules:
        why = one_line(" ".join(state.note.rules.splitlines()), _MOST)
        yield f"The rules of the files do not run, since {state.note.at}: {why}"
    if state.note is not None and state.note.keys:
        yield keys_told(state.note.keys)


def _slow(state: Running, now: datetime) -> Iterator[str]:
    if state.batch is None or state.began is None:
        return
    if state.process is None or state.since is None:
        yield f"Batch {state.batch} was interrupted: the next start does it again."
        return
    since = max(state.began, state.since)  # an earlier run may have begun it
    if (now - since).total_seconds() > _SLOW_SECONDS:
        yield f"Batch {state.batch} is under way for {age(since, now)}."


def _idle(number: int, names: Sequence[str]) -> Iterator[str]:
    if number:
        told = f": {', '.join(map(one_line, names))}" if names else ""
        others = " and others" if names and number > len(names) else ""
        yield (
            f"{counted(number, 'source')} not waited for, too far behind the fastest one{told}{others}. "
            "What is still sent there may be late."
        )


def _absent(history: History, last: dict[str, Any]) -> Iterator[str]:
    names = sorted(history.absent or ())
    if names and (history.sums["records"] >= ENOUGH_RECORDS or last["finished"]):
        yield null_in_every_record(", ".join(names))


def _lost(history: History) -> Iterator[str]:
    """Of the last records, many of which came late or could not be read."""
    last: dict[str, Any] = {
        name: pc.sum(history.lately()[name]).as_py() for name in ("late", "bad_records", "records", "seconds")
    }
    of_all = f"of the last {counted(last['records'], 'record')} ({shown_length(last['seconds'])})"
    for name, told in _OF_LOST.items():
        if last[name] > _MANY * last["records"]:
            yield f"{last[name]:,} {of_all} {told}"

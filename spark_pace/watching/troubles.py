"""What stands still in a job, or needs somebody's eye, and why: sentences for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.order import MOST_NAMED
from spark_pace.errors import counted, one_line
from spark_pace.io.metrics import ENOUGH_RECORDS, null_in_every_record
from spark_pace.job_file import JobSpec
from spark_pace.job_file.rules_on_disk import keys_told
from spark_pace.spark.running import Running
from spark_pace.watching.figures import LATELY_SECONDS, MOST_SEEN, Reached, lag_of, newest_event
from spark_pace.watching.history import History
from spark_pace.watching.seen import Seen
from spark_pace.watching.subject import Subject
from spark_pace.watching.words import age, shown_length, shown_time

STANDS_AFTER_SECONDS = 30.0
AHEAD_SECONDS = 60  # clocks of machines differ by less
_SLOW_SECONDS = 60  # a batch that takes longer is told
_UNUSUAL = 10  # a silence so many times as long as the usual one is told
_MANY = 0.01  # of the last records
_OF_LAG = ["written_at", "max_event_time", "seconds", "batch_seconds"]
_MOST = 10_000  # characters of what is wrong in rules


def troubles(subject: Subject, seen: Seen, state: Running | None, now: datetime) -> list[str]:
    """What is wrong, the gravest first; empty where all is well.

    Args:
        subject: the job.
        seen: its tables.
        state: of its checkpoint; None if that is not known.
        now: the time.
    """
    found = list[str]()
    if seen.last is None:
        found += _without_batch(subject, state, now)
    elif not seen.last["finished"]:
        found += _stopped(seen, state, now)
        found += _standing(seen, state, now)
        found += _silent(subject, seen, state, now)
        found += _behind(seen, state, now)
        found += _idle(seen.last["idle_sources"], seen.last["idle_names"] or ())
        found += _unheard(seen.last["unheard_sources"] or (), ahead(newest_event(seen), now) is not None)
    if state is not None:
        found += _files(state)
        found += _slow(state, now)
    if seen.last is not None:
        found += _lost(seen.history)
        found += _absent(seen)
        told = None if seen.last["finished"] else ahead(newest_event(seen), now)
        found += [] if told is None else [told]
        if seen.last["over_bound"] is not None:
            found.append(f"latency_bound cannot be kept: {one_line(seen.last['over_bound'])}.")
    return found


def _without_batch(subject: Subject, state: Running | None, now: datetime) -> Iterator[str]:
    if state is None:
        return
    if state.process is None or state.since is None:
        yield f"The job has done no batch, and {state.absent}."
    elif state.batch is None and (now - state.since).total_seconds() > patience(subject.spec):
        yield f"Nothing has come yet: the job runs for {age(state.since, now)}, and has done no batch."


def _stopped(seen: Seen, state: Running | None, now: datetime) -> Iterator[str]:
    if state is not None and state.process is None:
        assert seen.last is not None
        at = seen.last["written_at"]
        yield (
            f"The job {state.absent}. Its last batch was written {age(at, now)} ago, at "
            f"{shown_time(at)}; the next start goes on from there."
        )


def _standing(seen: Seen, state: Running | None, now: datetime) -> Iterator[str]:
    last, stands = seen.last, seen.history.stands
    runs = state is None or state.process is not None
    if last is None or not runs or not last["pending"] or stands is None:
        return
    frontier, since = map(time_of, stands)
    if (now - since).total_seconds() < STANDS_AFTER_SECONDS:
        return
    yield (
        f"The frontier stands at {shown_time(frontier)} since "
        f"{shown_time(since)}, with {counted(last['pending'], 'event')} waiting for it. "
        f"{what_moves_it(last['slowest_source'])}"
    )


def _silent(subject: Subject, seen: Seen, state: Running | None, now: datetime) -> Iterator[str]:
    """Where nothing comes, batches end or go on by a clock alone, and nothing else need look wrong."""
    last, came = seen.last, seen.history.came
    runs = state is None or state.process is not None
    if last is None or not runs:
        return
    by_clock = not last["records"] and last["batch_id"] > 0  # Spark's first batch may have none
    if subject.spec is not None:
        by_clock = subject.spec.events.clock is not None
    if not by_clock and (state is None or state.batch is not None):
        return  # a batch may be under way
    usual, at, when = 0.0, pc.min(seen.history.batches["written_at"]).as_py(), "yet"
    if came is not None:
        usual, at = unusual_seconds(came[0] / 1e6, came[1] / 1e6, came[2]), time_of(came[1])
        when = f"since {shown_time(at)}, for {age(at, now)}"
    if (now - at).total_seconds() > max(patience(subject.spec), usual):
        yield f"Nothing has come from any source {when}{_what_waits(last, by_clock)}"


def _what_waits(last: dict[str, Any], by_clock: bool) -> str:
    if by_clock:
        return ": the clock alone moves the frontier."
    if last["pending"] or not last["open"]:  # of pending events is told that the frontier stands
        return "."
    waits = f"{counted(last['open'], 'selection')} may wait for the frontier"
    return f", and {waits}. {what_moves_it(last['slowest_source'])}"


def patience(spec: JobSpec | None) -> float:
    """The shortest silence of a job that is told, in seconds: 30, or two of its triggers."""
    if spec is None:
        return STANDS_AFTER_SECONDS
    every = math.inf if spec.trigger_us == "available_now" else spec.trigger_us / 1e6
    return max(STANDS_AFTER_SECONDS, 2 * every)


def unusual_seconds(first: float, last: float, batches: int) -> float:
    """How long a silence is unusual: ten times what lay between two batches with records on average.

    Args:
        first: when the first of them was written, in seconds.
        last: when the last of them was.
        batches: how many there were.
    """
    return _UNUSUAL * (last - first) / max(1, batches - 1)


def _behind(seen: Seen, state: Running | None, now: datetime) -> Iterator[str]:
    if state is None or state.process is None:
        return
    rows = seen.history.batches
    rows = rows.filter(pc.greater(rows["records"], 0))
    newest, reached = float("-inf"), list[Reached]()
    for row in rows.select(_OF_LAG).slice(max(0, rows.num_rows - MOST_SEEN)).to_pylist():
        if row["max_event_time"] is not None:
            newest = max(newest, row["max_event_time"].timestamp())
        if newest == float("-inf"):  # what came until then could not be read
            continue
        took = row["seconds"] if row["batch_seconds"] is None else row["batch_seconds"]
        reached.append(Reached(row["written_at"].timestamp(), newest, row["seconds"], took))
    is_of_now = reached and now.timestamp() - reached[-1].at <= LATELY_SECONDS
    lag = lag_of(reached) if is_of_now else None
    if lag is not None:
        yield lag.told


def _unheard(sources: Sequence[str], is_ahead: bool) -> Iterator[str]:
    if sources:
        others = " and perhaps others" if len(sources) == MOST_NAMED else ""
        unless = ", unless idle_after leaves them out"
        if is_ahead:
            unless = "; idle_after would leave out all others too, for the newest event is ahead of now"
        yield (
            f"Never heard of, though expected: {', '.join(map(one_line, sources))}{others}. "
            f"The frontier waits for what they send{unless}. Look for a slip in their names first."
        )


def what_moves_it(slowest_source: str | None) -> str:
    """A sentence about what would move a frontier that stands."""
    mover = "a later event"
    if slowest_source is not None:
        mover += f" of the source {one_line(slowest_source)}"
    return f"Only {mover} moves it, or a clock in events."


def ahead(newest: datetime | None, now: datetime) -> str | None:
    """A sentence about an event whose time is still to come; None if the newest one is of the past."""
    if newest is None or (newest - now).total_seconds() <= AHEAD_SECONDS:
        return None
    return (
        f"The newest event is of {shown_time(newest)}, {age(now, newest)} ahead of now. Once the frontier "
        "follows it, events of now are late: mend the clock of what sends it."
    )


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


def _absent(seen: Seen) -> Iterator[str]:
    names, records = sorted(seen.history.absent or ()), seen.history.sums()["records"]
    if names and (records >= ENOUGH_RECORDS or (seen.last is not None and seen.last["finished"])):
        yield null_in_every_record(", ".join(names))


def _lost(history: History) -> Iterator[str]:
    """Of the last records, many of which came late or could not be read."""
    last: dict[str, Any] = {
        name: pc.sum(history.lately()[name]).as_py() for name in ("late", "bad_records", "records", "seconds")
    }
    of_all = f"of the last {counted(last['records'], 'record')} ({shown_length(last['seconds'])})"
    if last["late"] > _MANY * last["records"]:
        yield (
            f"{last['late']:,} {of_all} came late: they are in the table late, and rules did not see them. "
            "delay is too short, or one source is slower than the others."
        )
    if last["bad_records"] > _MANY * last["records"]:
        yield (
            f"{last['bad_records']:,} {of_all} could not be read: they are in the table quarantine, each "
            "with its reason, and rules did not see them."
        )

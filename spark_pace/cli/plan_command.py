"""`spark-pace plan`: how many task slots keep queues of selections short, also while one slot is lost.

In the model each instance is a queue of selections of its own (M/M/1): arrivals and completions are Poisson
processes, and selections are dealt round robin. It is pessimistic: real arrivals and times vary less.

Sources: Trischler 2013, section 6 (tables 6.1 to 6.4).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from spark_pace.errors import ConfigError, counted
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.query import Tables
from spark_pace.job_file import JobSpec, read_job
from spark_pace.watching.subject import tables_of

_COLUMNS = ("seconds", "selections", "operator_seconds", "batch_seconds")  # an older release lacks some
_MEASURED = """
SELECT count(*), sum(CAST(seconds AS DOUBLE)), sum(CAST(selections AS DOUBLE)),
  sum(CAST(operator_seconds AS DOUBLE)), median(CAST(batch_seconds AS DOUBLE))
FROM (SELECT {} FROM metrics) WHERE selections IS NOT NULL AND operator_seconds IS NOT NULL
"""
_GIVE = "Run the job first, or give both --rate and --seconds"
_MOST_SLOTS = 1_000_000
_slots = partial(counted, noun="slot")
_CAUTION = (
    "The model (a queue for each slot, M/M/1) presumes Poisson arrivals and is pessimistic: a real stream "
    "that varies less needs fewer slots. It knows the operators only, not what reading and splitting take."
)


@dataclass(frozen=True)
class Options:
    """The options of the command. An option that is None was not given: it is measured, or the job says it.

    Attributes:
        queue: the most selections that a slot may have at a time, the one that it works on included.
        probability: how likely it must be that a slot has no more.
        rate: how many selections come in a second.
        seconds: how many seconds an operator takes for one selection.
        slots: how many tasks run at once.
    """

    queue: int
    probability: float
    rate: float | None
    seconds: float | None
    slots: int | None


@dataclass(frozen=True)
class Measured:
    """The measurements of a run, from the batches of the table `metrics` that have all these numbers."""

    batches: int
    rate: float  # selections a second
    seconds: float  # the time of an operator for one selection
    took: float | None  # seconds of a batch, the median; None: an older release wrote all of them


def plan_command(job: Path, options: Options) -> None:
    """Do what `spark_pace.cli.main.plan` says."""
    spec = read_job(job)
    measured = None if options.rate and options.seconds else measure(tables_of(spec))
    for line in lines(spec, options, measured):
        print(line)


def measure(out: str | AnyPath) -> Measured:
    """Read the load that a job has measured, from the tables that it has written to `out`.

    Raises:
        ConfigError: the tables do not have these numbers.
    """
    try:
        tables = Tables(out, ["metrics"])
    except ConfigError as error:
        must, got = "must have the table metrics of a job that has run", "none"
        raise ConfigError.of(str(out), must, got, f"{_GIVE}.") from error
    must = "must have batches in which operators worked on selections"
    read = tables.query(_MEASURED.format(tables.columns("metrics", _COLUMNS))).read_all()
    batches, seconds, selections, busy, took = (column[0].as_py() for column in read.columns)
    if not (seconds and selections and busy):
        got = f"{counted(batches, 'batch')} with {counted(int(selections or 0), 'selection')}"
        raise ConfigError.of(f"{out}/metrics", must, got, f"{_GIVE}.")
    return Measured(batches, selections / seconds, busy / selections, took)


def lines(spec: JobSpec, options: Options, measured: Measured | None) -> Iterator[str]:
    """The lines that the command prints.

    Args:
        spec: the job.
        options: the options of the command.
        measured: what was measured; it may be None only if the options have both the rate and the seconds.
    """
    load = _load(options, measured)
    guarantee = Guarantee(options.queue, options.probability)
    spent = 1 / load.completions
    yield f"{spec.name}: {load.arrivals:,.4g} selections a second, {spent:,.4g} s of an operator for each"
    if measured is not None:
        batches = counted(measured.batches, "batch")
        yield f"  measured over {batches} in {spec.sink_path}/metrics{_given(options)}"
        if options.rate is None and spec.trigger_us == "available_now":
            yield "  what was there was read at once: --rate says how fast selections come in truth"
    queue = counted(options.queue, "selection")
    yield f"at most {queue} in a slot, with probability {options.probability:g}:"
    fewest, surviving = fewest_instances(load, guarantee), fewest_surviving_instances(load, guarantee)
    yield f"  {_slots(fewest)} needed: {_state(load, guarantee, fewest)}"
    yield f"  {_slots(surviving)} needed to keep it while one is lost: {_state(load, guarantee, surviving)}"
    slots = options.slots or _slots_here(spec)
    if slots is None:
        yield "the job's slots are those of its cluster: --slots says how many there are"
    else:
        survives = "yes" if survives_loss(load, guarantee, slots) else "no"
        yield f"with {_slots(slots)}: {_state(load, guarantee, slots)}; survives one lost slot: {survives}"
    yield _pace(spec.trigger_us, load, slots, measured if options.rate is options.seconds is None else None)
    yield _CAUTION


def _load(options: Options, measured: Measured | None) -> Load:
    rate, seconds = options.rate, options.seconds
    if measured is not None:
        rate, seconds = rate or measured.rate, seconds or measured.seconds
    assert rate is not None and seconds is not None
    busy = rate * seconds  # this many slots would be busy all the time
    must = f"must keep fewer than {_MOST_SLOTS:,} slots busy"
    if not 0 < busy < _MOST_SLOTS or 1 / seconds == float("inf"):
        raise ConfigError.of("--rate and --seconds", must, f"{busy:,.4g}", "Correct one of them.")
    return Load(rate, 1 / seconds)


def _given(options: Options) -> str:
    names = [name for name, value in vars(options).items() if name in ("rate", "seconds") and value]
    return f", with --{names[0]} as given" if names else ""


def _state(load: Load, guarantee: Guarantee, slots: int) -> str:
    utilization = load.utilization(slots)
    if utilization >= 1:
        return f"utilization {utilization:.4f}, queues grow without end"
    probability = short_queue_probability(utilization, guarantee.queue)
    return f"utilization {utilization:.4f}, probability {probability:.4f}"


def _slots_here(spec: JobSpec) -> int | None:
    """The number of tasks that run at once if the job starts on this machine; None if a cluster decides."""
    master = spec.spark.get("spark.master", "local[*]")
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    return os.cpu_count() if found[1] == "*" else int(found[1] or 1)


def _pace(
    trigger_us: int | Literal["available_now"], load: Load, slots: int | None, measured: Measured | None
) -> str:
    """The line that says if each batch is done before the next one is due."""
    if trigger_us == "available_now" or not trigger_us:
        return "batches: each begins when the one before is done, so there is no trigger to stay below"
    period = trigger_us / 1_000_000
    text = f"batches: due every {period:g} s"
    if slots is not None:
        text += f", of which operators take {period * load.utilization(slots):,.4g} s on {_slots(slots)}"
    below = slots is None or load.utilization(slots) < 1
    if measured is not None and measured.took is not None:
        text += f"; those measured took {measured.took:,.4g} s (median)"
        below = below and measured.took <= period
    elif slots is None:
        return text
    return f"{text}; they stay below the trigger: {'yes' if below else 'no'}"


_FEWEST_QUEUED = 2  # a bound of 1 leaves no room for a selection of the lost instance


@dataclass(frozen=True)
class Load:
    """The rate at which selections arrive, and at which one instance completes them.

    Attributes:
        arrivals: selections that arrive in a time unit, for all instances.      # λ
        completions: selections that one instance can complete in a time unit.   # ν
    """

    arrivals: float
    completions: float

    def utilization(self, instances: int) -> float:
        """The share of its time that each of these instances is busy; queues stay finite below 1."""  # ρ
        return self.arrivals / instances / self.completions


@dataclass(frozen=True)
class Guarantee:
    """A promise: an instance has at most `queue` selections, its present one included, with `probability`."""

    queue: int  # n
    probability: float  # p


def short_queue_probability(utilization: float, queue: int) -> float:
    """The probability that at most `queue` selections are in an instance: P(Q ≤ n) = 1 − ρ^(n + 1)."""
    return 1 - utilization ** (queue + 1) if utilization < 1 else 0.0


def fewest_instances(load: Load, guarantee: Guarantee) -> int:
    """The least number of instances that keeps the guarantee while none is lost."""  # c0
    return _least(1, lambda instances: _keeps(load, instances, guarantee.queue, guarantee.probability))


def queue_before_loss(queue: int, instances: int) -> int:
    """The longest queue with room for a share of a lost one: n − ⌈n / (c − 1)⌉, for two instances or more."""
    return queue + -queue // (instances - 1)  # n_new


def survives_loss(load: Load, guarantee: Guarantee, instances: int) -> bool:
    """True if this many instances keep the guarantee while one is lost.

    The others take all arrivals and the selections of the lost instance, which had as many as the guarantee
    allows. Only one loss at a time counts. False for a guarantee of one selection, which leaves no room.
    """
    if instances < 2 or guarantee.queue < _FEWEST_QUEUED:
        return False
    left = queue_before_loss(guarantee.queue, instances)
    return _keeps(load, instances - 1, left, guarantee.probability)


def fewest_surviving_instances(load: Load, guarantee: Guarantee) -> int:
    """The least number of instances that keeps the guarantee while one is lost.

    Raises:
        ValueError: the guarantee allows one selection only; the formula does not apply to that.
    """
    if guarantee.queue < _FEWEST_QUEUED:
        must = f"must be {_FEWEST_QUEUED} or more, for the selections of a lost instance need room"
        raise ValueError(f"queue — {must}; got {guarantee.queue}. Allow longer queues.")
    return _least(2, lambda instances: survives_loss(load, guarantee, instances))


def _keeps(load: Load, instances: int, queue: int, probability: float) -> bool:
    return short_queue_probability(load.utilization(instances), queue) >= probability


def _least(first: int, enough: Callable[[int], bool]) -> int:
    """The least number from `first` on that is enough; if one is, so is every greater one."""
    last = first
    while not enough(last):
        first, last = last + 1, 2 * last
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if enough(middle) else (middle + 1, last)
    return last

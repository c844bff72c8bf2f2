"""A series of kills: the job is started, killed and started again until its input is done."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.long.chaos.moments import BEFORE_THE_FIRST_BATCH, IN_A_BATCH, IN_THE_END, OF_FILES
from tests.long.chaos.processes import RunningJob, sessions

RANDOM = "random"
AWAY = "a minute away"  # of the broker: it is started again only then
OUTSIDE = (RANDOM, AWAY)  # kills from outside the driver
AWAY_S = 60
MOST_IN_VAIN = 5  # starts that neither write a batch nor are killed
_GREETING = (
    "WARNING: Using incubator modules",
    "Setting default log level",
    "To adjust logging level",
    "Setting Spark log level",
)
WHEN_NEEDED = ("operator", "fold")  # started with the first call of a function, perhaps after many batches
LIVES_ON = ("daemon", "worker", "operator", "fold", "broker")  # the job is expected to live on


@dataclass(frozen=True)
class Kill:
    """Whom (`group`, `all`, `broker`, or one of `KINDS`), and when."""

    whom: str
    moment: str


@dataclass
class Survived:
    """A kill that happened.

    Attributes:
        kill: which.
        batch: batches written before it, over the whole series.
        seconds: until the next batch was written, or the job was done.
    """

    kill: Kill
    batch: int
    seconds: float


@dataclass
class Outcome:
    """What a series was.

    Attributes:
        survived: the kills that happened.
        unspent: kills for which the stream was too short.
        starts: of the job.
        complaints: whatever a job said or left behind that it must not.
        by_itself: starts that ended with a line that the job may say, though nobody had killed them.
    """

    survived: list[Survived] = field(default_factory=list)
    unspent: list[Kill] = field(default_factory=list)
    starts: int = 0
    complaints: list[str] = field(default_factory=list)
    by_itself: list[str] = field(default_factory=list)


def drawn_kills(
    count: int, seed: int, others: Sequence[Kill] = (), without: Sequence[str] = ()
) -> list[Kill]:
    """Draw kills: every chosen moment where `count` allows it, the rest by chance.

    The order is by chance too, except that those of the first start come first and those of the end last.

    Args:
        count: how many.
        seed: of the chance.
        others: more of them, before those of chance.
        without: moments that the job does not have.
    """
    chance = random.Random(seed)
    first = [
        Kill(whom, moment)
        for whom, moment in zip(("driver", "group", "driver"), BEFORE_THE_FIRST_BATCH, strict=True)
    ]
    ends = zip(("driver", "group", "jvm"), IN_THE_END, strict=True)
    last = [Kill(whom, moment) for whom, moment in ends if moment not in without]
    in_a_batch = [moment for moment in IN_A_BATCH if moment not in without]
    middle = [*others, *(Kill("all" if moment in OF_FILES else "driver", moment) for moment in in_a_batch)]
    middle += [Kill(whom, RANDOM) for whom in LIVES_ON if whom != "fold"]
    middle.append(Kill("broker", AWAY))
    while len(middle) < count - len(first) - len(last):
        whom = chance.choice(
            ("driver", "driver", "group", "group", "jvm", "worker", "worker", "operator", "broker")
        )
        chosen = whom not in LIVES_ON and chance.random() < 0.5
        middle.append(Kill(whom, chance.choice((*in_a_batch, "query unstarted")) if chosen else RANDOM))
    chance.shuffle(middle)
    return [*first, *middle[: max(0, count - len(first) - len(last))], *last]


def kills_by_chance(
    chance: random.Random, count: int, whom: Sequence[str], moments: Sequence[str]
) -> list[Kill]:
    """Draw kills: half of them at any time, the others at one of the moments."""
    drawn = []
    for _ in range(count):
        if chance.random() < 0.5:
            drawn.append(Kill(chance.choice(whom), RANDOM))
        else:
            drawn.append(Kill(chance.choice(("driver", "group", "all")), chance.choice(moments)))
    return drawn


@dataclass
class Series:
    """Runs a job through its kills.

    Attributes:
        job: the job file.
        logs: a new folder for what the starts of the job say on standard error.
        seed: of the chance.
        kill_broker: kills the broker and starts it again after so many seconds.
        say: hears a line for each kill.
        driver: the module that runs the job.
        told: how lines begin that the job may say at any time, and with which it may end.
        behind: called behind each batch of a job that is not being killed; True if no kill is left.
    """

    job: Path
    logs: Path
    seed: int
    kill_broker: Callable[[int], None] | None = None
    say: Callable[[str], None] = print
    driver: str = "tests.long.chaos.driver"
    told: tuple[str, ...] = ()
    behind: Callable[[RunningJob, bool], None] = lambda job, is_over: None
    outcome: Outcome = field(default_factory=Outcome)
    _batches: int = 0
    _waiting: list[tuple[Kill, float]] = field(default_factory=list)
    _dying: bool = False

    def run(self, kills: Sequence[Kill]) -> Outcome:
        """Kill the job at all these moments and let it end."""
        self._chance = random.Random(self.seed)
        self.outcome.unspent = list(kills)
        self.logs.mkdir()
        jobs: list[RunningJob] = []
        in_vain = 0
        with sessions(self.driver) as start:
            while not jobs or self._goes_on(jobs[-1]):
                here = _of_one_start(self.outcome.unspent)
                errors = self.logs / f"{len(jobs):03d}.err"
                jobs.append(start(self.job, errors, *self._armed(here)))
                before = self._batches, len(self.outcome.unspent)
                self._through(jobs[-1], here)
                in_vain = 0 if (self._batches, len(self.outcome.unspent)) != before else in_vain + 1
                if in_vain == MOST_IN_VAIN:
                    self.outcome.complaints.append(f"{in_vain} starts without a batch: {jobs[-1].said()}")
                    break
            self.outcome.complaints += [f"left behind: {name}" for job in jobs for name in job.left_behind()]
        self.outcome.starts = len(jobs)
        return self.outcome

    def _armed(self, here: list[Kill]) -> tuple[str, ...]:
        """What the driver is told of its own end."""
        if not here or here[-1].moment in OUTSIDE:
            return ()
        at_once = here[-1].moment in (*BEFORE_THE_FIRST_BATCH, *OF_FILES, *IN_THE_END)
        return (
            here[-1].whom,
            here[-1].moment,
            str(0 if at_once else 2 * (len(here) - 1) + self._chance.randrange(2)),
        )

    def _through(self, job: RunningJob, here: list[Kill]) -> None:
        """One start of the job, until it ends."""
        self._dying = False
        armed = here[-1] if here and here[-1].moment not in OUTSIDE else None
        for kill in here:
            if kill.moment in OUTSIDE:
                first_batch = kill.whom in LIVES_ON or self._chance.random() < 0.8
                if first_batch and not self._next_batch(job, armed):
                    return
                while kill.whom in WHEN_NEEDED and not job.members()[kill.whom]:
                    if not self._next_batch(job, armed):
                        return
                threading.Event().wait(self._chance.random() * (1 if first_batch else 8))
                self._strike(job, kill)
        while self._next_batch(job, armed):
            pass

    def _next_batch(self, job: RunningJob, armed: Kill | None) -> bool:
        """Wait for a batch to be written; False if the job ends first.

        Args:
            job: the job.
            armed: the kill of which its driver was told. It may come before those from outside are done.
        """
        while (fact := job.next_fact()) is not None:
            if "killed" in fact:
                assert armed is not None
                self._struck(armed)
                continue
            if not self._dying:  # a batch that is written while the job dies is no sign of life
                self._recovered()
            if "batch" in fact:
                self._batches += 1
                if not self._dying:
                    self.behind(job, not self.outcome.unspent)
                return True
        return False

    def _strike(self, job: RunningJob, kill: Kill) -> None:
        """A kill from outside."""
        if kill.whom == "broker":
            assert self.kill_broker is not None
            self._struck(kill)
            self.kill_broker(AWAY_S if kill.moment == AWAY else 0)
            return
        members = job.members()
        targets = [*members["driver"], *members["jvm"]] if kill.whom == "group" else members[kill.whom]
        if targets and kill.whom != "group":
            targets = [self._chance.choice(targets)]
        hit = False
        for target in targets:
            with suppress(ProcessLookupError):
                os.kill(target.pid, signal.SIGKILL)
                hit = True
        if hit:
            self._struck(kill)

    def _struck(self, kill: Kill) -> None:
        self.outcome.unspent.remove(kill)
        self._waiting.append((kill, time.monotonic()))
        self._dying |= kill.whom not in LIVES_ON

    def _recovered(self) -> None:
        for kill, since in self._waiting:
            self.outcome.survived.append(Survived(kill, self._batches, time.monotonic() - since))
            self.say(
                f"kill {len(self.outcome.survived)}: {kill.whom}, {kill.moment}; "
                f"batch {self._batches}; went on after {time.monotonic() - since:.1f} s"
            )
        self._waiting = []

    def _goes_on(self, job: RunningJob) -> bool:
        """Whether the job must be started again; notes what it must not have said."""
        code, said = job.code(), without_greeting(job.said(), self.told)
        killed = {kill.whom for kill, _ in self._waiting}
        if code == -signal.SIGKILL and killed & {"driver", "group", "all"}:
            return True
        if code == 1 and (killed or self._batches == 0) and one_line(said):
            return True
        if code == 1 and self.told and not said:
            self.outcome.by_itself.append(job.said().strip())
            return True
        if code or said:
            self.outcome.complaints.append(f"ended with {code} after {sorted(killed)}: {said}")
        return code != 0


def without_greeting(said: str, told: tuple[str, ...] = ()) -> str:
    """What was said but for the lines with which Spark starts, and those that begin like one of `told`."""
    others = (*_GREETING, *told)
    return "\n".join(line for line in said.splitlines() if line.strip() and not line.startswith(others))


def one_line(said: str) -> bool:
    """Whether an error is one line that says what must hold, what was found and what to do."""
    return "\n" not in said and " — " in said and "; got" in said


def _of_one_start(kills: Sequence[Kill]) -> list[Kill]:
    """The kills up to the first that ends the job."""
    end = next((number for number, kill in enumerate(kills, 1) if kill.whom not in LIVES_ON), len(kills))
    return list(kills[:end])

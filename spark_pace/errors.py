"""Every error the package raises on purpose.

    SparkPaceError
    ├── RuleError      a rule file is wrong            (.problems)
    ├── ConfigError    a job file or an option is wrong (.problems)
    ├── EventError     an event cannot be read, where bad events must stop the job
    ├── OperatorError  a Python operator failed, where that must stop the job
    ├── StateError     saved state is damaged, too large, or of another plan
    └── SetupError     something outside is missing or in the way: a broker, a store, a lock, disk space
        └── UnfitError   no new start mends it: Java, a jar, a variable is missing, an option is wrong

A message reads alone: where — what must hold; got what. What to do. Here is too how messages write numbers,
times and texts of others.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import ClassVar

TRACE_VARIABLE = "SPARK_PACE_TRACEBACK"
SEE_TRACE = f"{TRACE_VARIABLE}=1 shows the whole trace."
_MOST_CHARACTERS = 1_000
_MOST_SHOWN = 10_000  # characters of a line of a message


def one_line(text: str, most: int = _MOST_CHARACTERS) -> str:
    r"""The text as one line for a message.

    It is cut after `most` characters. Characters that a terminal would act on become escapes (``\\x1b``).
    """
    shown = text if len(text) <= most else text[:most] + "…"
    if shown.isprintable():
        return shown
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in shown
    )


def counted(number: int, noun: str) -> str:
    """A number with its noun, given in the singular: ``1 batch``, ``3,000 events``."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number:,} {noun}{ending}"


def shown_time(time: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%d %H:%M:%SZ}"


def shown_length(seconds: float) -> str:
    """A length of time, to the second: ``0:01:30``, ``2 days, 3:00:00``."""
    return str(timedelta(seconds=max(0, int(seconds))))


def age(time: datetime, now: datetime) -> str:
    """How long ago a time was."""
    return shown_length((now - time).total_seconds())


def shown(error: Exception, before: str = "") -> str:
    """The text of an error for a terminal, with some text before it.

    Control characters are escaped in each line, because parts of the text may come from other people's data.
    If `TRACE_VARIABLE` is 1 in the environment, the trace with all causes comes first.
    """
    text = str(error)
    if isinstance(error, OSError):
        got = error.strerror or error
        do = "Check the path, its rights and the room on the disk."
        text = f"{error.filename or 'the system'} — must be usable; got: {got}. {do}"
    elif not isinstance(error, SparkPaceError):
        got = f"{type(error).__name__}: {one_line(text)}"
        text = f"spark-pace — must end in an error of its own; got {got}. {SEE_TRACE}"
    text = f"{before}{text}"
    if os.environ.get(TRACE_VARIABLE) == "1":
        text = "".join(traceback.format_exception(error)).expandtabs(4) + text
    return "\n".join(one_line(line, _MOST_SHOWN) for line in text.splitlines())


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file.

    `where` is ``file:line:column path`` as far as it is known.
    """

    where: str
    must: str
    got: str
    do: str

    def __str__(self) -> str:
        """The problem as one line: where — must hold; got. do."""
        return f"{self.where} — {self.must}; got {self.got}. {self.do}"


class SparkPaceError(Exception):
    """Anything this package raises on purpose.

    Attributes:
        may_pass: True if the same job may run when it is started again, though nobody has changed anything.
    """

    may_pass: ClassVar[bool] = True


class _ProblemsError(SparkPaceError):
    """Carries every problem found, one line each."""

    may_pass = False

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[_ProblemsError], tuple[tuple[Problem, ...]]]:
        """Pickle by the problems, so that a worker can hand the error back."""
        return type(self), (self.problems,)


class RuleError(_ProblemsError):
    """A rule file is wrong; `problems` lists all that is wrong in it."""


class ConfigError(_ProblemsError):
    """A job file or an option is wrong; `problems` lists all that is wrong in it."""

    @classmethod
    def of(cls, where: str, must: str, got: str, do: str) -> ConfigError:
        """The error for a single problem; see `Problem`."""
        return cls((Problem(where, must, got, do),))


class EventError(SparkPaceError):
    """An event cannot be read and the job is told to stop at bad events."""

    may_pass = False


class OperatorError(SparkPaceError):
    """A Python operator failed and the job is told to stop at that."""

    may_pass = False


class StateError(SparkPaceError):
    """Saved state is damaged, too large, or belongs to another plan."""

    may_pass = False


class SetupError(SparkPaceError):
    """Something outside the program is missing or in the way."""


class FullStoreError(SetupError):
    """A store, or HDFS, has no room for what is to be written, or a quota allows no more of it."""


class UnfitError(SetupError):
    """The machine, its environment or an option is not fit for the job, which only a person can mend."""

    may_pass = False


def exit_code(error: Exception) -> int:
    """The exit code of a command that ends in an error: 2 if its input is wrong, else 1."""
    return 2 if isinstance(error, (RuleError, ConfigError)) else 1


def may_pass(error: Exception) -> bool:
    """True if what failed may pass by itself, such as a store that is not reached; see `SparkPaceError`."""
    return not isinstance(error, SparkPaceError) or error.may_pass or isinstance(error.__cause__, OSError)

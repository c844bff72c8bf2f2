"""One clear line out of a Spark exception: a worker's error comes back as text between two stack traces."""

from __future__ import annotations

import re

from spark_pace import errors
from spark_pace.errors import EventError, OperatorError, SetupError, SparkPaceError, StateError

_OURS = re.compile(r"spark_pace\.errors\.(\w+): (.+)")
_PYTHON = re.compile(r"^\s*(\w[\w.]*(?:Error|Exception)): (.+)$", re.MULTILINE)
_CLASSES = (EventError, OperatorError, SetupError, StateError)


def as_our_error(error: Exception, failure: Exception | None = None) -> SparkPaceError:
    """The error that stopped a query.

    Args:
        error: what the query raised.
        failure: what the merger raised, if it did.
    """
    for candidate in (failure, error):
        if isinstance(candidate, SparkPaceError):
            return candidate
    texts = [str(candidate) for candidate in (failure, error) if candidate is not None]
    for text in texts:
        ours = _OURS.search(text)
        if ours:
            kind = getattr(errors, ours[1], SparkPaceError)
            return kind(ours[2].strip()) if kind in _CLASSES else SparkPaceError(ours[2].strip())
    return SparkPaceError(f"the query — must run; got {_cause(texts)}. Mend that and start the job again: it goes on where it stopped.")


def _cause(texts: list[str]) -> str:
    """The last Python error named, else the first line."""
    for text in texts:
        python = _PYTHON.findall(text)
        if python:
            return f"{python[-1][0]}: {python[-1][1].strip()}"
    return texts[0].strip().splitlines()[0] if texts[0].strip() else "no message"

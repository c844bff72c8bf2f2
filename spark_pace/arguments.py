"""Checks of the arguments of the Python API; each refuses a wrong one in one line."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_pace.errors import ConfigError, one_line

if TYPE_CHECKING:
    from spark_pace.core.plan.rule import Rule

_MOST = 1 << 62  # of a whole number, which compiled code and Arrow take
_FROM_LOAD = "Give what load_rules gave, a path, a text of several lines, a dict, or a list of one of these."


def require(name: str, value: object, kinds: type | tuple[type, ...], must: str, do: str) -> None:
    """Refuse an argument that is of none of these types.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(value, kinds):
        raise wrong(name, must, value, do)


def require_path(name: str, path: object) -> None:
    """Refuse a text that can be the path of no file.

    Raises:
        ConfigError: it is empty, or has a character that no path has.
    """
    try:
        possible = b"\0" not in os.fsencode(str(path)) and str(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ConfigError.of(name, "must be a path", one_line(repr(str(path))), "Name a file or a folder.")


def wrong(name: str, must: str, value: object, do: str) -> ConfigError:
    """Return the error for an argument of a wrong type."""
    return ConfigError.of(name, f"must be {must}", type(value).__name__, do)


def require_of_spark(name: str, value: object, kind: str, must: str, do: str) -> None:
    """Refuse what is none of this kind of `pyspark.sql`, or of Spark Connect, whose program has no JVM.

    Raises:
        ConfigError: it is.
    """
    import pyspark.sql

    if type(value).__module__.startswith("pyspark.sql.connect."):
        must = "must be of a session that runs in this program"
        got = f"a {type(value).__name__} of Spark Connect"
        do = "Build one by SparkSession.builder without remote, where SPARK_REMOTE is not set."
        raise ConfigError.of(name, must, got, do)
    require(name, value, getattr(pyspark.sql, kind), must, do)


def listed(rules: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Return rules, or their files, as a list with at least one element, each of one of these types.

    Raises:
        ConfigError: they are something else.
    """
    if isinstance(rules, kinds):
        rules = [rules]
    if not isinstance(rules, (list, tuple)):
        raise wrong("rules", "rules, or what says them", rules, _FROM_LOAD)
    if not rules:
        raise ConfigError.of(
            "rules", "must be one rule at least", f"an empty {type(rules).__name__}", _FROM_LOAD
        )
    for one in rules:
        if not isinstance(one, kinds):
            got = f"a list that holds {type(one).__name__}"
            raise ConfigError.of("rules", "must be rules, or what says them", got, _FROM_LOAD)
        if isinstance(one, str) and "\n" not in one:
            require_path("rules", one)
    return list(rules)


def whole(name: str, value: object, least: int, do: str) -> int:
    """Return an argument that is a whole number, of Python or NumPy.

    Raises:
        ConfigError: it is none, below the least, or of more than 62 bits.
    """
    number = integer(value)
    if number is None:
        raise wrong(name, "a whole number", value, do)
    if number < least:
        raise ConfigError.of(name, f"must be at least {least}", str(number), do)
    if number > _MOST:
        raise ConfigError.of(name, f"must be at most {_MOST}", "more", do)
    return number


def integer(value: Any) -> int | None:
    """Return a whole number, of Python or NumPy, as an int; None for what is none, such as True."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def of_one_stream(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return rules that were loaded if they can run together.

    Raises:
        ConfigError: they are over events of several schemas, or two have one name.
    """
    from spark_pace.core.plan.lower_rules import every_rule

    do = "Load them together, by load_rules([...])."
    schemas = {rule.schema for rule in every_rule(rules) if not rule.reads}
    if len(schemas) > 1:
        raise ConfigError.of("rules", "must be over one schema of events", f"{len(schemas)} schemas", do)
    names = [rule.name for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError.of("rules", "must have names of their own", f"{twice} twice", "Leave one out.")
    return tuple(rules)


@contextmanager
def in_python() -> Iterator[None]:
    """Let messages raised inside name arguments of Python instead of options of the command."""
    try:
        yield
    except ConfigError as error:
        problems = (replace(one, where=_argument(one.where), do=_argument(one.do)) for one in error.problems)
        raise ConfigError(tuple(problems)) from error


def _argument(text: str) -> str:
    for name in ("rule", "at", "key"):
        text = text.replace(f"--{name}", name)
    return text

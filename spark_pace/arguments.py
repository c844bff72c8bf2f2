"""What callers of the Python API give: refused in one line where it is something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_pace.errors import ConfigError

if TYPE_CHECKING:
    from spark_pace.core.plan.rule import Rule

_FROM_LOAD = "Give what load_rules gave, a path, a text of several lines, a dict, or a list of one of these."


def require(name: str, value: object, kinds: type | tuple[type, ...], must: str, do: str) -> None:
    """Refuse an argument that is of none of these types.

    Raises:
        ConfigError: it is not.
    """
    if not isinstance(value, kinds):
        raise wrong(name, must, value, do)


def wrong(name: str, must: str, value: object, do: str) -> ConfigError:
    """The error for an argument that must be something else."""
    return ConfigError.of(name, f"must be {must}", type(value).__name__, do)


def listed(rules: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Rules, or what they are read from, as a list of values of one of these types, of which there is one.

    Raises:
        ConfigError: they are none.
    """
    if isinstance(rules, kinds):
        return [rules]
    if not isinstance(rules, (list, tuple)):
        raise wrong("rules", "rules, or what says them", rules, _FROM_LOAD)
    if not rules:
        raise ConfigError.of(
            "rules", "must be one rule at least", f"an empty {type(rules).__name__}", _FROM_LOAD
        )
    other = next((one for one in rules if not isinstance(one, kinds)), None)
    if other is not None:
        got = f"a list that holds {type(other).__name__}"
        raise ConfigError.of("rules", "must be rules, or what says them", got, _FROM_LOAD)
    return list(rules)


def require_number(name: str, value: object, least: int, do: str) -> None:
    """Refuse an argument that is no whole number, or one below the least.

    Raises:
        ConfigError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(name, "a whole number", value, do)
    if value < least:
        raise ConfigError.of(name, f"must be at least {least}", str(value), do)


def of_one_stream(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules that were loaded, if they can run together.

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
    """Name arguments in messages as Python does, not as the options of the command."""
    try:
        yield
    except ConfigError as error:
        problems = (replace(one, where=_argument(one.where), do=_argument(one.do)) for one in error.problems)
        raise ConfigError(tuple(problems)) from error


def _argument(text: str) -> str:
    for name in ("rule", "at", "key"):
        text = text.replace(f"--{name}", name)
    return text

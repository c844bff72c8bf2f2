"""What is known of rules before they run, for Python and notebooks: `check` and `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spark_pace import api
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import Problem, one_line
from spark_pace.rules import explain as lines_of
from spark_pace.rules import explain_as_json

if TYPE_CHECKING:
    from spark_pace import Rules

_MOST_CHARACTERS = 10_000  # of a line, as of a command


@dataclass(frozen=True, repr=False)
class Check:
    """What is wrong with rules; `print` and a notebook show it as the command ``spark-pace check`` does.

    Attributes:
        problems: a `Problem` of `spark_pace.errors` for each thing that is wrong, with its place (`where`),
            what must hold (`must`), what was there (`got`) and what to do (`do`); empty if nothing is.

    Example:
        >>> import spark_pace
        >>> found = spark_pace.check({"events": {"schema": "time TIMESTAMP", "event_time": "time"}})
        >>> [problem.must for problem in found.problems]
        ['must have the key "rules"']
    """

    problems: tuple[Problem, ...]

    def __repr__(self) -> str:
        """A line for each problem."""
        return "\n".join(one_line(str(one), _MOST_CHARACTERS) for one in self.problems) or "no problems"

    def _repr_html_(self) -> str:
        return _as_html(repr(self))


@dataclass(frozen=True, repr=False)
class Explained:
    """What is known of rules before they run; `print` and a notebook show it as ``spark-pace explain`` does.

    Attributes:
        rules: each rule, with the format of its job's source; None where no job was given.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> spark_pace.explain(rules).as_json()[0]["cost"]["growth"]
        'their number; each that matches is a match'
    """

    rules: tuple[tuple[Rule, str | None], ...]

    def as_json(self) -> list[dict[str, Any]]:
        """The same as an object for each rule, as ``explain --json`` gives it; see docs/rules/explain.md."""
        return [explain_as_json(*one) for one in self.rules]

    def __repr__(self) -> str:
        """The lines of each rule."""
        return "\n\n".join("\n".join(lines_of(*one)) for one in self.rules)

    def _repr_html_(self) -> str:
        return _as_html(repr(self))


def check(rules: Rules) -> Check:
    """Find what is wrong with rules, or with a job file and its rules, without running them.

    Args:
        rules: as of `spark_pace.load_rules`. Several rule files are checked as rules that run together.

    Returns:
        The problems, if there are any.

    Raises:
        ConfigError: the argument is none of these.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: y > 5]}}]
        ... '''
        >>> spark_pace.check(rules)  # doctest: +ELLIPSIS
        rules:3:46 rules[0].pattern.sequence[0].a — must name an attribute ...; got "y". Use one of: time, x.
    """
    return Check(api.problems_of(rules))


def explain(rules: Rules) -> Explained:
    """Tell how rules run: what is decided where, what runs in parallel, what is carried, and what it costs.

    Args:
        rules: as of `spark_pace.replay`.

    Returns:
        What is known of each rule.

    Raises:
        RuleError: the rules are wrong.
        ConfigError: the job file is wrong, or the argument is none of these.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: high, pattern: {sequence: [a: x > 5]}}]
        ... '''
        >>> print(spark_pace.explain(rules))  # doctest: +ELLIPSIS
        rule high
          sequence     a: x > 5.0  [intake, on whole columns]
        ...
    """
    given, source_format = api.read_in(rules)
    return Explained(tuple((rule, source_format) for rule in given))


def _as_html(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'

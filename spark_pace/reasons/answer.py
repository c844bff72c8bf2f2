"""The answer of `why`, in values that JSON has, and as lines of text.

Field names are the keys of the JSON object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_pace.errors import counted, one_line
from spark_pace.reasons.answer_parts import (
    Candidate,
    ComponentTest,
    ConditionTest,
    FoldStep,
    LowerMatch,
    Match,
    Selection,
)
from spark_pace.reasons.wording import shown

ROWS_UNTOLD = "where the search for a row pattern went from here, and why it went back"
SHOWN_MATCHES = 5
SHOWN_SELECTIONS = 5


@dataclass(frozen=True)
class Why:
    """The answer: why an event is part of matches of a rule, or of none.

    Attributes:
        rule: the rule.
        key: the text of the event's key; None without `partition_by`.
        source, offset, event_time: its position and its time; no time if the record is no event.
        seq: its position in the rule's stream; None if it is not in that stream.
        not_in_stream: the reason why it is not there; None if it is.
        attributes: its attributes.
        filter: the tests of the event against the parts of the rule's filter.
        components: the tests against each component; of a fold, against each move that leaves the state
            before the event.
        passing: for each component that is not negated and whose conditions read no other events, how many
            events of the input pass them and the filter, of `of_events` that are not late.
        matches: the matches with the event; `more_matches` counts those that are not listed.
        selections: the selections that were open at the event, or the last one before; `more_selections`
            counts the others.
        candidates: the candidates that failed; `more_candidates` counts the others, together with initiators
            that were not searched.
        untold: the parts of the rule that `why` cannot explain.
        fold: the step of a fold at the event; None for other rules, and for an event not in the stream.
        made_of: for a rule over rules: the matches of lower rules that make up the event and `matches`, level
            by level down to the input.
        lower: for an event of the input and a rule over rules: the answers of its lower rules.
        upper: for such an event: the answers of the rule for the first lower matches that have it.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 1 h}]
        ... '''
        >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
        >>> answer = spark_pace.why(rules, events, rule="rise", at=1)
        >>> answer.matches[0].out_seq, [member.component for member in answer.matches[0].events]
        (0, ['a', 'b'])
        >>> [test.holds for test in answer.components]
        [False, True]
    """

    rule: str
    key: str | None
    source: str
    offset: int
    event_time: str | None
    seq: int | None
    not_in_stream: str | None
    attributes: dict[str, Any]
    filter: tuple[ConditionTest, ...] = ()
    components: tuple[ComponentTest, ...] = ()
    passing: dict[str, int] = field(default_factory=dict)
    of_events: int = 0
    matches: tuple[Match, ...] = ()
    more_matches: int = 0
    selections: tuple[Selection, ...] = ()
    more_selections: int = 0
    candidates: tuple[Candidate, ...] = ()
    more_candidates: int = 0
    untold: tuple[str, ...] = field(default=())
    fold: FoldStep | None = None
    made_of: tuple[LowerMatch, ...] = ()
    lower: tuple[Why, ...] = ()
    upper: tuple[Why, ...] = ()

    def __str__(self) -> str:
        """All of it in lines of text, as the command prints it."""
        return "\n".join(map(one_line, lines_of(self)))


def lines_of(answer: Why) -> Iterator[str]:
    """The answer as lines of text; a line that belongs to the one before it is indented further."""
    seq = "" if answer.seq is None else f", #{answer.seq} of its stream"
    key = "" if answer.key is None else f" of {answer.key}"
    at = "" if answer.event_time is None else f" at {answer.event_time}"
    yield f"rule {answer.rule}, {answer.source}:{answer.offset}{at}{seq}{key}"
    if answer.attributes:
        attributes = ", ".join(f"{name} = {shown(value)}" for name, value in answer.attributes.items())
        yield f"  {'event':<12} {attributes}"
    yield from _labelled("filter", [_test(test) for test in answer.filter])
    if answer.fold is not None and answer.fold.before is not None:
        yield f"  {'state':<12} {_step(answer.fold)}"
    yield from _labelled("can be" if answer.fold is None else "moves", list(_components(answer.components)))
    never = [name for name, count in answer.passing.items() if not count]
    yield from _labelled(
        "never", [f"{name}: true for 0 of {counted(answer.of_events, 'event')}" for name in never]
    )
    if answer.not_in_stream is not None:
        yield f"  not in the rule's stream: {answer.not_in_stream}"
        yield from _labelled("made of", [_lower(lower) for lower in answer.made_of])
    else:
        yield from _in_stream(answer)
    for other in (*answer.lower, *answer.upper):
        yield from (f"  {line}" for line in lines_of(other))


def _in_stream(answer: Why) -> Iterator[str]:
    """The lines about an event that is in the rule's stream."""
    if answer.fold is None and ROWS_UNTOLD not in answer.untold:
        yield from _labelled("selections", list(_selections(answer)))
    yield from _labelled("matches", list(_matches(answer)))
    yield from _labelled("made of", [_lower(lower) for lower in answer.made_of])
    yield from _labelled("stopped", list(_candidates(answer, "failed")))
    yield from _labelled("unfinished", list(_candidates(answer, "unfinished")))
    if answer.more_candidates:
        yield f"               and {answer.more_candidates:,} more"
    yield from _labelled("not told", list(answer.untold))


def _labelled(label: str, texts: Sequence[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f"  {'' if place else label:<12} {text}"


def _test(test: ConditionTest) -> str:
    values = ", ".join(f"{name} = {shown(value)}" for name, value in test.values.items())
    holds = "depends on other events" if test.holds is None else "holds" if test.holds else "does not hold"
    return f"{test.condition} {holds}{': ' if values else ''}{values}"


def _step(step: FoldStep) -> str:
    since = "from the beginning" if step.since is None else f"since {step.since}"
    taken = "no move fits" if step.move is None else f"move {step.move} takes it to {step.after}"
    return f"{step.before} {since}; {taken}"


def _components(components: Sequence[ComponentTest]) -> Iterator[str]:
    for component in components:
        name = f"not {component.component}" if component.negated else component.component
        false = [_test(test) for test in component.conditions if test.holds is False]
        unknown = [_test(test) for test in component.conditions if test.holds is None]
        verdict = "yes" if component.holds else f"no, {false[0]}" if false else "; ".join(unknown)
        yield f"{name}: {verdict}"


def _selections(answer: Why) -> Iterator[str]:
    there = [selection for selection in answer.selections if selection.there]
    if not there:
        yield "none was open there"
    for selection in answer.selections[:SHOWN_SELECTIONS]:
        yield _selection(selection)
        yield from (f"  in it {told}" for told in _components(selection.components))
    more = answer.more_selections + len(answer.selections[SHOWN_SELECTIONS:])
    if more:
        yield f"and {more:,} more"


def _selection(selection: Selection) -> str:
    by = "" if selection.opened_by is None else f" by #{selection.opened_by.seq}"
    ends = "" if selection.window_ends is None else f", its window ends {selection.window_ends}"
    state = "open to the end of the input"
    if selection.closed_by is not None:
        state = f"closed by #{selection.closed_by.seq} at {selection.closed_by.event_time}"
        state += _decided(selection)
    elif selection.state == "ended":
        state = "ended with its window"
    before = "" if selection.there else "the last before was "
    return f"{before}{selection.selection_id}, opened{by} at {selection.opened_at}{ends}; {state}"


def _decided(selection: Selection) -> str:
    """When and by what the matches were decided; empty if the event that closed the selection did."""
    if selection.decided_at is None:
        return ""
    whose = "its" if selection.decided_at == selection.window_ends else "a"
    by = "because the input ends" if selection.decided_by == "input" else f"by the end of {whose} window"
    return f", decided at {selection.decided_at} {by}"


def _matches(answer: Why) -> Iterator[str]:
    for match in answer.matches[:SHOWN_MATCHES]:
        events = "".join(f" {member}" for member in match.events)
        of = f"{match.out_seq}, of selection {match.selection_id}, at {match.matched_at}"
        yield f"{of}:{events}" if events else of
    more = answer.more_matches + len(answer.matches[SHOWN_MATCHES:])
    if more:
        yield f"and {more:,} more"
    if not answer.matches and answer.untold in ((), (ROWS_UNTOLD,)):
        yield "none"


def _lower(lower: LowerMatch) -> str:
    events = "".join(f" {one.component} {one.event.source}:{one.event.offset}" for one in lower.match.events)
    return f"{lower.rule}:{lower.match.out_seq}, at {lower.match.matched_at}{':' if events else ''}{events}"


def _candidates(answer: Why, status: str) -> Iterator[str]:
    for candidate in answer.candidates:
        if candidate.status == status:
            yield _candidate(candidate)


def _candidate(candidate: Candidate) -> str:
    had = " ".join(map(str, candidate.events))
    if candidate.tried is not None:
        had = f"{had or 'nothing'}, then {candidate.tried}"
    return f"selection {candidate.selection_id}{', ' if had else ''}{had}: {candidate.text}"

"""Row patterns by plain backtracking, from the text of the standard, independent of the engine.

A pattern is a tuple: ("var", "A"), ("empty",), ("start",), ("end",), ("seq", [...]), ("alt", [...]),
("permute", [...]), ("repeat", part, least, most, greedy), ("exclude", part). All ways to match it are walked
in the order of preference; the first one is the match. A value is a tuple too, see `value`.

Sources: ISO/IEC 19075-5, sections 4 (clauses), 5 (expressions) and 7 (pattern matching rules).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from tests.oracle.expressions import in_range, nearest

Row = dict[str, Any]
Path = tuple[tuple[str, bool], ...]  # of each row its variable, and whether it is excluded
Term = tuple[Any, ...]


class SkipError(Exception):
    """``SKIP TO`` leads to no row, or to the first row of the match."""


@dataclass(frozen=True)
class Case:
    """A clause over a table.

    Attributes:
        pattern: the pattern.
        conditions: of each variable its condition, a list of terms that must all be true.
        measures: of each measure its name and its term.
        rows: "one", "show", "omit" or "unmatched".
        skip: "past last row", "to next row", "to first" or "to last".
        skip_to: the variable or union of these.
        unions: of each union its variables.
        within: a length; the last row of a match must be less than this behind the first.
    """

    pattern: Term
    conditions: dict[str, list[Term]]
    measures: list[tuple[str, Term]]
    rows: str
    skip: str
    skip_to: str = ""
    unions: dict[str, list[str]] = field(default_factory=dict)
    within: int | None = None


@dataclass(frozen=True)
class Match:
    """A match of rows of a partition, or one that is being sought."""

    case: Case
    partition: list[Row]
    start: int
    path: Path
    number: int

    def rows_of(self, name: str | None, last: int) -> list[int]:
        """The places in the path, up to `last`, of the rows of a variable or union; None: of all."""
        names = self.case.unions.get(name or "", [name or ""])
        return [at for at, (label, _) in enumerate(self.path[: last + 1]) if name is None or label in names]


def result(case: Case, partitions: list[list[Row]]) -> list[Row]:
    """The rows of the result, each with its partition as "@partition"; of all rows also their own values."""
    found = []
    for number, partition in enumerate(partitions):
        found += [{"@partition": number, **row} for row in _of_partition(case, partition)]
    return found


def matches_of(case: Case, partition: list[Row]) -> list[Match]:
    """The matches of a partition."""
    start, number, matches = 0, 0, []
    while start < len(partition):
        path = next(Walk(case, partition, start, number + 1).ways(case.pattern, ()), None)
        if path is None:
            start += 1
            continue
        number += 1
        match = Match(case, partition, start, path, number)
        matches.append(match)
        start += _step(match)
    return matches


def _of_partition(case: Case, partition: list[Row]) -> list[Row]:
    matches = matches_of(case, partition)
    if case.rows == "one":
        return [_measured(one, len(one.path) - 1) for one in matches]
    rows: list[tuple[int, Row]] = []
    taken: set[int] = set()
    for one in matches:
        taken |= set(range(one.start, one.start + max(1, len(one.path))))
        for place, (_, excluded) in enumerate(one.path):
            if not excluded:
                rows.append((one.start, partition[one.start + place] | _measured(one, place)))
        if not one.path and case.rows != "omit":
            rows.append((one.start, partition[one.start] | _measured(one, -1)))
    if case.rows == "unmatched":
        nulls = {name: None for name, _ in case.measures}
        rows += [(at, row | nulls) for at, row in enumerate(partition) if at not in taken]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _measured(match: Match, last: int) -> Row:
    return {name: value(match, term, last) for name, term in match.case.measures}


def _step(match: Match) -> int:
    case = match.case
    if not match.path or case.skip == "to next row":
        return 1
    if case.skip == "past last row":
        return len(match.path)
    places = match.rows_of(case.skip_to, len(match.path))
    place = places[0 if case.skip == "to first" else -1] if places else 0
    if place == 0:
        raise SkipError
    return place


@dataclass(frozen=True)
class Walk:
    """The ways to match parts of a pattern from one row of a partition."""

    case: Case
    partition: list[Row]
    start: int
    number: int
    asked: list[int] = field(default_factory=list)  # the rows that were looked at

    def ways(self, node: Term, path: Path) -> Iterator[Path]:
        """All ways to go on from a path by a part of the pattern, the preferred one first."""
        kind = node[0]
        if kind == "var":
            after = (*path, (node[1], False))
            self.asked.append(self.start + len(path))
            if _takes(Match(self.case, self.partition, self.start, after, self.number)):
                yield after
        elif kind == "empty":
            yield path
        elif kind in ("start", "end"):
            if self.start + len(path) == (0 if kind == "start" else len(self.partition)):
                yield path
        elif kind == "seq":
            yield from self.sequence(node[1], path)
        elif kind == "alt":
            for part in node[1]:
                yield from self.ways(part, path)
        elif kind == "permute":
            for order in permutations(node[1]):
                yield from self.sequence(list(order), path)
        elif kind == "exclude":
            for after in self.ways(node[1], path):
                yield path + tuple((label, True) for label, _ in after[len(path) :])
        else:
            yield from self.iterations(node, 0, path)

    def sequence(self, parts: list[Term], path: Path) -> Iterator[Path]:
        if not parts:
            yield path
            return
        for after in self.ways(parts[0], path):
            yield from self.sequence(parts[1:], after)

    def iterations(self, node: Term, count: int, path: Path) -> Iterator[Path]:
        """The iterations from the one of this number on."""
        _, part, least, most, greedy = node
        if not greedy and count >= least:
            yield path
        if most is None or count < most:
            for after in self.ways(part, path):
                if after == path and count + 1 >= least:
                    yield after  # an empty iteration is the last one once the lower bound is reached
                else:
                    yield from self.iterations(node, count + 1, after)
        if greedy and count >= least:
            yield path


def _takes(match: Match) -> bool:
    """Tell whether the last row of a path may stand for its variable."""
    last = len(match.path) - 1
    if match.start + last >= len(match.partition):
        return False
    if match.case.within is not None and last:
        times = [match.partition[match.start + place]["t"] for place in (0, last)]
        if None in times or times[1] - times[0] >= match.case.within:
            return False
    terms = match.case.conditions.get(match.path[-1][0], [])
    return all(value(match, term, last) is True for term in terms)


def value(match: Match, term: Term, last: int) -> Any:
    """The value of a term where the row with the place `last` in the path is at hand; -1: there is none."""
    kind = term[0]
    if kind == "const":
        return term[1]
    if kind == "number":
        return match.number
    if kind in ("nav", "classifier", "agg"):
        final, name = term[1], term[2]
        places = match.rows_of(name, len(match.path) - 1 if final else last)
        if kind == "agg":
            return _aggregate(match, places, term[3], term[4])
        first, back = term[3], term[4]
        at = back if first else len(places) - 1 - back
        if not 0 <= at < len(places):
            return None
        if kind == "classifier":
            return match.path[places[at]][0]
        row = match.start + places[at] + term[5]
        return _of_row(match.partition[row], term[6]) if 0 <= row < len(match.partition) else None
    left, right = (value(match, one, last) for one in term[1:3])
    return _combined(kind, left, right)


def _combined(kind: str, left: Any, right: Any) -> Any:
    if kind == "or":
        return True if True in (left, right) else None if None in (left, right) else False
    if left is None or right is None:
        return None
    if float in (type(left), type(right)):
        left, right = float(left), float(right)
    found = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        "=": lambda: left == right,
        "<>": lambda: left != right,
    }[kind]()
    return in_range(found)


def _of_row(row: Row, of: str | Term) -> Any:
    """A column of a row, or a sum of two."""
    if isinstance(of, str):
        return row[of]
    return _combined(of[0], _of_row(row, of[1]), _of_row(row, of[2]))


def _aggregate(match: Match, places: list[int], function: str, of: str | Term | None) -> Any:
    if of is None:
        return len(places)
    values = [_of_row(match.partition[match.start + place], of) for place in places]
    known = [one for one in values if one is not None]
    if function == "count":
        return len(known)
    if not known:
        return None
    if function == "avg":
        return nearest(known) / len(known)
    if function == "sum":
        return nearest(known) if isinstance(known[0], float) else in_range(sum(known))
    return min(known) if function == "min" else max(known)


Known = tuple[float, int, int]  # a time; 0 at an event, 1 behind all of that time; the row, at an event


def decisions(case: Case, partition: list[Row]) -> list[Known]:
    """Where each match of a partition is decided, if nothing reads rows behind that which is looked at.

    That is at the last row that was looked at, for the match or for a start before it. A row that is too late
    for a match, or is not there, is known once the window is over: behind the last time that is in it. An
    infinite time: only the end of the partition decides.
    """
    start, number, found = 0, 0, list[Known]()
    latest: Known = (-math.inf, 0, 0)
    while start < len(partition):
        walk = Walk(case, partition, start, number + 1)
        path = next(walk.ways(case.pattern, ()), None)
        latest = max([latest, *(_known_at(walk, row) for row in [start, *walk.asked])])
        if path is None:
            start += 1
            continue
        number += 1
        found.append(latest)
        start += _step(Match(case, partition, start, path, number))
    return found


def _known_at(walk: Walk, row: int) -> Known:
    first, within = walk.partition[walk.start]["t"], walk.case.within
    there = row < len(walk.partition)
    if within is not None and (not there or walk.partition[row]["t"] - first >= within):
        return first + within - 1, 1, 0
    return (walk.partition[row]["t"], 0, row) if there else (math.inf, 1, 0)

"""Random clauses of MATCH_RECOGNIZE with rows: as SQL for the engine, as terms for the oracle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.errors import ConfigError
from spark_pace.rules.row_patterns.meaning import plan_of
from spark_pace.rules.row_patterns.queries import occurrences_in
from spark_pace.rules.row_patterns.words import read_query
from tests.oracle.row_patterns import Case, Row, SkipError, Term, result
from tests.support.streams import enlarged

SCHEMA = pa.schema(
    [("k", pa.string()), ("t", pa.timestamp("us")), ("i", pa.int32()), ("x", pa.int64()), ("y", pa.float64())]
)
ROWS = {
    "one": "ONE ROW PER MATCH",
    "show": "ALL ROWS PER MATCH",
    "omit": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}
SKIPPED = "AFTER MATCH SKIP TO"


@dataclass(frozen=True)
class Trial:
    """A case with its rows, and the same as SQL and as a table."""

    case: Case
    partitions: list[list[Row]]
    sql: str
    table: pa.Table

    def expected(self) -> list[Row] | str:
        try:
            return result(self.case, self.partitions)
        except SkipError:
            return SKIPPED

    def found(self) -> list[Row] | str:
        try:
            return found_rows(self.sql, self.table)
        except ConfigError as error:
            if SKIPPED in str(error):
                return SKIPPED
            raise


def found_rows(sql: str, table: pa.Table, dialect: str = "spark") -> list[Row]:
    """The rows that the engine gives, with times as numbers."""
    query = read_query(sql, "query", dialect)
    (one,) = occurrences_in(query)
    plan = plan_of(query, one.clause, table.schema)
    answer = result_of(plan, sorted_table(table, plan.partition, plan.order))
    types = [pa.int64() if pa.types.is_timestamp(field.type) else field.type for field in answer.schema]
    return answer.cast(pa.schema(zip(answer.column_names, types, strict=True))).to_pylist()


def difference(seed: int) -> str | None:
    """What differs between the engine and the oracle in a random trial; None if nothing does."""
    trial = trial_of(Random(seed))
    expected, found = trial.expected(), trial.found()
    if isinstance(expected, list) and trial.case.rows == "one":
        expected = [{"k": trial.partitions[row.pop("@partition")][0]["k"], **row} for row in expected]
    elif isinstance(expected, list):
        expected = [{name: cell for name, cell in row.items() if name != "@partition"} for row in expected]
    if expected == found:
        return None
    rows = "\n".join(str(row) for row in trial.table.to_pylist())
    return f"seed {seed}\n{trial.sql}\n{rows}\nin the oracle: {expected}\nhere: {found}"


def trial_of(random: Random, plain: bool | None = None) -> Trial:
    """A random trial; if it is plain, conditions are about a value of the row, and patterns are deep."""
    plain = random.random() < 0.5 if plain is None else plain
    variables = "ABCD"[: random.randint(1, 2 if plain else 4)]
    pattern = _Patterns(random, variables, plain).node(3 if plain else random.randint(1, 3))
    used = sorted(_variables(pattern)) or ["A"]
    if not _variables(pattern):
        pattern = ("seq", [pattern, ("var", "A")])
    unions = {"U": random.sample(used, random.randint(1, len(used)))} if random.random() < 0.4 else {}
    terms = _Terms(random, [*used, *unions], {*unions})
    conditions = {name: terms.conditions(name, plain) for name in used if random.random() < 0.85}
    measures = [(f"m{number}", terms.measure()) for number in range(random.randint(1, 4))]
    rows = random.choice(["one", "show", "omit", "unmatched"])
    if rows == "unmatched" and _excludes(pattern):
        rows = "show"
    skip = random.choice(["past last row", "past last row", "to next row", "to first", "to last"])
    skip_to = random.choice([*used, *unions]) if "row" not in skip else ""
    within = random.randint(1, 6) if random.random() < (0.4 if plain else 0.2) else None
    case = Case(pattern, conditions, measures, rows, skip, skip_to, unions, within)
    partitions = _partitions(random)
    together = [row for partition in partitions for row in partition]
    random.shuffle(together)
    return Trial(case, partitions, sql_of(random, case), pa.Table.from_pylist(together, SCHEMA))


def many_rows(random: Random) -> pa.Table:
    """Hundreds of rows in three partitions; often the conditions of plain trials hold in them."""
    return rows_of(
        random,
        400,
        lambda: (random.choices([0, 1, 2, 3, None], [5, 5, 2, 1, 1])[0], random.randint(-8, 8) / 4),
    )


def reading_the_match(sql: str) -> str:
    """The same clause, with conditions that must be tested as rows are taken."""
    return _defined_with(sql, "COUNT(*) > 0")


def computed_outside(sql: str) -> str:
    """The same clause, with conditions that no program can say: machine code adds up no DECIMALs."""
    return _defined_with(sql, "SUM(CAST(i AS DECIMAL(9, 0))) >= 0")


def _defined_with(sql: str, condition: str) -> str:
    head, define, conditions = sql.partition(" DEFINE ")
    return head + define + re.sub(r"\b([ABCD]) AS ", rf"\1 AS {condition} AND ", conditions)


def rows_of(random: Random, most: int, values: Callable[[], tuple[Any, Any]]) -> pa.Table:
    """Up to so many rows in each of three partitions, with these values of x and y."""
    rows = []
    for key in (None, "a", "b"):
        time = 0
        for number in range(random.randint(1, most)):
            time += random.choice([0, 1, 1, 2])
            x, y = values()
            rows.append({"k": key, "t": time, "i": number, "x": x, "y": y})
    return pa.Table.from_pylist(rows, SCHEMA)


def _partitions(random: Random) -> list[list[Row]]:
    partitions = []
    for key in random.choice([[None, "a", "b"], ["a"], ["a"], ["b", "c"]]):
        time, partition = 0, []
        for number in range(random.randint(1, 7)):
            time += random.choice([0, 1, 1, 2])
            x = random.choice([None, 0, 1, 2, 3]) if random.random() < 0.3 else random.randint(0, 3)
            y = None if random.random() < 0.1 else random.randint(-8, 8) / 4
            partition.append({"k": key, "t": time, "i": number, "x": x, "y": y})
        partitions.append(partition)
    if random.random() < 0.2:
        for row in (row for partition in partitions for row in partition):
            row["x"] = enlarged(row["x"], random)
    return partitions


def _variables(node: Term) -> set[str]:
    if node[0] == "var":
        return {node[1]}
    parts = node[1] if node[0] in ("seq", "alt", "permute") else node[1:2]
    return set().union(*(_variables(part) for part in parts if isinstance(part, tuple)))


def _excludes(node: Term) -> bool:
    parts = node[1] if node[0] in ("seq", "alt", "permute") else node[1:2]
    return node[0] == "exclude" or any(_excludes(part) for part in parts if isinstance(part, tuple))


@dataclass
class _Patterns:
    random: Random
    variables: str
    plain: bool
    excluded: bool = False

    def node(self, depth: int) -> Term:
        random = self.random
        parts = ["seq", "seq", "alt", "repeat", "repeat", "other"]
        kind = random.choice([*parts, *(["repeat"] if self.plain else ["var", "var"])]) if depth else "var"
        if kind == "var":
            return random.choice([("var", random.choice(self.variables))] * 12 + [("empty",)])
        if kind in ("seq", "alt"):
            return kind, [self.node(depth - 1) for _ in range(random.randint(2, 3))]
        if kind == "repeat":
            least, most = random.choice(
                [(0, None), (1, None), (0, 1), (2, 2), (0, 2), (1, 3), (2, None), (2, 3)]
            )
            return "repeat", self.node(depth - 1), least, most, random.random() < 0.6
        return self.other(depth)

    def other(self, depth: int) -> Term:
        kind = self.random.choice(["permute", "exclude", "exclude", "start", "end"])
        if kind == "permute":
            return kind, [self.node(depth - 1) for _ in range(self.random.randint(2, 3))]
        if kind == "exclude" and not self.excluded:
            self.excluded = True
            inner = self.node(depth - 1)
            self.excluded = False
            return kind, inner
        return (kind,) if kind in ("start", "end") else self.node(depth - 1)


@dataclass
class _Terms:
    random: Random
    names: list[str]
    unions: set[str]

    def conditions(self, variable: str, plain: bool) -> list[Term]:
        if plain:
            of_row = ("nav", False, variable, False, 0, 0, "x")
            return [(self.random.choice(["<=", "="]), of_row, ("const", self.random.randint(0, 2)))]
        return [self.condition(variable) for _ in range(self.random.choice([1, 1, 2]))]

    def condition(self, variable: str) -> Term:
        random = self.random
        if random.random() < 0.1:
            return "or", self.condition(variable), self.condition(variable)
        if random.random() < 0.1:
            other: Term = ("const", random.choice([one for one in self.names if one not in self.unions]))
            if random.random() < 0.3:
                other = self.classifier()
            return random.choice(["=", "<>"]), self.classifier(), other
        left = self.fixed(variable) if random.random() < 0.5 else self.number(False)
        right = random.choice([("const", random.randint(0, 3)), self.fixed(variable), self.number(False)])
        if random.random() < 0.15:
            right = random.choice("+-*"), right, self.number(False)
        return random.choice(["<", "<=", "<=", "=", "<>"]), left, right

    def classifier(self) -> Term:
        random = self.random
        name = random.choice([None, None, *self.names])
        return "classifier", False, name, random.random() < 0.3, random.choice([0, 0, 1])

    def fixed(self, variable: str) -> Term:
        """A value of the row that is tested, or of one near it."""
        shift = self.random.choice([0, 0, -1, -1, 1, -2])
        return "nav", False, self.random.choice([None, variable]), False, 0, shift, self.of()

    def of(self) -> str | Term:
        return self.random.choice(["x", "x", "y", ("+", "x", "y")])

    def number(self, final: bool) -> Term:
        random = self.random
        name, final = random.choice([None, *self.names]), final and random.random() < 0.5
        if random.random() < 0.35:
            function = random.choice(["count", "sum", "avg", "min", "max"])
            counts = function == "count" and random.random() < 0.6
            return "agg", final, name, function, None if counts else self.of()
        if random.random() < 0.06:
            return ("number",)
        first, back = random.random() < 0.5, random.choice([0, 0, 1, 2])
        return "nav", final, name, first, back, random.choice([0, 0, 0, -1, 1, 2]), self.of()

    def measure(self) -> Term:
        random = self.random
        if random.random() < 0.2:
            final = random.random() < 0.3
            if random.random() < 0.5:
                return "classifier", final, random.choice([None, *self.names]), False, 0
            name, first = random.choice([None, *self.names]), random.random() < 0.5
            return "classifier", final, name, first, random.choice([0, 1])
        if random.random() < 0.2:
            return random.choice("+-*"), self.number(True), self.number(True)
        return self.number(True)


def sql_of(random: Random, case: Case) -> str:
    """The clause as SQL."""
    measures = ", ".join(f"{_term(random, term)} AS {name}" for name, term in case.measures)
    skip = f"{case.skip.upper()} {case.skip_to}" if case.skip_to else case.skip.upper()
    if case.skip == "to last" and random.random() < 0.5:
        skip = f"TO {case.skip_to}"
    within = f" WITHIN INTERVAL '{case.within}' MICROSECOND" if case.within is not None else ""
    unions = ", ".join(f"{name} = ({', '.join(members)})" for name, members in case.unions.items())
    defined = ", ".join(
        f"{name} AS {' AND '.join(_term(random, one) for one in terms)}"
        for name, terms in case.conditions.items()
    )
    return (
        f"SELECT * FROM rows MATCH_RECOGNIZE (PARTITION BY k ORDER BY t, i MEASURES {measures} "
        f"{ROWS[case.rows]} AFTER MATCH SKIP {skip} PATTERN ({_pattern(case.pattern)}){within}"
        f"{' SUBSET ' + unions if unions else ''}{' DEFINE ' + defined if defined else ''})"
    )


def _pattern(node: Term) -> str:
    kind = node[0]
    if kind == "repeat":
        _, part, least, most, greedy = node
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?", (0, 2): "{,2}", (2, 2): "{2}"}
        bounds = signs.get((least, most), f"{{{least},{'' if most is None else most}}}")
        return f"({_pattern(part)}){bounds}{'' if greedy else '?'}"
    if kind in ("seq", "alt"):
        return "(" + (" " if kind == "seq" else " | ").join(map(_pattern, node[1])) + ")"
    if kind == "permute":
        return f"PERMUTE({', '.join(map(_pattern, node[1]))})"
    if kind == "exclude":
        return f"{{- {_pattern(node[1])} -}}"
    return {"start": "^", "end": "$", "empty": "()"}.get(kind) or str(node[1])


def _term(random: Random, term: Term) -> str:
    kind = term[0]
    if kind == "const":
        return f"'{term[1]}'" if isinstance(term[1], str) else str(term[1])
    if kind == "number":
        return "MATCH_NUMBER()"
    if kind == "agg":
        return _marked(random, term[1]) + _aggregate(term)
    if kind in ("nav", "classifier"):
        return _navigation(random, term)
    left, right = (_term(random, one) for one in term[1:3])
    return f"({left} {kind.upper()} {right})"


def _marked(random: Random, final: bool) -> str:
    return "FINAL " if final else random.choice(["", "", "RUNNING "])


def _aggregate(term: Term) -> str:
    _, _, name, function, of = term
    if of is None:
        return "COUNT(*)" if name is None else f"COUNT({name}.*)"
    return f"{function.upper()}({_of(name, of)})"


def _of(name: str | None, of: Any) -> str:
    if isinstance(of, str):
        return of if name is None else f"{name}.{of}"
    return f"{_of(name, of[1])} {of[0]} {_of(name, of[2])}"


def _navigation(random: Random, term: Term) -> str:
    kind, final, name, first, back = term[:5]
    value = _of(name, term[6]) if kind == "nav" else f"CLASSIFIER({name or ''})"
    shift = term[5] if kind == "nav" else 0
    text = f"{'FIRST' if first else 'LAST'}({value}{f', {back}' if back else ''})"
    if not first and not back and not final and random.random() < 0.6:
        text = value if shift or isinstance(term[-1], str) or kind == "classifier" else text
    else:
        text = _marked(random, final) + text
    if not shift:
        return text
    steps = "" if abs(shift) == 1 and random.random() < 0.7 else f", {abs(shift)}"
    return f"{'PREV' if shift < 0 else 'NEXT'}({text}{steps})"

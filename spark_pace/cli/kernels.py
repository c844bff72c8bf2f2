"""Compiles searches, folds and the reader of JSON, so that no job must: ``python -m spark_pace.cli.kernels``.

`make setup` runs it, and so does a build of the package, for all machines that a wheel brings the code for.
`spark_pace.machine_code.code_files` says where the code is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import click
import pyarrow as pa

from spark_pace import replay, ways
from spark_pace.core.match.compiled import conjunctions, sequences, sets, state_machine
from spark_pace.core.match.row_patterns import compiled as row_patterns
from spark_pace.core.match.row_patterns import tested_search
from spark_pace.io.text.scan import NOTHING, scan
from spark_pace.machine_code.code_files import keep, kept_code, write
from spark_pace.machine_code.kernel import Kernel, Layouts
from spark_pace.machine_code.memory import SHIPPED, Target, here
from spark_pace.rules.row_patterns.queries import file_query
from spark_pace.rules.row_patterns.words import read_query

SEARCHES = tuple(
    one
    for module in (sequences, conjunctions, sets, state_machine, row_patterns, tested_search)
    for one in vars(module).values()
    if isinstance(one, Kernel)
)
KERNELS = (*SEARCHES, scan)

# together these rules use all compiled searches, with the same argument types as all other rules
_RULES = """
events: {schema: "t TIMESTAMP, kind STRING, x BIGINT", event_time: t}
rules:
  - name: depth_first
    pattern: {sequence: [a: "kind = 'a'", b: "kind = 'b'", c: "kind = 'c'"]}
    where: a.x < b.x and b.x < c.x
    within: 1 h
  - name: optional_in_last_place
    pattern: {sequence: [a: "kind = 'a'", {name: b, when: "kind = 'b'", times: 0..1}]}
    where: a.x < first(b.x)
    within: 1 h
  - name: any_order
    pattern: {conjunction: [a: "kind = 'a'", b: "kind = 'b'"]}
    where: a.x < b.x
    within: 1 h
    context: earliest, selected
  - name: least_of_types
    pattern: {conjunction: [a: "kind = 'a'", b: "kind = 'b'"]}
    within: 1 h
    context: earliest, selected
  - name: production_sets
    pattern: {sequence: [a: "x < 2", b: "x > 0"]}
    within: 1 h
    context: earliest, selected
    strategy: production_sets
  - name: earliest_unused
    pattern: {sequence: [a: "x < 2", b: "x > 0", c: "kind = 'c'"]}
    within: 1 h
    context: earliest, selected
  - name: first_unused
    pattern: {sequence: [a: "kind = 'a'", b: "kind = 'b'", c: "kind = 'c'"]}
    where: concat(a.kind, b.kind) < c.kind
    within: 1 h
    context: earliest, selected
  - name: in_turn
    pattern: {sequence: [a: "kind = 'a'", {name: n, when: "x > 3", not: true}, c: "kind = 'c'"]}
    within: 1 h
    context: earliest, selected
  - name: state_machine
    fold: {initial: low, moves: [{from: low, when: "x > 1", to: high}]}
"""

_QUERY = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES MATCH_NUMBER() AS n PATTERN (A B){})"
_CONDITIONS = ("", " DEFINE B AS x > AVG(A.x)")  # known of each row before; and read from the match so far


def use_all() -> None:
    """Use all searches and the reader of JSON: rules run on three events."""
    replay(_RULES, _events())
    match_row_patterns(_events())
    scan.is_ready(NOTHING, is_made_now=ways.FEW_NUMBERS < 0)


def match_row_patterns(events: pa.Table) -> None:
    """Use all searches for row patterns."""
    for define in _CONDITIONS:
        file_query(read_query(_QUERY.format(define), "query", "spark")).answer(events, 1_000)


def _events() -> pa.Table:
    seconds = [pa.scalar(second * 1_000_000, pa.timestamp("us", "UTC")) for second in range(3)]
    return pa.table({"t": seconds, "kind": ["a", "b", "c"], "x": [0, 1, 2]})


def all_codes(targets: Sequence[Target]) -> dict[str, bytes]:
    """All compiled code for some machines, by name; what is not kept yet is made.

    Raises:
        Exception: whatever numba raises, or that it is not there.
    """
    use_all()
    asked = [(number, one) for number, kernel in enumerate(KERNELS) for one in kernel.runs]
    names = [KERNELS[number].name(one, target) for number, one in asked for target in targets]
    if all(map(kept_code, names)):
        return _codes(asked, targets)
    of_sequences = {n for n, one in enumerate(KERNELS) if one.function.__module__ == sequences.__name__}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:  # sequences take half of the time
        halves = [[one for one in asked if (one[0] in of_sequences) == half] for half in (True, False)]
        made = list(pool.map(_codes, halves, [targets] * 2))
    return made[0] | made[1]


def _codes(asked: Sequence[tuple[int, Layouts]], targets: Sequence[Target]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for number, layouts in asked:
        found |= KERNELS[number].codes(layouts, targets)
    return found


@click.command()
@click.option("--into", type=click.Path(path_type=Path), help="A folder for what a wheel brings.")
def main(into: Path | None) -> None:
    """Compile and keep the searches and the reader of JSON; exit with 1 if that cannot be."""
    try:
        codes = all_codes(SHIPPED if into else tuple(dict.fromkeys((here(), *SHIPPED))))
        if into:
            for name, code in codes.items():
                write(into / name, name, code)
        elif not all(kept_code(name) or keep(name, code) for name, code in codes.items()):
            must, do = "must be kept for quick starts", "Name a folder that can be written to by"
            _fail(f"{must}; got no place for it. {do} NUMBA_CACHE_DIR.")
        else:
            _load()
    except Exception as error:  # whatever numba raises
        must, do = "searches and the reader of JSON must be compiled", "Jobs run without, but slower."
        first_line = next(filter(None, str(error).splitlines()), "")
        _fail(f"{must}; got {type(error).__name__}: {first_line}. {do}")
    print(f"{len(SEARCHES)} searches and the reader of JSON are compiled")


def _load() -> None:
    """Load all that is kept now.

    Raises:
        Exception: that cannot be.
    """
    ways.FEW_NUMBERS = -1
    use_all()
    for one in KERNELS:
        if one.failure is not None:
            raise one.failure


def _fail(message: str) -> NoReturn:
    print(f"compiled code — {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()

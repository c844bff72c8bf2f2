"""Compiles searches, folds and the reader of JSON, so that no job must: ``python -m spark_pace.cli.kernels``.

`make setup` runs it. The compiled code is kept in the folder that `NUMBA_CACHE_DIR` names, in the package's
`__pycache__`, or in the user's cache directory: in the first of them that can be written to.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import click
import pyarrow as pa

from spark_pace import Rule, load_rules, replay, ways
from spark_pace.core.match.compiled import conjunctions, sequences, sets, state_machine
from spark_pace.core.match.row_patterns import compiled as row_patterns
from spark_pace.core.match.row_patterns import tested_search
from spark_pace.io.text import compiled_reader
from spark_pace.machine_code.code_files import kept_code
from spark_pace.machine_code.kernel import Kernel
from spark_pace.rules.row_patterns.file_query import file_query
from spark_pace.rules.row_patterns.words import read_query

KERNELS = tuple(
    one
    for module in (conjunctions, sequences, sets, state_machine, row_patterns, tested_search)
    for one in vars(module).values()
    if isinstance(one, Kernel)
)

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


def compile_searches() -> None:
    """Compile the searches and the reader of JSON, or load what is kept, by running rules on three events."""
    _compile_sequences()
    _compile_others()


def _compile_sequences() -> None:
    _run([rule for rule in _rules() if _is_sequence(rule)])


def _compile_others() -> None:
    _run([rule for rule in _rules() if not _is_sequence(rule)])
    for define in _CONDITIONS:
        file_query(read_query(_QUERY.format(define), "query", "spark")).answer(_events(), 10)
    with suppress(Exception):  # it is tried again, and told, by `failures`
        compiled_reader.kept_code() or compiled_reader.compiled_code()


def _is_sequence(rule: Rule) -> bool:
    return rule.pattern is not None and rule.pattern.order != "conjunction"


def _rules() -> Sequence[Rule]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.yaml")
        path.write_text(_RULES, encoding="ascii")
        return load_rules(path)


def _events() -> pa.Table:
    seconds = [pa.scalar(second * 1_000_000, pa.timestamp("us", "UTC")) for second in range(3)]
    return pa.table({"t": seconds, "kind": ["a", "b", "c"], "x": [0, 1, 2]})


def _run(rules: Sequence[Rule]) -> None:
    ways.FEW_NUMBERS = -1
    replay(rules, _events())


def failures() -> Iterator[str]:
    """What kept searches, or the reader of JSON, from being compiled or loaded, if anything did."""
    for one in KERNELS:
        if one.failure is not None:
            yield _told(one.function.__name__, one.failure)
    try:
        compiled_reader.kept_code() or compiled_reader.compiled_code()
    except Exception as error:  # whatever numba raises
        yield _told("the reader of JSON", error)


def _are_kept() -> bool:
    names = [*(name for one in KERNELS for name in one.names), compiled_reader.name()]
    return all(map(kept_code, names))


def _told(name: str, failure: Exception) -> str:
    first_line = next(filter(None, str(failure).splitlines()), "")
    return f"{name}: {type(failure).__name__}: {first_line}"


@click.command()
def main() -> None:
    """Compile and keep the searches and the reader of JSON; exit with 1 if that cannot be."""
    if not _are_kept():
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            pool.submit(_compile_sequences)
            pool.submit(_compile_others)
    compile_searches()  # it loads what these processes have kept
    if failed := next(failures(), None):
        must, do = "searches and the reader of JSON must be compiled", "Jobs run without, but slower."
        print(f"compiled code — {must}; got {failed}. {do}", file=sys.stderr)
        sys.exit(1)
    if not _are_kept():
        must, do = "must be kept for quick starts", "Name a folder that can be written to by NUMBA_CACHE_DIR."
        print(f"compiled code — {must}; got no place for it. {do}", file=sys.stderr)
        sys.exit(1)
    print(f"{len(KERNELS)} searches and the reader of JSON are compiled")


if __name__ == "__main__":
    main()

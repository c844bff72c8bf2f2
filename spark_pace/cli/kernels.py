"""Compiles searches, folds and the reader of JSON, so that no job must: ``python -m spark_pace.cli.kernels``.

`make setup` runs it. The compiled code is kept beside the package or in the user's cache directory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
import pyarrow as pa

from spark_pace import load_rules, replay, ways
from spark_pace.core.match.compiled import conjunctions, sequences, sets, state_machine
from spark_pace.io.text.compiled_reader import compiled_code, kept_code
from spark_pace.machine_code.code_files import state
from spark_pace.machine_code.kernel import Kernel

KERNELS = tuple(
    one
    for module in (conjunctions, sequences, sets, state_machine)
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


def compile_searches() -> None:
    """Compile the searches for matches, or load those that are kept, by running rules on three events."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.yaml")
        path.write_text(_RULES, encoding="ascii")
        rules = load_rules(path)
    seconds = [pa.scalar(second * 1_000_000, pa.timestamp("us", "UTC")) for second in range(3)]
    events = pa.table({"t": seconds, "kind": ["a", "b", "c"], "x": [0, 1, 2]})
    replay(rules, events)


@click.command()
def main() -> None:
    """Compile and keep the searches and the reader of JSON; exit with 1 if there is no place to keep them."""
    ways.FEW_NUMBERS = -1
    compile_searches()
    made = all(one.is_machine_code for one in KERNELS) and (kept_code() or compiled_code())
    if state() != "kept" or not made:
        must, do = "must be kept for quick starts", "Name a folder that can be written to by NUMBA_CACHE_DIR."
        print(f"compiled code — {must}; got no place for it. {do}", file=sys.stderr)
        sys.exit(1)
    print(f"{len(KERNELS)} searches and the reader of JSON are compiled")


if __name__ == "__main__":
    main()

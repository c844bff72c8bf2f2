"""``python -m tests.long.row_patterns``: compare random clauses of MATCH_RECOGNIZE with the oracle.

Some are compared over streams, cut in random ways; the others over tables. What differs is printed; exit
code 1 if something does.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import click

from spark_pace import ways
from tests.support.row_pattern_cases import difference
from tests.support.row_pattern_streams import stream_difference

CLAUSES = 500  # of a chunk
OVER_STREAMS = 5  # one clause of so many: they take much longer


def differing(first: int) -> list[str]:
    """What differs in the clauses of a chunk."""
    ways.FEW_NUMBERS = -1  # however few rows there are, the compiled search is tried
    found = [
        (difference if seed % OVER_STREAMS else stream_difference)(seed)
        for seed in range(first, first + CLAUSES)
    ]
    return [one for one in found if one is not None]


@click.command()
@click.option("--clauses", default=50_000, help="How many, about: whole chunks are run.")
@click.option("--seed", default=0, help="The same seed, the same clauses.")
@click.option("--processes", default=2)
def main(clauses: int, seed: int, processes: int) -> None:
    """Compare the engine of row patterns with the oracle."""
    firsts = range(seed * 1_000_000, seed * 1_000_000 + clauses, CLAUSES)
    began, wrong = time.monotonic(), 0
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for found in pool.map(differing, firsts):
            wrong += len(found)
            print(*found, sep="\n", end="\n" if found else "", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(firsts) * CLAUSES:,} clauses, {wrong} differ, {seconds:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""``python -m tests.long.differential``: compare pairs, print the table of ways, keep what differs.

It ends with exit code 1 if a pair differs, or a cell of the table is empty, or one is filled that cannot be.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import click

from spark_pace.errors import counted
from tests.long.differential.chunk import RULES, STREAMS, Tally, run_chunk
from tests.long.differential.table import as_text, empty_cells, taken_though_impossible

OUT = Path("out/differential")
TOLD_SECONDS = 30


@click.command()
@click.option("--pairs", default=100_000, help="How many, about: whole chunks are run.")
@click.option("--seed", default=0, help="The same seed, the same pairs.")
@click.option("--first", default=0, help="The chunk to begin with: go on where a run has stopped.")
@click.option("--rules", default=RULES, help="Of each chunk; with others the pairs are others.")
@click.option("--processes", default=2)
def main(pairs: int, seed: int, first: int, rules: int, processes: int) -> None:
    """Compare the core with the oracle."""
    OUT.mkdir(parents=True, exist_ok=True)
    numbers = range(first, first + -(-pairs // (rules * STREAMS)))
    began = said = time.monotonic()
    tally = Tally()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = pool.map(run_chunk, repeat(seed), numbers, repeat(rules))
        for number, one in zip(numbers, found, strict=True):
            tally.add(one)
            for place, differing in enumerate(one.differing):
                path = OUT / f"{seed}-{number}-{place}.txt"
                path.write_text(differing + "\n")
                print(f"{path}\n{differing}\n", flush=True)
            if time.monotonic() - said > TOLD_SECONDS or number == numbers[-1]:
                said = time.monotonic()
                print(f"chunk {number}: {_told(tally)} after {said - began:.0f} s", flush=True)
    text = as_text(tally.taken)
    (OUT / f"table-{seed}.txt").write_text(text)
    print(text)
    empty = empty_cells(tally.taken)
    print(f"seed {seed}: {_told(tally)}, {len(empty)} empty cells: {OUT / f'table-{seed}.txt'}")
    print(*(f"{way}: not taken with a match in: {form}" for way, form in empty), sep="\n")
    wrong = taken_though_impossible(tally.taken)
    print(*(f"{way}: taken, though it is called impossible, in: {form}" for way, form in wrong), sep="\n")
    sys.exit(1 if tally.differing or empty or wrong else 0)


def _told(tally: Tally) -> str:
    share = 100 * tally.matched / max(1, tally.pairs)
    return f"{counted(tally.pairs, 'pair')}, {share:.0f} % with a match, {len(tally.differing)} differ"


if __name__ == "__main__":
    main()

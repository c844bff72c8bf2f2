"""``python -m tests.long.levels``: compare graphs, and print what differs; exit code 1 if one does."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import click

from tests.long.levels.chunk import GRAPHS, Tally, run_chunk

TOLD_SECONDS = 30


@click.command()
@click.option("--graphs", default=10_000, help="How many, about: whole chunks are run.")
@click.option("--seed", default=0, help="The same seed, the same graphs.")
@click.option("--first", default=0, help="The chunk to begin with: go on where a run has stopped.")
@click.option("--processes", default=2)
def main(graphs: int, seed: int, first: int, processes: int) -> None:
    """Compare the core with the oracle."""
    numbers = range(first, first + -(-graphs // GRAPHS))
    began = said = time.monotonic()
    tally = Tally()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for number, one in zip(numbers, pool.map(run_chunk, repeat(seed), numbers), strict=True):
            tally.add(one)
            for differing in one.differing:
                print(f"python -m tests.long.levels --seed {seed} --first {number} --graphs 1\n{differing}\n")
            if time.monotonic() - said > TOLD_SECONDS or number == numbers[-1]:
                said = time.monotonic()
                print(f"chunk {number}: {tally} after {said - began:.0f} s", flush=True)
    sys.exit(1 if tally.differing else 0)


if __name__ == "__main__":
    main()

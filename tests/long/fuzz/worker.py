"""The process that runs the inputs. It may crash or hang: its current input stands in a shared file."""

from __future__ import annotations

import itertools
import mmap
import random
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.long.fuzz.mutation import mutated
from tests.long.fuzz.targets import Target

MOST_SECONDS = 2.0  # of processor time, for one input
MOST_GROWTH_BYTES = 256 << 20  # of peak memory: at one input, and over all
MOST_ADDRESSES_BYTES = 16 << 30
MOST_POOL = 3_000
REPORT_SECONDS = 1.0
WARM_UP = 200  # inputs after which memory over all is looked at: caches and lazy imports are filled
SLOT_BYTES = 4 + (1 << 20)


@dataclass
class Tally:
    """What a target's inputs have come to."""

    inputs: int = 0
    outcomes: int = 0
    slowest_seconds: float = 0.0
    slowest_input: str = ""
    peak_bytes: int = 0
    findings: list[dict[str, str]] = field(default_factory=list)  # why, input (as text with escapes)


class Watched:
    """Runs inputs one by one, and finds what is not allowed."""

    def __init__(self, target: Target, folder: Path) -> None:
        """Nothing has run yet."""
        self.target = target
        self.folder = folder
        self.tally = Tally()
        self.words: set[str] = set()
        self._first_bytes = 0

    def run(self, text: bytes) -> bool:
        """Run one input; whether its outcome is a new one."""
        began = time.process_time()
        word, why = "", ""
        try:
            word = self.target.run(text, self.folder)
        except Exception:
            why = traceback.format_exc()
        seconds = time.process_time() - began
        if seconds > MOST_SECONDS:
            why = why or f"{seconds:.1f} s of processor time"
        why = why or self._growth()
        tally = self.tally
        tally.inputs += 1
        if seconds > tally.slowest_seconds:
            tally.slowest_seconds, tally.slowest_input = seconds, repr(text[:200])
        if why:
            self._note(why, text)
        new = word not in self.words
        self.words.add(word)
        tally.outcomes = len(self.words)
        return new and not why

    def _growth(self) -> str:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        before, self.tally.peak_bytes = self.tally.peak_bytes, peak
        if before and peak - before > MOST_GROWTH_BYTES:
            return f"{peak - before >> 20} MiB more memory"
        if self.tally.inputs <= WARM_UP:
            self._first_bytes = peak
        elif peak - self._first_bytes > MOST_GROWTH_BYTES:
            self._first_bytes = peak
            return f"{MOST_GROWTH_BYTES >> 20} MiB more memory after {self.tally.inputs} inputs"
        return ""

    def _note(self, why: str, text: bytes) -> None:
        """One finding for each cause: the last line and place in our code tell causes apart."""
        cause = [line.strip() for line in why.strip().splitlines() if "/spark_pace/" in line][
            -1:
        ] + why.strip().splitlines()[-1:]
        key = " ".join(cause)[:300]
        if all(found["cause"] != key for found in self.tally.findings):
            self.tally.findings.append({"cause": key, "why": why, "input": text.hex()})


def inputs_of(watched: Watched, seed: int) -> Iterator[bytes]:
    """The corpus and the seeds, then mutations of these and of those inputs that gave a new outcome."""
    target = watched.target
    chance = random.Random(seed)
    pool = [*target.corpus(), *target.seeds()]
    yield from tuple(pool)
    while True:
        text = mutated(chance, pool, target.words, target.most_bytes)
        outcomes = watched.tally.outcomes
        yield text
        if (
            watched.tally.outcomes > outcomes
            and len(pool) < MOST_POOL
            and len(text) <= target.most_bytes // 2
        ):
            pool.append(text)


def work(target: Target, inputs: int, seed: int, slot: str, answers: Connection) -> None:
    """Run a number of inputs; a tally goes to `answers` now and then and at the end."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES_BYTES, MOST_ADDRESSES_BYTES))
    said = time.monotonic()
    with (
        tempfile.TemporaryDirectory(dir=Path("/dev/shm") if Path("/dev/shm").is_dir() else None) as folder,
        open(slot, "r+b") as file,
    ):
        shared = mmap.mmap(file.fileno(), SLOT_BYTES)
        watched = Watched(target, Path(folder))
        for text in itertools.islice(inputs_of(watched, seed), inputs):
            shared[: 4 + len(text)] = len(text).to_bytes(4, "big") + text
            watched.run(text)
            if time.monotonic() - said > REPORT_SECONDS:
                said = time.monotonic()
                answers.send(asdict(watched.tally))
        answers.send(asdict(watched.tally))
        answers.send(None)


def at_hand(slot: str) -> bytes:
    """The input that a worker was busy with."""
    content = Path(slot).read_bytes()
    return content[4 : 4 + int.from_bytes(content[:4], "big")]

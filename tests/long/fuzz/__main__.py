"""`make fuzz`: random inputs for every target, one process a target and one a core.

It ends with exit code 1 if there are findings.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from spark_pace.errors import counted
from tests.long.fuzz.targets import CORPUS, TARGETS, Target
from tests.long.fuzz.worker import SLOT_BYTES, at_hand, work

HANG_SECONDS = 120.0  # without a word from the worker
OUT = Path("out/fuzz")


@click.command()
@click.option("--inputs", default=1_000_000, help="How many, over all targets.")
@click.option("--seed", default=1, help="The same seed, the same inputs.")
@click.option(
    "--target",
    "names",
    multiple=True,
    type=click.Choice([target.name for target in TARGETS]),
    help="Only this target; may be repeated.",
)
def main(inputs: int, seed: int, names: tuple[str, ...]) -> None:
    """Run the inputs, print what they came to, and keep findings as files of the corpus."""
    OUT.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    chosen = [target for target in TARGETS if target.name in names or not names]
    whole = sum(target.share for target in chosen)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tallies = list(
            pool.map(lambda target: run_target(target, round(inputs * target.share / whole), seed), chosen)
        )
    report = {target.name: tally for target, tally in zip(chosen, tallies, strict=True)}
    seconds = time.monotonic() - began
    findings = sum(len(tally["findings"]) for tally in report.values())
    summary = {
        "inputs": sum(tally["inputs"] for tally in report.values()),
        "findings": findings,
        "seconds": round(seconds, 1),
        "seed": seed,
        "targets": report,
    }
    (OUT / "report.json").write_text(json.dumps(summary, indent=1))
    _print(report)
    print(
        f"{counted(summary['inputs'], 'input')} in {seconds:.0f} s, "
        f"{counted(findings, 'finding')}: {OUT / 'report.json'}"
    )
    sys.exit(1 if findings else 0)


def run_target(target: Target, inputs: int, seed: int) -> dict[str, Any]:
    """All inputs of one target; a worker that dies or hangs is followed by another, with other inputs."""
    slot = str(OUT / f"{target.name}.input")
    Path(slot).write_bytes(b"\0" * SLOT_BYTES)
    total: dict[str, Any] = {
        "inputs": 0,
        "outcomes": 0,
        "slowest_seconds": 0.0,
        "slowest_input": "",
        "peak_bytes": 0,
        "findings": [],
    }
    began = time.monotonic()
    while total["inputs"] < inputs:
        tally, end = _run_worker(target, inputs - total["inputs"], seed, slot, total["inputs"])
        for key in ("outcomes", "peak_bytes"):
            total[key] = max(total[key], tally.get(key, 0))
        if tally.get("slowest_seconds", 0) > total["slowest_seconds"]:
            total |= {key: tally[key] for key in ("slowest_seconds", "slowest_input")}
        total["inputs"] += max(1, tally.get("inputs", 0))
        total["findings"] += tally.get("findings", [])
        if end:
            total["findings"].append({"cause": end, "why": end, "input": at_hand(slot).hex()})
        seed += 1
    Path(slot).unlink()
    total["seconds"] = round(time.monotonic() - began, 1)
    for finding in total["findings"]:
        _keep(target, finding)
    return total


def _run_worker(target: Target, inputs: int, seed: int, slot: str, before: int) -> tuple[dict[str, Any], str]:
    """The worker's last tally, and how it ended if that was wrong."""
    context = multiprocessing.get_context("spawn")
    answers, there = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(target, inputs, seed, slot, there))
    worker.start()
    there.close()
    tally: dict[str, Any] = {}
    said = 0
    while answers.poll(HANG_SECONDS):
        try:
            answer = answers.recv()
        except EOFError:
            worker.join()
            return tally, f"the process ended with {worker.exitcode}"
        if answer is None:
            worker.join()
            return tally, ""
        tally = answer
        if (done := before + tally["inputs"]) // 20_000 > said:
            said = done // 20_000
            print(
                f"{target.name}: {counted(done, 'input')}, {counted(tally['outcomes'], 'outcome')}, "
                f"{counted(len(tally['findings']), 'finding')}",
                flush=True,
            )
    worker.kill()
    worker.join()
    return tally, f"no answer for {HANG_SECONDS:.0f} s"


def _keep(target: Target, finding: dict[str, str]) -> None:
    text = bytes.fromhex(finding["input"])
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"found-{hashlib.sha256(text).hexdigest()[:12]}"
    path.write_bytes(text)
    print(f"\n{target.name}: {path}\n{text[:500]!r}\n{finding['why']}", flush=True)


def _print(report: dict[str, dict[str, Any]]) -> None:
    for name, tally in report.items():
        print(
            f"{name}: {counted(tally['inputs'], 'input')} in {tally['seconds']:.0f} s, "
            f"{counted(tally['outcomes'], 'outcome')}, {counted(len(tally['findings']), 'finding')}, "
            f"slowest {tally['slowest_seconds']:.2f} s, peak {tally['peak_bytes'] >> 20} MiB"
        )


if __name__ == "__main__":
    main()

"""`spark-pace bench`: drive a job, show how far it is, and write what was measured."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.text import Text

from spark_pace.errors import ConfigError, SetupError
from spark_pace.job_file import KafkaSource
from spark_pace_bench.run_file import read_run_file
from spark_pace_bench.spec import RunSpec

_PACKAGES = {"jinja2": "Jinja2", "matplotlib": "matplotlib", "psutil": "psutil"}
_PACKAGES_OF_KAFKA = {"kafka": "kafka-python", "confluent_kafka": "confluent-kafka"}
_MARK = ".spark-pace-bench"  # in a folder that may be removed, for a run of the driver made it
_LINE_SECONDS = 5


def bench_command(path: Path, out: Path | None, wanted: tuple[str, ...]) -> None:
    """Do what `spark_pace.cli.main.bench` says. With differences from the core, exit with code 1."""
    runs = _chosen(path, read_run_file(path), wanted)
    _require_packages(runs)
    folder = _fresh(out or Path("out") / "bench" / path.stem)
    from spark_pace_bench.drive import drive
    from spark_pace_bench.report import as_html, as_text
    from spark_pace_bench.summary import summarize

    signal.signal(signal.SIGTERM, _leave)  # the job's process must not outlive this one
    found = []
    for run in runs:
        own = folder / (run.variant or "run")
        own.mkdir()
        with _Shown(run) as shown:
            driven = drive(run, own, shown.tell)
        found.append(summarize(driven))
        print(as_text(found[-1]), flush=True)
        (folder / "report.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (folder / "report.html").write_text(as_html(found), encoding="utf-8")
    print(f"written to {folder / 'report.html'} and report.json")
    if any(figures["differences"] for figures in found):
        sys.exit(1)


def _leave(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _chosen(path: Path, runs: tuple[RunSpec, ...], wanted: tuple[str, ...]) -> tuple[RunSpec, ...]:
    names = [run.variant for run in runs]
    for name in wanted:
        if name not in names:
            do = f"Use one of: {', '.join(filter(None, names))}." if any(names) else "Leave it out."
            raise ConfigError.of("--variant", f"must be a variant of {path}", name, do)
    return tuple(run for run in runs if not wanted or run.variant in wanted)


def _require_packages(runs: tuple[RunSpec, ...]) -> None:
    kafka = any(isinstance(run.job.source, KafkaSource) for run in runs)
    needed = {**_PACKAGES, **(_PACKAGES_OF_KAFKA if kafka else {})}
    missing = [package for name, package in needed.items() if find_spec(name) is None]
    if missing:
        must, got = "must be installed with what the driver needs", f"no {', '.join(missing)}"
        raise SetupError(f"spark-pace bench — {must}; got {got}. pip install 'spark-pace[bench]' brings it.")


def _fresh(folder: Path) -> Path:
    """The folder, empty; one that holds anything but an earlier report is refused."""
    folder = folder.absolute()
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            must, got = "must be a new folder, or one of an earlier run of the driver", "another one"
            raise ConfigError.of(str(folder), must, got, "Name another with --out.")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    return folder


class _Shown:
    """Shows progress: in one line on a terminal, else in a line every few seconds."""

    def __init__(self, run: RunSpec) -> None:
        self._console = Console(highlight=False)
        self._name = f"{run.name}, {run.variant}" if run.variant else run.name
        self._status = self._console.status(Text(self._name))
        self._last = (float(-_LINE_SECONDS), "")

    def __enter__(self) -> _Shown:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._status.stop()

    def tell(self, doing: str, second: float, sent: int, read: int) -> None:
        """See `drive`."""
        text = f"{self._name}: {doing}, second {second:.0f}: {sent:,} sent, {read:,} read"
        if self._console.is_terminal:
            self._status.update(Text(text))
        elif doing != self._last[1] or second >= self._last[0] + _LINE_SECONDS:
            self._last = (second, doing)
            print(text, flush=True)

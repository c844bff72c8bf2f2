"""The job that is driven: a copy of its files with a sink and a checkpoint of the run, and its process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_pace.errors import ConfigError, SetupError, one_line
from spark_pace.job_file import FilesSource, JobFile
from spark_pace.rules.document import Listing, Mapping, Node, Report, Scalar, read_document
from spark_pace_bench.spec import RunSpec

# for `python -c`, which looks for modules in the working folder first
COMMAND = "import sys; sys.path.sort(key=bool, reverse=True); from spark_pace.cli.main import main; main()"
_STOP_SECONDS = 60


class DrivenJob:
    """The files and the process of one run's job.

    Attributes:
        out: the folder of the run.
        events: the folder that the job reads, if it reads files.
        tables: where its tables will be.
        checkpoint: where its checkpoint will be.
        file: the job file.
    """

    def __init__(self, run: RunSpec, out: Path, source: dict[str, Any]) -> None:
        """Write the files.

        Args:
            run: the run.
            out: its folder, which is there and empty.
            source: what is said of the source beside what the job's file says.
        """
        self.out, self.events = out, out / "events"
        self.tables, self.checkpoint = out / "tables", out / "_checkpoint"
        self.file, self._end = out / "job.yaml", out / "job_end.yaml"
        self.log = out / "job.log"
        job = _values(run.job_file)
        files = JobFile(run.job_file, whole=False).sources.files
        if not files:
            must, do = "must name rule files to be driven", "Write its rules into a file."
            raise ConfigError.of(str(run.job_file), must, "a table of rules", do)
        rules = [self._copied(run, number, file) for number, file in enumerate(files)]
        path = {"path": str(self.events)} if isinstance(run.job.source, FilesSource) else {}
        job["source"] |= {**source, **path}
        job |= {"rules": [name for name in rules if name], "checkpoint": str(self.checkpoint)}
        job["sink"] = {"kind": "delta", "path": str(self.tables)}
        job.pop("alerts", None)  # nobody is called for made-up events
        _write(self.file, job)
        _write(self._end, {**job, "trigger": "available_now", "finish": True})

    def _copied(self, run: RunSpec, number: int, file: str) -> str | None:
        """The rules of a file that run, in a file of their own; None if none of them does."""
        document = _values(Path(file))
        kept = [rule for rule in document["rules"] if run.rules is None or rule["name"] in run.rules]
        document["rules"] = [
            {**rule, "name": rule["name"] if run.copies == 1 else f"{rule['name']}_{copy}"}
            for rule in kept
            for copy in range(1, run.copies + 1)
        ]
        _write(self.out / f"rules_{number}.yaml", document)
        return f"rules_{number}.yaml" if kept else None

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """`spark-pace run` in a process of its own, which is stopped at the end."""
        with self._process(self.file) as process:
            yield process

    @contextmanager
    def _process(self, file: Path) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-c", COMMAND, "run", str(file)]
        with open(self.log, "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            _stop(process)

    def require_running(self, process: subprocess.Popen[bytes]) -> None:
        """Refuse to go on without the job.

        Raises:
            SetupError: it has ended by itself.
        """
        if process.poll() is not None:
            self._fail(process.returncode)

    def finish(self) -> None:
        """Run it to the end of what was sent, on the same checkpoint.

        Raises:
            SetupError: it fails.
        """
        with self._process(self._end) as process:
            code = process.wait()
        if code:
            self._fail(code)

    def _fail(self, code: int) -> None:
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        said = next((one_line(line) for line in reversed(lines) if line.strip()), "nothing")
        must = "must run until it is stopped"
        raise SetupError(f"the job {self.file} — {must}; got exit code {code}: {said}. See {self.log}.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _values(path: Path) -> dict[str, Any]:
    """A file that was checked, as plain values."""
    document = read_document(path, Report())
    assert isinstance(document, Mapping)
    return {key: _value(node) for key, (_, node) in document.entries.items()}


def _value(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {key: _value(inner) for key, (_, inner) in node.entries.items()}
    if isinstance(node, Listing):
        return [_value(item) for item in node.items]
    return node.value if isinstance(node, Scalar) else None


def _write(path: Path, value: dict[str, Any]) -> None:
    """Write a value as JSON, which is YAML too."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

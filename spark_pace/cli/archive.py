"""Makes the archive of Java classes for `spark_pace.spark.java.launch`, from what a small job loads.

`make setup` runs it. If the jars lie elsewhere: ``SPARK_PACE_JARS=… python -m spark_pace.cli.archive``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import click

from spark_pace.errors import SparkPaceError, shown
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.internals import end_jvm
from spark_pace.spark.java.launch import JARS_VARIABLE, archives, jar_directory, keep

_JOB = """
name: archive
source: {kind: files, format: json, path: in, max_files_per_trigger: 1}
events: {schema: "t TIMESTAMP, k STRING, x BIGINT", event_time: t}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
trigger: available_now
"""
_RULES = """
rules:
  - name: pairs
    partition_by: [k]
    pattern: {sequence: [a: x = 0, b: x = 1]}
    within: 1 h
"""
_FILES = 2


def make(directory: Path) -> Path:
    """Make the archive in `directory`, which has the jars, and return its path; it never appears in part.

    Raises:
        SparkPaceError: the job failed.
        OSError: `directory` cannot be written to, or Java has not made an archive.
    """
    for old in archives(directory):  # Java makes none while it uses one
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=directory) as scratch:
        made = Path(scratch, "made")
        os.environ[JARS_VARIABLE] = str(directory)
        _run_twice(Path(scratch), f'"-XX:ArchiveClassesAtExit={made}" -Xlog:cds*=off')
        end_jvm()
        return keep(made, directory)


def _run_twice(folder: Path, options: str) -> None:
    """Run a small job in a JVM with these options, then run it once more, from its checkpoint."""
    (folder / "rules.yaml").write_text(_RULES, encoding="ascii")
    (folder / "in").mkdir()
    for run in range(2):
        for number in range(_FILES):
            minute = _FILES * run + number
            events = [{"t": f"2024-01-01T00:{minute:02d}:{x:02d}", "k": "a", "x": x} for x in range(2)]
            (folder / "in" / f"{minute}.json").write_text("\n".join(map(json.dumps, events)))
        spark = json.dumps({"spark.driver.defaultJavaOptions": options})
        own = f"finish: {'true' if run else 'false'}\nspark: {spark}\n"
        (folder / "job.yaml").write_text(_JOB + own, encoding="utf-8")
        run_job(read_job(folder / "job.yaml"))


@click.command()
def main() -> None:
    """Make the archive of classes; print a failure as one line."""
    try:
        archive = make(jar_directory())
    except (SparkPaceError, OSError) as error:
        print(f"the archive of classes — must be made for quick starts; got: {shown(error)}", file=sys.stderr)
        sys.exit(1)
    print(f"{archive.stat().st_size >> 20} MiB of classes in {archive}")


if __name__ == "__main__":
    main()

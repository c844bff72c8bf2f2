"""The long series of kills: ``python -m tests.long.chaos.run --kills 100 --records 500000``.

It starts a broker of its own.

Exit code 1 if anything differs from the run that nobody disturbs, or from what the core finds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from examples.kafka.broker import Broker
from spark_pace.errors import counted
from spark_pace.job_file import read_job
from tests.long.chaos.check import against, differences, tables_of
from tests.long.chaos.job import ORDERINGS
from tests.long.chaos.report import as_text, summary_of, write_report
from tests.long.chaos.series import Series, drawn_kills
from tests.long.chaos.stream import in_core, make_stream
from tests.long.chaos.topic import kill_for, produce, write_topic_job
from tests.spark.jobs import ROOT

REPORTS = ROOT / "out" / "chaos"
PARTITIONS = 4
TOPIC = "chaos"


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a job again and again, and compare what it writes.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--ordering",
        choices=tuple(ORDERINGS),
        default="watermark",
        help="sources: with heartbeats, repeats and a slow partition",
    )
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    broker = Broker(folder / "broker")
    try:
        broker.start()
        wrong = _compare(folder, broker, arguments)
    finally:
        broker.kill()
    if wrong:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    return int(wrong)


def _compare(folder: Path, broker: Broker, arguments: argparse.Namespace) -> bool:
    began = time.monotonic()
    batch = arguments.records // arguments.batches
    stream = make_stream(arguments.records, PARTITIONS, 2 * batch, by_source=arguments.ordering == "sources")
    source_of = produce(broker, TOPIC, stream)
    print(f"{counted(arguments.records, 'record')} produced; now a run that nobody disturbs", flush=True)
    # by sources no row may depend on how the input is cut, so this run cuts it otherwise
    own_batch = batch * 3 if arguments.ordering == "sources" else batch
    reference = write_topic_job(folder / "reference", broker, TOPIC, own_batch, arguments.ordering)
    undisturbed = Series(reference, folder / "reference" / "logs", arguments.seed).run([])

    job = write_topic_job(folder / "killed", broker, TOPIC, batch, arguments.ordering)
    series = Series(
        job,
        folder / "killed" / "logs",
        arguments.seed,
        lambda seconds: kill_for(broker, seconds),
        lambda line: print(line, flush=True),
    )
    outcome = series.run(drawn_kills(arguments.kills, arguments.seed))
    spec = read_job(job)
    tables = tables_of(spec.sink_path)
    apart = [
        *differences(tables, stream, in_core(spec, stream, source_of), source_of),
        *against(tables_of(read_job(reference).sink_path), tables),
    ]
    outcome.complaints += undisturbed.complaints
    summary = summary_of(outcome, tables, len(stream.lines), apart, (time.monotonic() - began) / 60)
    write_report(
        REPORTS / ("report.json" if arguments.ordering == "watermark" else f"{arguments.ordering}.json"),
        summary,
    )
    print(as_text(summary))
    return bool(apart or outcome.complaints or outcome.unspent)


if __name__ == "__main__":
    sys.exit(main())

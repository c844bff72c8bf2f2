"""The long series of kills: ``python -m tests.long.chaos.run --kills 100 --records 500000``.

With ``--all`` the job has alerts, rules that come and go, a clock, counters and a page too.
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
from tests.long.chaos.everything import TOLD, Watch, live_stream, rules_named
from tests.long.chaos.job import ORDERINGS
from tests.long.chaos.moments import IN_THE_END, OF_ALERTS, OF_FILES, OF_RULES
from tests.long.chaos.replayed import Read, differences_from_core, extras_compared, records_in
from tests.long.chaos.report import as_text, summary_of, write_report
from tests.long.chaos.series import Kill, Series, drawn_kills
from tests.long.chaos.stream import in_core, make_stream
from tests.long.chaos.target import wrongly_sent
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
    parser.add_argument("--all", action="store_true", help="alerts, changing rules, a clock, a page")
    arguments = parser.parse_args()
    if arguments.all and arguments.ordering != "watermark":
        parser.error("--all goes with --ordering watermark")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    broker = Broker(folder / "broker")
    try:
        broker.start()
        wrong = (_everything if arguments.all else _compare)(folder, broker, arguments)
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


def _everything(folder: Path, broker: Broker, arguments: argparse.Namespace) -> bool:
    """A series of a job that has everything, on a stream that happens meanwhile."""
    began = time.monotonic()
    broker.create_topic(TOPIC, PARTITIONS)
    watch = Watch.of(
        folder / "job", broker, TOPIC, live_stream(arguments.records, PARTITIONS), arguments.seed
    )
    series = Series(
        watch.job,
        folder / "logs",
        arguments.seed,
        lambda seconds: kill_for(broker, seconds),
        lambda line: print(line, flush=True),
        told=TOLD,
        behind=watch.behind,
    )
    others = [Kill("driver", moment) for moment in (*OF_ALERTS, *OF_RULES)]
    with watch.running():
        outcome = series.run(drawn_kills(arguments.kills, arguments.seed, others, (*IN_THE_END, *OF_FILES)))
    outcome.complaints += watch.complaints
    tables = tables_of(watch.spec.sink_path)
    records = records_in(broker, TOPIC, watch.feed.stream)
    read = Read.of(watch.notes, records, TOPIC)
    extras = extras_compared(
        tables, read, watch.spec, watch.notes, rules_named(watch.job, watch.changes.names)
    )
    apart = [
        *differences_from_core(tables, read, records, watch.spec),
        *extras.apart,
        *wrongly_sent(watch.target, tables),
    ]
    summary = summary_of(outcome, tables, watch.feed.count, apart, (time.monotonic() - began) / 60)
    summary |= {"alerts": watch.target.summary(), "rule_files": watch.changes.count, "extras": vars(extras)}
    summary |= {"answers": watch.asked, "ticks": read.ticks}
    write_report(REPORTS / "all.json", summary)
    print(as_text(summary))
    return bool(apart or outcome.complaints or outcome.unspent)


if __name__ == "__main__":
    sys.exit(main())

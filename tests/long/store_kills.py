"""The flights job with everything in a store, killed again and again: ``python -m tests.long.store_kills``.

Events, tables and checkpoint lie in a bucket, on a server that speaks S3. Between it and the job stands a
proxy that delays, refuses and cuts requests, and loses answers to what was done. With ``--hdfs`` they lie on
HDFS, no request fails by a proxy, and the server is killed as often as each process. The tables must have the
rows that the core finds in the same files, each batch once; and no file of a table and no chunk may be left
that nothing names.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click
import obstore
import yaml

from examples.cluster.store_server import StoreServer
from examples.flights.demo import compare
from examples.flights.demo_cluster import JOB
from examples.flights.events import write_events
from spark_pace.core.local_run import LocalResult
from spark_pace.io.query import read_table, table_at, tables_in
from spark_pace.io.replay import replay_files
from spark_pace.job_file import JobSpec, read_job
from tests.long.chaos.moments import IN_THE_END
from tests.long.chaos.series import Kill, Outcome, Series, kills_by_chance
from tests.support.faulty_store import FaultyStore
from tests.support.hdfs_server import HdfsServer

BUCKET = "flights"
PARTS = 4  # of a week's file
WHOM = ("driver", "group", "jvm", "worker", "daemon")
MOMENTS = (
    *("query unstarted", "state committed", "numbers unwritten", "numbers written"),
    *("matches written", "metrics written"),
)
TABLES = ("matches", "late", "quarantine", "metrics", "rule_changes")
TOLD = ("s3a://", "hdfs://")  # that a lease is waited for, or a request has failed


def drawn(chance: Random, count: int, whom: Sequence[str]) -> list[Kill]:
    """So many kills, two of them in the end."""
    ends = [Kill("driver", moment) for moment in IN_THE_END[-2:]]
    return [*kills_by_chance(chance, count - len(ends), whom, MOMENTS), *ends]


def split_events(folder: Path) -> None:
    """The flights of a year, in small files."""
    whole = folder.parent / "whole"
    write_events(whole)
    folder.mkdir()
    for path in sorted(whole.iterdir()):
        lines = path.read_text().splitlines(keepends=True)
        size = -(-len(lines) // PARTS)
        for part in range(PARTS):
            text = "".join(lines[part * size : part * size + size])
            (folder / f"{path.stem}-{part}{path.suffix}").write_text(text)


@dataclass(frozen=True)
class Ground:
    """Where the job has everything.

    Attributes:
        address: what lies below it.
        put: writes a file there.
        files: the names of all files there.
    """

    address: str
    put: Callable[[str, bytes], object]
    files: Callable[[], list[str]]


def in_store(store: StoreServer, name: str = BUCKET) -> Ground:
    """A new bucket."""
    bucket, data = store.bucket(name), store.data / name

    def files() -> list[str]:
        return [str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()]

    return Ground(f"s3a://{name}", lambda name, content: obstore.put(bucket, name, content), files)


def on_hdfs(server: HdfsServer, folder: str = BUCKET) -> Ground:
    """A new folder."""

    def files() -> list[str]:
        return [path.removeprefix(f"/{folder}/") for path in server.files(f"/{folder}")]

    return Ground(
        f"{server.address}/{folder}", lambda name, content: server.put(f"/{folder}/{name}", content), files
    )


def make_job(folder: Path, events: Path, ground: Ground) -> Path:
    """The demo's job, beside the events."""
    for path in sorted(events.iterdir()):
        ground.put(f"in/{path.name}", path.read_bytes())
    job = yaml.safe_load(JOB.read_text())
    job["source"] |= {"path": f"{ground.address}/in", "max_files_per_trigger": 1}
    job["rules"] = [str((JOB.parent / rules).resolve()) for rules in job["rules"]]
    job |= {"sink": {"kind": "delta", "path": f"{ground.address}/out"}}
    job |= {"checkpoint": f"{ground.address}/checkpoint", "spark": {"spark.master": "local[2]"}}
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False))
    return path


def differences(spec: JobSpec, events: Path) -> list[str]:
    """What is not as the core says, and batches that are not there once."""
    expected: LocalResult = replay_files(spec.rules, events, **spec.events.stream).result
    found = []
    for name, rows in (("matches", expected.matches), ("late", expected.late)):
        if apart := compare(name, read_table(spec.sink_path, name), rows):
            found.append(apart)
    batches = Counter(read_table(spec.sink_path, "metrics", ["batch_id"])["batch_id"].to_pylist())
    if sorted(batches.elements()) != list(range(len(batches))):
        found.append(f"metrics: {sorted(batches.elements())}")
    return found


def left_over(spec: JobSpec, ground: Ground) -> tuple[int, list[str]]:
    """(how many files of tables only a kill has left, what is there still once these are removed)."""
    orphans, left = 0, []
    for name in TABLES:
        place = tables_in(f"{spec.sink_path}/{name}", dict(spec.spark))
        table = table_at(place)
        orphans += len(table.vacuum(0, dry_run=False, enforce_retention_duration=False))
        named = {uri.rpartition("/")[2] for uri in table.file_uris()}
        there = (Path(path) for path in ground.files())
        files = {path.name for path in there if path.match(f"out/{name}/*.parquet")}
        left += [f"{name}/{file}" for file in sorted(files - named)]
    checkpoint = [Path(path) for path in ground.files() if path.startswith("checkpoint/")]
    left += [str(path) for path in checkpoint if path.parent.name == "waiting"]  # the input has ended
    kept = Counter(path.parent.name for path in checkpoint)
    return orphans, left + [f"{kept[name]} in {name}" for name in ("claims", "sequence") if kept[name] > 25]


@click.command()
@click.option("--kills", default=100, help="How many.")
@click.option("--share", default=0.01, help="Of the requests that something happens to.")
@click.option("--seed", default=0, help="The same seed, the same kills and faults, if not the same moments.")
@click.option("--hdfs", "is_on_hdfs", is_flag=True, help="Everything lies on HDFS, which is killed too.")
def main(kills: int, share: float, seed: int, is_on_hdfs: bool) -> None:
    """Kill the job, and compare what it writes with the core."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="killed-in-a-store-"))
    events = folder / "in"
    split_events(events)
    run = killed_on_hdfs if is_on_hdfs else killed_in_store
    outcome, spec, ground, end, faults = run(folder, events, kills, share, seed)
    apart = [*outcome.complaints, *differences(spec, events)]
    orphans, left = left_over(spec, ground)
    end()
    minutes = (time.monotonic() - began) / 60
    print(*outcome.by_itself, sep="\n")
    print(
        f"{len(outcome.survived)} kills in {minutes:.1f} minutes; {outcome.starts} starts, "
        f"{len(outcome.unspent)} not reached, {len(outcome.by_itself)} ended by themselves in one line\n"
        f"{faults}\n"
        f"{orphans} files of tables removed that no commit names\n"
        f"differences: {len(apart)}, files left: {len(left)}"
    )
    print(*apart, *left, sep="\n")
    if not apart and not left:
        shutil.rmtree(folder)
    sys.exit(int(bool(apart or left)))


Killed = tuple[Outcome, JobSpec, Ground, Callable[[], None], str]


def killed_in_store(folder: Path, events: Path, kills: int, share: float, seed: int) -> Killed:
    """(what happened, the job, where it has all, what ends the server, a line on the faults), in a store."""
    store = StoreServer(folder / "store")
    proxy = FaultyStore(int(store.endpoint.rpartition(":")[2]), share, seed)
    ground = in_store(store)
    job = make_job(folder, events, ground)
    os.environ.update(store.environment | {"AWS_ENDPOINT_URL": proxy.endpoint})
    outcome = Series(job, folder / "logs", seed, told=TOLD).run(drawn(Random(seed), kills, WHOM))
    os.environ.update(store.environment)
    faults = ", ".join(f"{fault} {times}" for fault, times in sorted(proxy.happened.items()))
    line = f"{proxy.requests:,} requests, of them {proxy.happened.total():,} with a fault: {faults}"
    return outcome, read_job(job), ground, store.kill, line


def killed_on_hdfs(folder: Path, events: Path, kills: int, share: float, seed: int) -> Killed:
    """The same on HDFS, whose server stands for the broker of other series."""
    server = HdfsServer(folder / "hdfs")
    ground = on_hdfs(server)
    job = make_job(folder, events, ground)

    def kill_server(away_s: int) -> None:
        server.kill()
        threading.Event().wait(away_s)
        server.start()

    series = Series(job, folder / "logs", seed, kill_server, told=TOLD)
    outcome = series.run(drawn(Random(seed), kills, (*WHOM, "broker")))
    times = sum(one.kill.whom == "broker" for one in outcome.survived)
    return outcome, read_job(job), ground, server.kill, f"the server killed {times} times, no other fault"


if __name__ == "__main__":
    main()

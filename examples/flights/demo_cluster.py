"""The flights job on a cluster: Spark's own, a master and workers of one core each, by `spark-submit`.

``make cluster-demo`` runs it: the job with two workers in client mode, then with three in cluster mode, where
the driver takes a core; each beside the same command with ``--master local[2]``. The machines' Python lacks
spark_pace: the package and the operators come by ``--py-files``, once as a wheel, once as a zip. With
``KILLS=3`` it runs once more, while executors, a worker and the driver are killed in turn.

``make cluster-store-demo`` does the same with events, tables and checkpoint in an object store, on a server
that speaks S3. As root, each worker runs on a machine of its own: a network name space that has no sight of
the events, and that is cut off for a minute where something is killed.

It compares the matches and the late events of every run, row by row, with what the core alone finds in the
same files, and exits 1 if one differs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import obstore
import yaml

from examples.cluster.machines import Machines
from examples.cluster.packed import ROOT, packed_engine, packed_operators
from examples.cluster.standalone import DRIVER, EXECUTOR, HOME, HOST, Cluster, bare_python
from examples.cluster.store_server import StoreServer
from examples.flights.demo import compared, replayed
from examples.flights.events import write_events
from spark_pace.errors import SparkPaceError, counted
from spark_pace.io.query import read_table
from spark_pace.job_file import read_job
from spark_pace.spark.java.jars import S3A

JOB = ROOT / "conf" / "jobs" / "flights.yaml"
OUT = ROOT / "out" / "cluster"
RUNNER = "org.apache.spark.deploy.PythonRunner"  # what starts Python for spark-submit
_END = re.compile(r"^[\d-]+ [\d:]+Z (finished|up to date|stopped).* events in ([\d.]+) s", re.MULTILINE)
_POLL_SECONDS = 0.2
_MOST_SECONDS = 1800
FILES_A_BATCH, FEW_KILLS = 4, 5
WORKERS = 3
BUCKET = "flights-demo"
AWAY_SECONDS = 60


class Demo:
    """What all runs have in common: the cluster, the packages, and the way to submit a job."""

    def __init__(self, cluster: Cluster, store: StoreServer | None = None) -> None:
        """Pack spark_pace and the operators, and make the Python of the machines.

        Args:
            cluster: it runs the jobs.
            store: what holds their events, tables and checkpoints; None: folders that all processes see.
        """
        self.cluster, self.store = cluster, store
        self.wheel, self.operators = packed_engine(OUT), packed_operators(OUT)
        self.zip = Path(shutil.copy(self.wheel, OUT / "spark_pace.zip"))
        self.environment = {"PYSPARK_PYTHON": str(bare_python(OUT / "python"))}
        self.expected = replayed(read_job(JOB))

    def local(self) -> float:
        """Run the job on two threads of one JVM, and return the seconds that the command took."""
        options = ["--master", "local[2]", "--py-files", f"{self.wheel},{self.operators}"]
        return self._run("local", [*options, str(ROOT / "jobs" / "run.py")])

    def client(self) -> float:
        """Run the job with its driver here."""
        options = ["--py-files", f"{self.wheel},{self.operators}"]
        return self._run("client", [*options, str(ROOT / "jobs" / "run.py")])

    def in_cluster(self, name: str, *settings: str, kills: int = 0) -> float:
        """Run the job with its driver on a worker, which starts it again when it ends too early."""
        sent = f"{self.zip},{self.operators}"
        options = ["--deploy-mode", "cluster", "--supervise", "--class", RUNNER, "--files", sent]
        options += ["--py-files", sent]
        for setting in (f"spark.pyspark.python={self.environment['PYSPARK_PYTHON']}", *settings):
            options += ["--conf", setting]
        jar = str(next((HOME / "jars").glob("spark-core_*.jar")))  # Spark asks for a jar that has the class
        return self._run(name, [*options, jar, str(ROOT / "jobs" / "run.py"), sent], kills)

    def _run(self, name: str, command: Sequence[str], kills: int = 0) -> float:
        bucket = f"s3a://{BUCKET}" if self.store else None
        job = _job_file(name, FILES_A_BATCH if kills <= FEW_KILLS else 1, bucket)
        jars = ",".join(map(str, [*(ROOT / "jars").glob("*.jar"), *(ROOT / "jars" / S3A).glob("*.jar")]))
        common = ["--properties-file", str(ROOT / "conf" / "spark-defaults.conf"), "--jars", jars]
        began = time.monotonic()
        process = self.cluster.submit(name, [*common, *command, str(job)], self.environment)
        mischief = Mischief(self.cluster, kills)
        seconds = 0.0
        for line in _lines(process, partial(self._told_in, name)):
            print(f"{name}: {line}", flush=True)
            if "Z batch " in line:
                mischief.after_batch()
            elif ended := _END.match(line):
                seconds = float(ended[2])
        code = process.wait()  # in cluster mode it has ended long ago
        everything = time.monotonic() - began
        if code or not seconds:
            raise SparkPaceError(f"{name} — must finish; got no such line. See {self.cluster.folder}.")
        spec = read_job(job)
        late, found = (read_table(spec.sink_path, table) for table in ("late", "matches"))
        difference = compared(spec, self.expected)
        print(
            f"{name}: {counted(found.num_rows, 'match')}, {counted(late.num_rows, 'late event')}; "
            f"job {seconds:.1f} s, everything {everything:.1f} s; "
            f"replay without Spark: {difference or 'identical'}",
            flush=True,
        )
        if difference or mischief.left:
            must = f"must write the rows of the replay after {counted(kills, 'kill')}"
            raise SparkPaceError(f"{name} — {must}; got {difference or f'{mischief.left} kills too few'}.")
        return everything

    def _told_in(self, name: str) -> list[Path]:
        """The files that a driver writes its progress to, each start on another worker to one of its own."""
        folder = self.cluster.folder
        return [folder / f"{name}.out", *sorted(folder.glob("worker-*/driver-*/stdout"))]


class Mischief:
    """Kills an executor, a worker and the driver in turn, one after every second batch.

    Where workers have machines of their own, that of the driver is cut off as well.
    """

    def __init__(self, cluster: Cluster, kills: int) -> None:
        """Nothing is killed yet."""
        self.left = kills
        self._cluster = cluster
        self._batches = 0
        kinds = [self._executor, self._worker, self._driver]
        self._next = itertools.cycle([*kinds, self._link] if cluster.machines else kinds)

    def after_batch(self) -> None:
        """Kill something, if it is time to."""
        self._batches += 1
        if self.left and self._batches % 2 == 0:
            print(next(self._next)(), flush=True)
            self.left -= 1

    def _executor(self) -> str:
        return self._killed(EXECUTOR, "an executor")

    def _driver(self) -> str:
        return self._killed(DRIVER, "the driver")

    def _killed(self, name: str, what: str) -> str:
        processes = self._cluster.running(name)
        for process in processes[-1:]:
            process.kill()
        return f"--- {what} was killed ({len(processes)} ran)"

    def _link(self) -> str:
        machines = self._cluster.machines
        assert machines is not None
        number = self._cluster.machine_of_driver()
        machines.cut_off(number)
        threading.Timer(AWAY_SECONDS, machines.join, [number]).start()
        return f"--- the machine of the driver was cut off, for {AWAY_SECONDS} s"

    def _worker(self) -> str:
        self._cluster.kill_worker(0)
        self._cluster.restart_worker(0)
        return "--- a worker was killed, with what it ran, and came back"


def main(kills: int, in_store: bool) -> int:
    """Run the demo; 0 if all runs write the rows of the replay."""
    events = Path(read_job(JOB).files.path)
    if not events.exists():
        print(f"{counted(write_events(events), 'event')} written to {events}")
    shutil.rmtree(OUT, ignore_errors=True)  # the demo's own output: each time from the start
    OUT.mkdir(parents=True)
    with ExitStack() as stack:
        machines = stack.enter_context(Machines(WORKERS, [events])) if in_store and not os.geteuid() else None
        store = stack.enter_context(_store(events, machines)) if in_store else None
        cluster = stack.enter_context(Cluster(OUT / "machines", machines=machines))
        demo = Demo(cluster, store)
        seconds = {"local[2]": demo.local(), "two workers, client mode": demo.client()}
        cluster.restart_worker(2)
        seconds["three workers, cluster mode"] = demo.in_cluster("cluster")
        if kills:
            speculation = ("spark.speculation=true", "spark.speculation.interval=100ms")
            seconds[f"the same, {counted(kills, 'kill')}"] = demo.in_cluster(
                "killed", *speculation, kills=kills
            )
    for name, taken in seconds.items():
        print(f"{name}: {taken:.1f} s, {taken / seconds['local[2]']:.2f} times local[2]")
    return 0


def _store(events: Path, machines: Machines | None) -> StoreServer:
    """A store that has the events; this process and what it starts find it by their environment."""
    server = StoreServer(OUT / "store", machines.here if machines else HOST)
    os.environ.update(server.environment)
    bucket = server.bucket(BUCKET)
    for path in sorted(events.iterdir()):
        obstore.put(bucket, f"flights/{path.name}", path)
    print(f"{counted(len(list(events.iterdir())), 'file')} put into {server.endpoint}/{BUCKET}")
    return server


def _job_file(name: str, files: int, bucket: str | None) -> Path:
    """The demo's job with a place of its own; all its paths are absolute, or addresses in a bucket."""
    spec, place = read_job(JOB), f"{bucket}/{name}" if bucket else str(OUT / name)
    job = yaml.safe_load(JOB.read_text(encoding="utf-8"))
    path = f"{bucket}/flights" if bucket else spec.files.path
    job["source"] |= {"path": path, "max_files_per_trigger": files}
    job["rules"] = [str((JOB.parent / rules).resolve()) for rules in job["rules"]]
    job |= {"sink": {"kind": "delta", "path": place}, "checkpoint": f"{place}/_checkpoint"}
    file = OUT / f"{name}.yaml"
    file.write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    return file


def _lines(process: subprocess.Popen[bytes], files: Callable[[], list[Path]]) -> Iterator[str]:
    """The whole lines that are added to files, until one tells of the job's end or the job has failed.

    Args:
        process: the one that submits the job. In client mode it is the driver.
        files: says which files.
    """
    begun = {path: path.stat().st_size for path in files() if path.suffix != ".out"}
    until = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < until:
        over = process.poll() is not None
        for path in files():
            with open(path, "rb") as file:
                file.seek(begun.get(path, 0))
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            begun[path] = begun.get(path, 0) + len(whole)
            for line in whole.decode("utf-8", "replace").splitlines():
                yield line
                if _END.match(line):
                    return
        if over and process.returncode:
            return
        threading.Event().wait(_POLL_SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The demo on a cluster.")
    parser.add_argument("--kills", type=int, default=0, help="processes to kill in a run more")
    parser.add_argument("--store", action="store_true", help="all in an object store")
    given = parser.parse_args()
    try:
        sys.exit(main(given.kills, given.store))
    except SparkPaceError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)

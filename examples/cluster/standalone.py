"""A cluster of Spark's own on this machine: a master and workers of one core each, in a folder of theirs.

`Cluster` starts them on free ports and ends all that runs on them, in any case: where this process is killed,
Linux ends the master and the workers, and what they have started ends with them.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from examples.cluster.machines import Machines
from spark_pace.errors import SetupError
from spark_pace.preflight import require_java

HOST = "127.0.0.1"
HOME = Path(pyspark.__file__).parent
EXECUTOR = "CoarseGrainedExecutorBackend"
DRIVER = "DriverWrapper"
_START_SECONDS = 300
_STOP_SECONDS = 10
_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1
_SMALL = {  # it runs for minutes: compiling for speed would cost more than it gains
    "SPARK_DAEMON_MEMORY": "256m",
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_LOGGING = """
rootLogger.level = warn
logger.deploy.name = org.apache.spark.deploy
logger.deploy.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


class Cluster:
    """A master and its workers.

    Attributes:
        folder: holds a log of each process, and the workers' own folders.
        master: what `spark-submit --master` takes.
        host: the address of this machine that workers reach.
        machines: those of the workers; None: all run here.
    """

    def __init__(self, folder: Path, workers: int = 2, machines: Machines | None = None) -> None:
        """Start them.

        Args:
            folder: where they write; it is made.
            workers: how many.
            machines: one for each worker; None: all run here.

        Raises:
            SetupError: Java is missing, or one of them does not come up.
        """
        require_java()
        self.folder = folder.absolute()
        (self.folder / "conf").mkdir(parents=True)
        (self.folder / "conf" / "log4j2.properties").write_text(_LOGGING, encoding="ascii")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._watched: dict[int, psutil.Process] = {}
        self.machines = machines
        self.host = machines.here if machines else HOST
        self.master = ""
        try:
            daemon = ["org.apache.spark.deploy.master.Master", "--host", self.host, "--port", "0"]
            self._start("master", [*daemon, "--webui-port", "0"])
            self.master = self._told("master", r"Starting Spark master at (\S+)")
            for number in range(workers):
                self._start_worker(number)
            for number in range(workers):
                self._await_worker(number)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        """The cluster, which runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    def restart_worker(self, number: int) -> None:
        """Start a worker again, and wait until the master has it.

        Raises:
            SetupError: it does not come up.
        """
        self._start_worker(number)
        self._await_worker(number)

    def kill_worker(self, number: int) -> None:
        """End a worker at once; its executors end when they notice."""
        process = self._processes.pop(f"worker-{number}")
        self._watch(process)
        process.kill()
        process.wait()

    def running(self, name: str) -> list[psutil.Process]:
        """The processes of a class of Spark that workers have started (`EXECUTOR`, `DRIVER`), by age."""
        found = []
        for process in self._below():
            with suppress(psutil.Error):
                if any(name in word for word in process.cmdline()):
                    found.append(process)
        return sorted(found, key=lambda process: process.create_time())

    def machine_of_driver(self) -> int:
        """The number of the worker that runs the driver which was started last; 0 if none does."""
        drivers = self.running(DRIVER)
        above = {process.pid for process in drivers[-1].parents()} if drivers else set()
        workers = {
            number: process.pid
            for number in range(len(self._processes))
            if (process := self._processes.get(f"worker-{number}"))
        }
        return next((number for number, pid in workers.items() if pid in above), 0)

    def submit(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start ``spark-submit --master … ARGUMENTS``; it writes to the logs `name`.out and `name`.log.

        Args:
            name: of the logs.
            arguments: what follows the master.
            environment: variables beside those of this process, less PYTHONPATH. In cluster mode the driver
                must find the address of its own machine, so SPARK_LOCAL_IP is left out.
        """
        command = [str(HOME / "bin" / "spark-submit"), "--master", self.master, *arguments]
        with (
            open(self.folder / f"{name}.out", "wb") as out,
            open(self.folder / f"{name}.log", "wb") as log,
        ):
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=self._environment(environment, is_here="cluster" not in arguments),
                preexec_fn=_end_with_this,
            )
        self._processes[name] = process
        return process

    def close(self) -> None:
        """End everything."""
        self._below()
        left = list(self._watched.values())
        for stop in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with suppress(psutil.Error):
                    stop(process)
            _, left = psutil.wait_procs(left, _STOP_SECONDS)
        self._processes.clear()

    def _start_worker(self, number: int) -> None:
        name = f"worker-{number}"
        host = self.machines.address(number) if self.machines else HOST
        daemon = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
        options = ["--cores", "1", "--memory", "2g", "--work-dir", str(self.folder / name)]
        self._start(name, [*daemon, *options, self.master], number)

    def _await_worker(self, number: int) -> None:
        self._told(f"worker-{number}", "Successfully registered with master")

    def _start(self, name: str, daemon: Sequence[str], machine: int | None = None) -> None:
        command, host = [str(HOME / "bin" / "spark-class"), *daemon], self.host
        if self.machines and machine is not None:
            command, host = self.machines.within(machine, command), self.machines.address(machine)
        with open(self.folder / f"{name}.log", "wb") as log:  # not what an earlier one has told
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment({"SPARK_LOCAL_IP": host}),
                preexec_fn=_end_with_this,
            )

    def _told(self, name: str, pattern: str) -> str:
        """What a process says in its log once it is ready."""
        log, until = self.folder / f"{name}.log", time.monotonic() + _START_SECONDS
        while self._processes[name].poll() is None and time.monotonic() < until:
            if found := re.search(pattern, log.read_text(encoding="utf-8", errors="replace")):
                return found[found.re.groups]
            threading.Event().wait(_POLL_SECONDS)
        must = f"must come up within {_START_SECONDS} s"
        raise SetupError(f"Spark's {name} — {must}; got none. See {log}.")

    def _environment(self, more: Mapping[str, str], is_here: bool = True) -> dict[str, str]:
        """Of a process: nothing that leads to this program's modules, unless it is in `more`."""
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
        conf = {"SPARK_CONF_DIR": str(self.folder / "conf")}
        here = {"SPARK_LOCAL_IP": self.host} if is_here else {}
        return {**kept, **_SMALL, **here, **conf, **more}

    def _below(self) -> list[psutil.Process]:
        for process in self._processes.values():
            self._watch(process)
        return [process for process in self._watched.values() if process.is_running()]

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Note a process and all that it has started: what outlives its parent must be ended too."""
        with suppress(psutil.Error):
            parent = psutil.Process(process.pid)
            for found in (parent, *parent.children(recursive=True)):
                self._watched[found.pid] = found


def bare_python(folder: Path) -> Path:
    """A Python with the packages of this one but without spark_pace, as machines of a cluster have it.

    Args:
        folder: where it is made.
    """
    venv.create(folder, symlinks=True)
    packages = Path(pyspark.__file__).parents[1]
    inside = next(folder.glob("lib/python*/site-packages"))
    (inside / "packages.pth").write_text(f"{packages}\n", encoding="utf-8")
    return folder / "bin" / Path(sys.executable).name


def _end_with_this() -> None:
    """Let Linux end the process with this one; ctrl-C is for this process to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

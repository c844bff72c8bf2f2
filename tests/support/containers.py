"""The services of docker-compose.yml without containers.

Their own commands run in a name space with the network and the mounts that they expect.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pyspark
import yaml

from examples.servers import BROKER_JARS
from spark_pace.preflight import java_command
from spark_pace.spark.java.jars import local_jars

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]

# The name space has a network of its own, in which every host is this machine, and empty folders in the place
# of the checkout's `out` and `data`. It ends when its standard input does.
NAME_SPACE = """
interface_up='import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))'
"$1" -c "$interface_up" || exit 97
mount --bind "$2/hosts" /etc/hosts || exit 98
mount --bind "$2/out" "$3/out" && mount --bind "$2/data" "$3/data" || exit 98
echo ready
exec cat
"""
JARS_STEP = "RUN python3 -m spark_pace.spark.java.jars && mv jars/*.jar /opt/spark/jars/\n"
SMALL = {  # the runs are short: compiling for speed would cost more than it gains
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_WORKER_CORES": "1",
    "SPARK_WORKER_MEMORY": "1g",
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Containers:
    """Starts services, and other commands beside them, until it is closed.

    Attributes:
        folder: holds what they write: `out`, and for each process a log.
    """

    def __init__(self, folder: Path) -> None:
        """Make the machine on which they will run."""
        self.folder = folder
        (folder / "hosts").write_text(
            f"127.0.0.1 localhost {socket.gethostname()} {' '.join(SERVICES)}\n", encoding="ascii"
        )
        for name in ("out", "data"):
            (folder / name).mkdir()
            (ROOT / name).mkdir(exist_ok=True)
        self._paths = {
            "/opt/spark-pace": ROOT,
            "/opt/spark": spark_home(folder / "spark"),
            "/var/lib/kafka/data": folder / "kafka",
        }
        spaces = "--user --map-root-user --net --mount --pid --fork --kill-child --mount-proc"
        command = ["unshare", *spaces.split()]
        command += ["sh", "-c", NAME_SPACE, "sh", sys.executable, str(folder), str(ROOT)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"
        self._started: list[subprocess.Popen[bytes]] = []
        self._inside = psutil.Process(self._holder.pid).children()[0].pid

    def close(self) -> None:
        """End all of them."""
        self._holder.communicate()
        for process in self._started:
            process.wait()

    def up(self, *names: str) -> dict[str, subprocess.Popen[bytes]]:
        """Start services, in order; those that others wait for to complete are waited for."""
        processes = {}
        for name in names:
            service = SERVICES[name]
            started = (
                self.kafka()
                if name == "kafka"
                else self.start(name, shlex.split(service["command"]), service["environment"])
            )
            processes[name] = started
            if any(
                _waits_for(other, name) == "service_completed_successfully" for other in SERVICES.values()
            ):
                assert started.wait() == 0, self.log(name)
        return processes

    def kafka(self) -> subprocess.Popen[bytes]:
        """The broker, with the settings that its image makes of the environment."""
        settings = {
            key.removeprefix("KAFKA_").lower().replace("_", "."): value
            for key, value in SERVICES["kafka"]["environment"].items()
        }
        file = self.folder / "server.properties"
        file.write_text(
            "".join(f"{key}={self._mapped(str(value))}\n" for key, value in settings.items()),
            encoding="ascii",
        )
        java = [str(java_command()), "-Xmx512m", "-cp", f"{BROKER_JARS}/*"]
        assert (
            self.start(
                "format",
                [*java, "kafka.tools.StorageTool", "format", "-t", "5L6g3nShT-eMCtK--X86sw", "-c", str(file)],
            ).wait()
            == 0
        )
        return self.start("kafka", [*java, "kafka.Kafka", str(file)])

    def start(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command inside, with a log of that name, and on its PATH the virtual environment's."""
        mapped = {key: self._mapped(value) for key, value in (environment or {}).items()}
        inherited = {
            key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")
        }
        path = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
        spaces = "--user --preserve-credentials --net --mount --pid"
        inside = ["nsenter", "--target", str(self._inside), *spaces.split(), "--"]
        inside += ["sh", "-c", 'cd "$0" && exec "$@"', str(ROOT)]
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [*inside, *map(self._mapped, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**inherited, **path, **SMALL, **mapped},
            )
        self._started.append(process)
        return process

    def processes(self, name: str) -> list[psutil.Process]:
        """The processes inside that run a class of Spark."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            java, *words = process.info["cmdline"] or [""]
            ours = any(str(self.folder / "spark") in word for word in words)
            if Path(java).name == "java" and ours and any(word.endswith(name) for word in words):
                found.append(process)
        return found

    def log(self, name: str) -> str:
        """What the processes of that name have said."""
        return (self.folder / f"{name}.log").read_text()

    def _mapped(self, text: str) -> str:
        for theirs, ours in self._paths.items():
            text = text.replace(theirs, str(ours))
        return text


def _waits_for(service: dict[str, Any], name: str) -> str | None:
    needs = service.get("depends_on", [])
    return needs.get(name, {}).get("condition") if isinstance(needs, dict) else None


def spark_home(home: Path) -> Path:
    """Make a Spark home as in the image: with the jars that `spark_pace.spark.java.jars` fetches.

    Left out is Spark's archive of Python modules: the image has PySpark installed.
    """
    package = Path(pyspark.__file__).parent
    (home / "jars").mkdir(parents=True)
    fetched = local_jars() if JARS_STEP in COMPOSE["x-spark"]["build"]["dockerfile_inline"] else []
    for jar in [*(package / "jars").glob("*.jar"), *map(Path, fetched)]:
        (home / "jars" / jar.name).symlink_to(jar)
    for part in ("bin", "sbin"):
        (home / part).symlink_to(package / part)
    return home

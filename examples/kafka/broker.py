"""A Kafka broker on this machine, for the demo, the tests and a first try.

It is one node (KRaft) that only this machine can reach.

``make kafka`` starts it in the background, ``make kafka-stop`` ends it; `Broker` is the same for programs.
Its jars are fetched once into ``jars/kafka`` and need no installation. Options of Java in the variable
``KAFKA_OPTS`` are taken as Kafka's own scripts take them.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

import psutil
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from examples.ports import free_port
from examples.servers import BROKER_JARS
from spark_pace.errors import SetupError
from spark_pace.preflight import java_command, require_java
from spark_pace.spark.java.jars import local_jars

HOST = "127.0.0.1"
FOLDER = Path(__file__).parents[2] / "out" / "kafka"
MEMORY = ("-Xmx512m", "-XX:+UseSerialGC")
START_SECONDS = 300
STOP_SECONDS = 30
_POLL_SECONDS = 0.2

# record times may lie far in the past (a replay): nothing is deleted for its age
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners={listeners},CONTROLLER://{host}:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
initial.broker.registration.timeout.ms={start_seconds}000
"""
_USERS = """\
sasl.enabled.mechanisms=PLAIN
listener.name.{protocol}.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""
_LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c{1}: %m%n
"""


class Broker:
    """One broker with its folder: settings, data, `broker.log` and `broker.pid`.

    Attributes:
        servers: where clients reach it (``host:port``).
        secure_servers: the same by protocol: SASL_PLAINTEXT for the users given, with the mechanism PLAIN;
            SSL for clients with a certificate; SASL_SSL for users again.
    """

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        users: Mapping[str, str] | None = None,
        tls: Mapping[str, str] | None = None,
    ) -> None:
        """Choose the ports; nothing is started.

        Args:
            folder: of this broker; its data stay there.
            port: where to listen; by default a free one.
            users: names and passwords for an authenticated listener, beside the open one.
            tls: Kafka's settings that begin with ``ssl.``, for listeners with encryption; clients need a
                certificate, users do not.
        """
        self.folder = folder.absolute()
        self.users = dict(users or {})
        self.tls = dict(tls or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._controller = port or free_port(), free_port()
        self.servers = f"{HOST}:{self._port}"
        protocols = [
            *(["SASL_PLAINTEXT"] if users else []),
            *(["SSL"] if tls else []),
            *(["SASL_SSL"] if users and tls else []),
        ]
        self.secure_servers = {protocol: f"{HOST}:{free_port()}" for protocol in protocols}

    @property
    def pid(self) -> int | None:
        """The running process, whoever started it."""
        try:
            pid = int((self.folder / "broker.pid").read_text(encoding="ascii"))
            ours = str(self._settings) in psutil.Process(pid).cmdline()  # the number may be another's by now
        except (OSError, ValueError, psutil.Error):
            return None
        return pid if ours else None

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            SetupError: Java or the jars are missing, the port is taken, or it does not come up.
        """
        require_java()
        if not local_jars(BROKER_JARS):
            raise SetupError(
                f"{BROKER_JARS} — must hold the broker's jars; got none. "
                "Run `make kafka`, which fetches them."
            )
        if self.pid:
            raise SetupError(
                f"{self.folder} — must be one broker's; got a second while process {self.pid} runs. "
                "Stop that one first."
            )
        _require_free(self._port)
        self._configure()
        self._reap()
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                self._java("kafka.Kafka"),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        (self.folder / "broker.pid").write_text(str(self._process.pid), encoding="ascii")
        self._wait_until_ready(self._process)

    def stop(self) -> None:
        """End it in good order; nothing happens if it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would (``kill -9``)."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again, if need be after a stop, on the same ports and data."""
        self.stop()
        self.start()

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic and wait until its partitions can be written.

        Args:
            name: the topic's.
            partitions: how many.
            settings: Kafka's settings of the topic, with ``_`` for a dot.
        """
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        topic = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        with self._admin() as admin:
            admin.create_topics({name: topic}, wait_for_metadata=True)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records, if it is there."""
        with self._admin() as admin:
            if name in admin.list_topics():
                admin.delete_topics([name])

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records of a partition in front of an offset, as retention does."""
        with self._admin() as admin:
            admin.delete_records({TopicPartition(topic, partition): before})

    def add_partitions(self, name: str, partitions: int) -> None:
        """Give a topic so many more partitions."""
        with self._admin() as admin:
            now = len(admin.describe_topics([name])[0]["partitions"])
            admin.create_partitions({name: now + partitions})
            admin.wait_for_topics([name])

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    def _admin(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.servers)

    def _java(self, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        options = [*MEMORY, *shlex.split(os.environ.get("KAFKA_OPTS", ""))]
        java = [str(java_command()), *options, logging, "-cp", f"{BROKER_JARS}/*"]
        return [*java, *arguments, str(self._settings)]

    def _configure(self) -> None:
        listeners = {"PLAINTEXT": self.servers, **self.secure_servers}
        text = _PROPERTIES.format(
            host=HOST,
            controller=self._controller,
            listeners=",".join(f"{protocol}://{servers}" for protocol, servers in listeners.items()),
            protocols=",".join(f"{protocol}:{protocol}" for protocol in listeners),
            folder=self.folder,
            start_seconds=START_SECONDS,
        )
        users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        text += "".join(
            _USERS.format(protocol=protocol.lower(), users=users)
            for protocol in self.secure_servers
            if protocol != "SSL"
        )
        text += "".join(f"{key}={value}\n" for key, value in self.tls.items())
        text += "listener.name.ssl.ssl.client.auth=required\n" if self.tls else ""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._settings.write_text(text, encoding="utf-8")
        (self.folder / "log4j2.properties").write_text(_LOGGING, encoding="ascii")
        if not (self.folder / "data" / "meta.properties").exists():
            cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            command = self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c")
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if answer.returncode:
                raise SetupError(
                    f"{self.folder} — must take a broker's data; "
                    f"got: {_last_line(answer.stdout + answer.stderr)}. Give another folder."
                )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < until:
            if self._answers():
                return
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        self.kill()
        log = self.folder / "broker.log"
        got = _last_line(log.read_text(encoding="utf-8", errors="replace"))
        raise SetupError(
            f"broker — must answer at {self.servers} within {START_SECONDS} s; got: {got}. See {log}."
        )

    def _answers(self) -> bool:
        try:
            socket.create_connection((HOST, self._port), timeout=1).close()
            with self._admin() as admin:
                return bool(admin.describe_cluster()["brokers"])
        except (OSError, KafkaError):
            return False

    def _end(self, number: signal.Signals) -> None:
        pid = self.pid
        if pid:
            process = psutil.Process(pid)
            process.send_signal(number)
            try:
                process.wait(STOP_SECONDS)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait()
        self._reap()
        (self.folder / "broker.pid").unlink(missing_ok=True)

    def _reap(self) -> None:
        """Take note that a process of ours has ended, whoever ended it."""
        if self._process is not None:
            self._process.wait()
            self._process = None


def _require_free(port: int) -> None:
    with socket.socket() as taken:
        # as the broker does: connections that have ended are no hindrance
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, port))
        except OSError:
            raise SetupError(
                f"port {port} — must be free for the broker; got one in use. "
                "Stop what listens there, or give another port."
            ) from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def main() -> int:
    """``start [--port N]`` or ``stop``; starting what runs already on that port is no error."""
    parser = argparse.ArgumentParser(description="A Kafka broker on this machine.")
    parser.add_argument("command", choices=("start", "stop"))
    parser.add_argument("--port", type=int, default=9092)
    arguments = parser.parse_args()
    broker = Broker(FOLDER, arguments.port)
    running = broker.pid
    try:
        if arguments.command == "stop":
            broker.stop()
            print("stopped" if running else "no broker runs")
        else:
            if not running:
                broker.start()
            elif (other := _address(broker)) != broker.servers:
                raise SetupError(
                    f"port {arguments.port} — must be that of the broker that runs; "
                    f"got one at {other} (process {running}). "
                    "Use that one, or stop it first: make kafka-stop"
                )
            print(
                f"Kafka answers at {broker.servers} (process {broker.pid}, "
                f"log {FOLDER / 'broker.log'}). Stop it: make kafka-stop"
            )
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _address(broker: Broker) -> str:
    """Where the running broker listens; it may have been started on another port than this one would be."""
    text = (broker.folder / "server.properties").read_text(encoding="utf-8")
    return text.split("listeners=PLAINTEXT://")[1].split(",")[0]


if __name__ == "__main__":
    sys.exit(main())

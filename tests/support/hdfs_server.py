"""A server of HDFS on this machine: a name node and a data node in one process. Its files stay when it ends.

Its jars are fetched by ``python -m examples.servers hdfs``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from hdfs_native import Client, WriteOptions

from examples.servers import HDFS_JARS, hadoop_jars
from spark_pace.preflight import java_command

START_SECONDS = 120
_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"


class HdfsServer:
    """One server with its folder.

    Attributes:
        address: of the name node.
        client: for what tests do there themselves.
    """

    def __init__(self, folder: Path) -> None:
        """Start it, and wait until it answers."""
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._folder = folder
        self.address = f"hdfs://127.0.0.1:{self._port}"
        self.start("-format")
        self.client = Client(self.address)

    def start(self, *options: str) -> None:
        """Start it again, on the files that it had."""
        ready = self._folder / "ready.xml"
        ready.unlink(missing_ok=True)
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        jars = os.pathsep.join([f"{HDFS_JARS}/*", *hadoop_jars()])
        settings = {"hdfs.minidfs.basedir": self._folder / "data", "dfs.namenode.safemode.extension": 0}
        given = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
        command = [str(java_command()), *quick, "-cp", jars, _MAIN, "-datanodes", "1", *options]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, "-nnport", str(self._port), *given, "-writeConfig", str(ready)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until_s = time.monotonic() + START_SECONDS
        while not ready.exists():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)
            if self._process.returncode is not None or time.monotonic() > until_s:
                self.kill()
                raise AssertionError((self._folder / "log").read_text()[-2_000:])

    def put(self, path: str, content: bytes) -> None:
        """Write a file, in place of one that is there."""
        with self.client.create(path, WriteOptions(overwrite=True)) as file:
            file.write(content)

    def files(self, folder: str) -> list[str]:
        """The paths of all files below a folder, sorted."""
        return sorted(one.path for one in self.client.list_status(folder, True) if not one.isdir)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal: to stop it in its tracks, or to wake it."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

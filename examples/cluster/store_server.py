"""A server that speaks S3, on this machine: it keeps buckets as folders and checks signatures.

Its jars are fetched by ``python -m examples.servers store``.
"""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote

from obstore.store import S3Store

from examples.ports import free_port
from examples.servers import STORE_JARS
from spark_pace.errors import SetupError
from spark_pace.preflight import java_command

HOST = "127.0.0.1"
NAME, SECRET = "reader", "correct-horse-battery"
START_SECONDS = 120
FETCH = "python -m examples.servers store"
_SETTINGS = """\
s3proxy.endpoint={endpoint}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={name}
s3proxy.credential={secret}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}
"""
_LOGGING = """\
<configuration>
  <appender name="all" class="ch.qos.logback.core.FileAppender">
    <file>{log}</file>
    <encoder><pattern>%msg%n</pattern></encoder>
  </appender>
  <logger name="org.gaul.s3proxy.S3ProxyHandler" level="DEBUG"/>
  <root level="INFO"><appender-ref ref="all"/></root>
</configuration>
"""
_REQUEST = re.compile(r"^request: .*\{(?P<method>[A-Z]+)@\w+ http://[^/]+(?P<path>\S*) HTTP", re.MULTILINE)


class StoreServer:
    """One server with its folder.

    Attributes:
        endpoint: where clients reach it.
        environment: the variables by which they find it and are let in.
        data: the folder with a folder for each bucket.
    """

    def __init__(self, folder: Path, host: str = HOST) -> None:
        """Start it, and wait until it answers.

        Args:
            folder: where it keeps what it has, and its log.
            host: the address of this machine at which it listens.

        Raises:
            SetupError: it does not come up.
        """
        self._at = (host, free_port(host))
        self.endpoint = f"http://{host}:{self._at[1]}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": NAME,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        self._log, self.data = folder / "store.log", folder / "data"
        self.data.mkdir(parents=True)
        settings = {"endpoint": self.endpoint, "name": NAME, "secret": SECRET, "folder": self.data}
        (folder / "store.conf").write_text(_SETTINGS.format(**settings), encoding="utf-8")
        (folder / "logging.xml").write_text(_LOGGING.format(log=self._log), encoding="utf-8")
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = f"-Dlogback.configurationFile={folder / 'logging.xml'}"
        java = [str(java_command()), *options, logging, "-cp", f"{STORE_JARS}/*", "org.gaul.s3proxy.Main"]
        self._process = subprocess.Popen(
            [*java, "--properties", str(folder / "store.conf")], stdin=subprocess.DEVNULL
        )
        self._wait_until_ready()

    def __enter__(self) -> StoreServer:
        """The server, which answers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.kill()

    def bucket(self, name: str) -> S3Store:
        """A new bucket."""
        (self.data / name).mkdir()
        return S3Store(
            name,
            endpoint=self.endpoint,
            access_key_id=NAME,
            secret_access_key=SECRET,
            client_options={"allow_http": True},
        )

    def requests(self) -> list[tuple[str, str]]:
        """(method, path) of each request so far."""
        found = _REQUEST.findall(self._log.read_text(encoding="utf-8"))
        return [(method, unquote(path)) for method, path in found]

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _wait_until_ready(self) -> None:
        for _ in range(START_SECONDS * 5):
            try:
                socket.create_connection(self._at, timeout=1).close()
                return
            except OSError:
                pass
            try:
                self._process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            break
        self.kill()
        must = f"must come up within {START_SECONDS} s"
        got = self._log.read_text(encoding="utf-8").strip() if self._log.exists() else "no log"
        raise SetupError(f"S3Proxy — {must}; got: {got[-500:]}. Fetch its jars: {FETCH}.")

"""An object store that takes connections and never answers."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class SilentStore:
    """Listens while the block runs.

    Attributes:
        asked: set once somebody has connected.
        environment: the variables by which it is reached.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._listens = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._listens.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "key",
            "AWS_REGION": "us-east-1",
        }

    def __enter__(self) -> SilentStore:
        threading.Thread(target=self._take, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listens.shutdown(socket.SHUT_RDWR)
        for connection in (self._listens, *self._taken):
            connection.close()

    def _take(self) -> None:
        while True:
            try:
                self._taken.append(self._listens.accept()[0])
            except OSError:
                return
            self.asked.set()

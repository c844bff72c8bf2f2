"""Posts alerts to an address, as a JSON array."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import responses
from math import inf
from typing import Any

from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InvalidHeader,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    TimeoutError,
)
from urllib3.util import Retry, Timeout

from spark_pace.alerts.sender import Alert, Refusal, SendError
from spark_pace.errors import one_line
from spark_pace.job_file.alerts import AlertTarget, HttpAddress

# what these say holds for every alert until the job or its place is corrected: the alerts wait
_WAIT = {401, 403, 404, 407, 408, 425, 429}
_NOT_TAKEN = {401, 403, 404, 407, 425, 429}
_NOT_SENT = (NewConnectionError, ConnectTimeoutError, NameResolutionError)
_REPLY_BYTES = 9_000  # far more than is shown, so that no secret is cut before it is masked
_AGAIN_SECONDS = 0.1
_JSON = "application/json"


class HttpPost:
    """Posts to one address over one connection, which it keeps."""

    refuses_all = True

    def __init__(self, to: HttpAddress, target: AlertTarget) -> None:
        """Connect to nothing yet."""
        self._to, self._seconds = to, target.timeout_us / 1e6
        self.most_rows = to.most_rows
        timeout = Timeout(connect=self._seconds, read=self._seconds)
        self._pool = PoolManager(num_pools=1, retries=False, timeout=timeout)
        self._connection: HTTPConnection | None = None
        self._is_late = False

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Post alerts, which are refused together or not at all."""
        body = f"[{','.join(alert.text for alert in alerts)}]".encode()
        seconds = self._seconds * (len(alerts) + 1)
        with self._broken_off_after(seconds):
            try:
                answer = self._pool.request(
                    "POST",
                    self._to.url,
                    body=body,
                    headers={"Content-Type": _JSON, "User-Agent": "spark_pace", **self._to.headers},
                    redirect=False,
                    preload_content=False,
                )
            except HTTPError as error:
                came = not isinstance(error, _NOT_SENT)
                text = f"no answer within {seconds:g} s" if self._is_late else _told(error, self._seconds)
                raise SendError(text, may_have_arrived=came) from error
            reply, status = _reply(answer), answer.status
        if 200 <= status < 300:
            return []
        if 400 <= status < 500 and status not in _WAIT:
            return [Refusal(alert, str(status), reply) for alert in alerts]
        pause = _asked_pause(answer)
        raise SendError(_named(status), may_have_arrived=status not in _NOT_TAKEN, pause_seconds=pause)

    def close(self) -> None:
        """Close the connection."""
        self._pool.clear()

    @contextmanager
    def _broken_off_after(self, seconds: float) -> Iterator[None]:
        """Break off what the block does with the connection once it has taken so long.

        Time-outs are of single steps, and a target that answers byte by byte has a step for each.
        """
        self._pool.connection_from_url(self._to.url).ConnectionCls = self._connected  # type: ignore[assignment]
        self._is_late, done = False, threading.Event()

        def watch() -> None:
            left = seconds
            while not done.wait(left):
                self._is_late, left = True, _AGAIN_SECONDS  # it may still be connecting
                with suppress(OSError, AttributeError):
                    # as of a plain socket, also with TLS, whose own way is not for two threads
                    socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)  # type: ignore[union-attr]

        watching = threading.Thread(target=watch, name="alerts limit", daemon=True)
        watching.start()
        try:
            yield
        finally:
            done.set()
            watching.join()

    def _connected(self, *args: Any, **options: Any) -> HTTPConnection:
        kind = HTTPSConnection if self._to.url.startswith("https:") else HTTPConnection
        self._connection = kind(*args, **options)
        return self._connection


def _reply(answer: BaseHTTPResponse) -> str:
    """The beginning of a reply; the connection is kept if that was all."""
    try:
        read = answer.read(_REPLY_BYTES)
    except HTTPError:  # the code was read, and it decides
        read = b""
    if answer.closed:
        answer.release_conn()
    else:
        answer.close()
    return read.decode("utf-8", "replace")


def _asked_pause(answer: BaseHTTPResponse) -> float | None:
    try:
        return Retry().get_retry_after(answer)
    except InvalidHeader:
        return None
    except (ValueError, OverflowError):  # a number, or a date, that is further away than Python can say
        return inf


def _named(status: int) -> str:
    return f"{status} {responses.get(status, '')}".rstrip()


def _told(error: HTTPError, seconds: float) -> str:
    """The error in one line, without the address, which may be a secret."""
    cause: BaseException = error
    while (below := cause.__cause__ or cause.__context__) is not None:
        cause = below
    if isinstance(cause, OSError) and cause.strerror:
        return one_line(cause.strerror)
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    return "a connection that was closed" if isinstance(error, ProtocolError) else type(error).__name__

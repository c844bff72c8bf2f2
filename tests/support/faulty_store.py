"""A proxy between a store and its clients that fails as networks and busy stores do, by chance.

What it does with a request follows from the seed and the number of the request among those it may fail for.
It also answers as a full store does, from a moment on, until there is room again.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from random import Random
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import IO
from urllib.parse import unquote

HOST = "127.0.0.1"
DELAYS = "delayed"  # the request is handed on later
FAILS = "answered with 500"  # the store does not hear of it
IS_BUSY = "answered with 503"  # nor of this
CUTS = "cut before"  # the connection ends, and the store has not heard of it
CUTS_ANSWER = "cut in the answer"  # the store has done it, and a part of the answer arrives
LOSES_ANSWER = "done, answer lost"  # the store has done it, and the connection ends
FAULTS = (DELAYS, FAILS, IS_BUSY, CUTS, CUTS_ANSWER, LOSES_ANSWER)
_LONGEST_DELAY_S = 0.5
# what stores answer that are full, or whose user is over a quota
OF_CEPH = "full as Ceph"
OF_MINIO = "full as MinIO"
OF_MINIO_QUOTA = "over a quota of MinIO"
_ERRORS = {
    FAILS: ("500 Internal Server Error", "InternalError", "We encountered an internal error."),
    IS_BUSY: ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
    OF_CEPH: ("403 Forbidden", "QuotaExceeded", ""),
    OF_MINIO: (
        "507 Insufficient Storage",
        "XMinioStorageFull",
        "Storage backend has reached its minimum free drive threshold.",
    ),
    OF_MINIO_QUOTA: ("400 Bad Request", "XMinioAdminBucketQuotaExceeded", "Bucket quota exceeded"),
}
_BODY = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{}</Code><Message>{}</Message></Error>"


class FaultyStore:
    """A proxy that listens on this machine.

    Attributes:
        endpoint: where clients reach it.
        happened: how often each fault happened; requests without one are not counted.
        requests: how many requests came.
        asked: each of them: its method, its path with what is asked there, and the client's name for itself.
    """

    def __init__(
        self, port: int, share: float, seed: int, faults: tuple[str, ...] = FAULTS, of: str = ""
    ) -> None:
        """Start it.

        Args:
            port: of the store, on this machine.
            share: of the requests that something happens to, from 0 to 1.
            seed: of the chance.
            faults: what happens to these, each as often as the others.
            of: a regular expression; nothing happens to requests without it in their first line.
        """
        self.happened: Counter[str] = Counter()
        self.requests = 0
        self.asked: list[tuple[str, str, str]] = []
        self._store = (HOST, port)
        self._share, self._seed, self._faults, self._of = share, seed, faults, re.compile(of.encode())
        self._drawn_for = 0
        self._full, self._full_at, self._is_full = "", re.compile(""), False
        self._lock = threading.Lock()
        proxy = self

        class Connection(BaseRequestHandler):
            def handle(self) -> None:
                with suppress(ConnectionError, EOFError):
                    proxy._serve(self.request)

        class Server(ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server((HOST, 0), Connection)
        self.endpoint = f"http://{HOST}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def fill(self, answer: str, at: str = "") -> None:
        """Answer each PUT as a full store does, from the next one on whose path has `at` in it."""
        with self._lock:
            self._full, self._full_at, self._is_full = answer, re.compile(at), False

    def make_room(self) -> bool:
        """Hand on each PUT again; return whether the store was full."""
        with self._lock:
            was_full, self._full, self._is_full = self._is_full, "", False
        return was_full

    def _drawn(self, head: bytes) -> tuple[str, Random]:
        """What happens to a request; empty for nothing."""
        method, path = head.split(b" ", 2)[:2]
        agent = _fields(head).get("user-agent", "")
        with self._lock:
            self.requests += 1
            name = unquote(path.decode("latin-1"))
            self.asked.append((method.decode(), name, agent))
            if self._full and method == b"PUT":
                self._is_full = self._is_full or self._full_at.search(name) is not None
                if self._is_full:
                    self.happened.update([self._full])
                    return self._full, Random()
            may_fail = self._of.search(head.partition(b"\r\n")[0]) is not None
            self._drawn_for += may_fail
            chance = Random(f"{self._seed} {self._drawn_for}")
            fault = chance.choice(self._faults) if may_fail and chance.random() < self._share else ""
            self.happened.update([fault] if fault else [])
        return fault, chance

    def _serve(self, client: socket.socket) -> None:
        """Hand on the requests of a connection, one after the other, until it ends or is cut."""
        with socket.create_connection(self._store) as store:
            from_client, from_store = client.makefile("rb"), store.makefile("rb")
            while (head := _head(from_client)) is not None:
                fault, chance = self._drawn(head)
                if fault == CUTS:
                    return
                if fault == DELAYS:
                    threading.Event().wait(chance.random() * _LONGEST_DELAY_S)
                if "100-continue" in _fields(head).get("expect", ""):
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    head = b"".join(line for line in head.splitlines(True) if not line.startswith(b"Expect"))
                body = _body(from_client, head)
                if fault in _ERRORS:
                    client.sendall(_error(fault, is_head=head.startswith(b"HEAD")))
                    continue
                store.sendall(head + body)
                answer = _answer(from_store, is_head=head.startswith(b"HEAD"))
                if fault == LOSES_ANSWER:
                    return
                if fault == CUTS_ANSWER:
                    client.sendall(answer[: chance.randrange(len(answer))])
                    return
                client.sendall(answer)


def _head(stream: IO[bytes]) -> bytes | None:
    """A request or an answer up to its empty line; None if the connection has ended."""
    lines = []
    while line := stream.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return None


def _fields(head: bytes) -> Mapping[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").splitlines()[1:])
    return {name.lower(): value.strip() for name, _, value in lines}


def _body(stream: IO[bytes], head: bytes) -> bytes:
    """What follows a head, as it is on the wire."""
    fields = _fields(head)
    if "chunked" not in fields.get("transfer-encoding", ""):
        return _exactly(stream, int(fields.get("content-length", 0)))
    parts = []
    while True:
        size = stream.readline()
        parts += [size, _exactly(stream, int(size.partition(b";")[0], 16) + 2)]
        if parts[-1] == b"\r\n":
            return b"".join(parts)


def _answer(stream: IO[bytes], is_head: bool) -> bytes:
    head = _head(stream)
    if head is None:
        raise EOFError
    has_body = not is_head and head.split()[1] not in (b"204", b"304")
    return head + (_body(stream, head) if has_body else b"")


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _error(fault: str, is_head: bool) -> bytes:
    status, *told = _ERRORS[fault]
    body = _BODY.format(*told)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + ("" if is_head else body)).encode()

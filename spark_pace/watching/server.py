"""Serves the page of a running job by HTTP, and tells whether the job is healthy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import AF_INET6, AddressFamily, getaddrinfo
from typing import Any
from urllib.parse import urlsplit

from spark_pace.errors import SetupError, one_line, shown
from spark_pace.io.html.template import plotly
from spark_pace.watching.page import POLICY, live_page, script

_LEAST_SECONDS = 3.0  # between two looks at the tables
_MOST_SHARE = 0.02  # of the time is spent on looks: of two cores, one hundredth
_SLOW_CLIENT_SECONDS = 10.0
_DAY = "max-age=86400"
_TYPES = {"html": "text/html", "js": "text/javascript", "json": "application/json"}
_POLICY = f"{POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Looks:
    """What is told of the job, looked up again once it is old, however many ask."""

    def __init__(self, look: Callable[[], Any]) -> None:
        """Look at nothing yet; `look` gives what JSON can hold."""
        self._look = look
        self._lock = threading.Lock()
        self._told: bytes | None = None
        self._until = 0.0

    def told(self) -> bytes:
        """JSON of what is told. Who asks while another one looks is given what was told before."""
        if self._lock.acquire(blocking=self._told is None):
            try:
                began = time.monotonic()
                if self._told is None or began >= self._until:
                    try:
                        self._told = json.dumps(self._look()).encode()
                    finally:
                        took = time.monotonic() - began
                        self._until = began + max(_LEAST_SECONDS, took / _MOST_SHARE)
            finally:
                self._lock.release()
        assert self._told is not None
        return self._told

    def end(self) -> None:
        """Wait for the end of a look, and look no more.

        A thread that is inside another language when Python ends would abort the process.
        """
        self._lock.acquire()


class Pages:
    """What there is to get, by path.

    Attributes:
        hosts: the names by which a browser may ask; None: any.
    """

    def __init__(self, name: str, look: Callable[[], Any], health: Callable[[], dict[str, Any]]) -> None:
        """Take the job's name, what tells of it, and what tells of its health."""
        self.hosts: set[str] | None = None
        self._looks = Looks(look)
        self._health = health
        self._of_path: dict[str, Callable[[], tuple[int, str, str, bytes]]] = {
            "/": lambda: (200, "html", "no-store", live_page(name).encode()),
            "/plotly.js": lambda: (200, "js", _DAY, _plotly()),
            "/page.js": lambda: (200, "js", "no-store", script().encode()),
            "/told.json": lambda: (200, "json", "no-store", self._looks.told()),
            "/healthz": self._healthz,
        }

    def end(self) -> None:
        """Look at the job no more; wait for the end of a look."""
        self._looks.end()

    def answer(self, path: str) -> tuple[int, str, str, bytes]:
        """(the code, the kind of the content, how long it may be kept, the content)."""
        page = self._of_path.get(path)
        if page is None:
            return 404, "json", "no-store", b'{"error": "there is no such page"}\n'
        try:
            return page()
        except Exception as error:  # before the tables are made, for example; the page goes on
            return 503, "json", "no-store", json.dumps({"error": one_line(shown(error))}).encode() + b"\n"

    def _healthz(self) -> tuple[int, str, str, bytes]:
        told = self._health()
        return 200 if told["healthy"] else 503, "json", "no-store", json.dumps(told).encode() + b"\n"


class _Handler(BaseHTTPRequestHandler):
    timeout = _SLOW_CLIENT_SECONDS
    server_version, sys_version = "spark-pace", ""

    def __init__(self, *arguments: Any, pages: Pages) -> None:
        self._pages = pages
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self._pages.hosts is not None and self._asked_host() not in self._pages.hosts:
            # a page of somebody else's, whose name leads to this machine, must not read this one
            self._send(403, "json", "no-store", b'{"error": "this name does not lead to the job"}\n')
            return
        self._send(*self._pages.answer(urlsplit(self.path).path))

    def _refuse(self) -> None:
        self._send(405, "json", "no-store", b'{"error": "only GET is answered"}\n')

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _asked_host(self) -> str | None:
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:
            return None

    def _send(self, code: int, kind: str, kept: str, content: bytes) -> None:
        self.send_response(code)
        headers = {
            "Content-Type": f"{_TYPES[kind]}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Cache-Control": kept,
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            **({"Allow": "GET"} if code == 405 else {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the job's output is its own."""


@contextmanager
def page_served(pages: Pages, host: str, port: int) -> Iterator[None]:
    """Answer at an address of this machine while the block runs, in threads of their own.

    Raises:
        SetupError: the port is taken, or the host is not one of this machine.
    """
    try:
        family, *_, address = getaddrinfo(host, port)[0]
        server = _server_of(family)((str(address[0]), port), partial(_Handler, pages=pages))
    except (OSError, UnicodeError) as error:
        must = "must be an address of this machine that is free"
        do = "Choose another port or host, or stop what has it: this job perhaps, if it runs already."
        raise SetupError(f"page — {must}; got {host}:{port}, {error}. {do}") from error
    if ip_address(str(address[0])).is_loopback:
        pages.hosts = {host, "localhost", "127.0.0.1", "::1"}
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _server_of(family: AddressFamily) -> type[ThreadingHTTPServer]:
    class Server(ThreadingHTTPServer):
        address_family = AF_INET6 if family == AF_INET6 else ThreadingHTTPServer.address_family
        daemon_threads = True
        block_on_close = False  # a slow client does not hold up the end of the job

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of clients that go away."""

    return Server


@cache
def _plotly() -> bytes:
    return plotly().encode()

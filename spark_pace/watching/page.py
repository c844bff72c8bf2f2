"""The page that shows a job, as a file that needs nothing beside itself, or as what a running job serves.

The server answers at a port however many ask, and whoever says nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import SHUT_RDWR, getaddrinfo, socket
from typing import Any
from urllib.parse import urlsplit

from spark_pace.errors import SetupError, one_line, shown
from spark_pace.io.timeline import filled, json_in_script, plotly
from spark_pace.job_file import Endpoint
from spark_pace.watching.facts import Facts

_SLOW_CLIENT_SECONDS = 10.0
_MOST_CONNECTIONS = 32
JSON = "application/json; charset=utf-8"

Answer = tuple[int, str, str, bytes]  # the code, the type of the content, how long it may be kept, itself
Answers = Callable[[str, str], Answer]  # by the path, and by the types of content that are accepted


def refusal(code: int, text: str) -> Answer:
    """What is answered where there is nothing else."""
    return code, JSON, "no-store", json.dumps({"error": text}).encode() + b"\n"


class _Handler(BaseHTTPRequestHandler):
    timeout = _SLOW_CLIENT_SECONDS
    server_version, sys_version = "spark-pace", ""

    def __init__(self, *arguments: Any, answers: Answers, hosts: set[str] | None, policy: str) -> None:
        self._answers, self._hosts, self._policy = answers, hosts, policy
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self._hosts is not None and self._asked_host() not in self._hosts:
            # a page of somebody else's, whose name leads to this machine, must not read what is here
            self._send(*refusal(403, "this name does not lead to the job"))
            return
        try:
            answer = self._answers(urlsplit(self.path).path, self.headers.get("Accept", ""))
        except Exception as error:  # before the tables are made, for example; the job goes on
            answer = refusal(503, one_line(shown(error)))
        self._send(*answer)

    def _refuse(self) -> None:
        self._send(*refusal(405, "only GET is answered"))

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _asked_host(self) -> str | None:
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:
            return None

    def _send(self, code: int, kind: str, kept: str, content: bytes) -> None:
        self.send_response(code)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": kept,
            "Content-Security-Policy": self._policy,
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


class _Server(ThreadingHTTPServer):
    """Gives each connection a thread. The oldest of too many is ended, so that who asks next is answered."""

    daemon_threads = True
    block_on_close = False  # a slow client does not hold up the end of the job
    request_queue_size = 128

    def __init__(self, family: int, address: tuple[str, int], handler: Callable[..., _Handler]) -> None:
        self.address_family = family
        self._open: dict[socket, None] = {}  # until their threads have ended
        super().__init__(address, handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        for oldest in [*self._open][:-_MOST_CONNECTIONS]:
            with suppress(OSError):
                oldest.shutdown(SHUT_RDWR)
        return len(self._open) < 2 * _MOST_CONNECTIONS  # threads whose connection is ended end soon

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            del self._open[request]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away."""


@contextmanager
def served(key: str, answers: Answers, at: Endpoint, policy: str = "default-src 'none'") -> Iterator[None]:
    """Answer at an address of this machine while the block runs, in threads of their own.

    Args:
        key: the key of the job file that names the address.
        answers: what is answered.
        at: the address.
        policy: what a browser may load for what it is answered.

    Raises:
        SetupError: the port is taken, or the host is not one of this machine.
    """
    try:
        family, *_, address = getaddrinfo(at.host, at.port)[0]
        is_loopback = ip_address(str(address[0])).is_loopback
        hosts = {at.host.lower(), "localhost", "127.0.0.1", "::1"} if is_loopback else None
        handler = partial(_Handler, answers=answers, hosts=hosts, policy=policy)
        server = _Server(family, (str(address[0]), at.port), handler)
    except (OSError, UnicodeError) as error:
        must = "must be an address of this machine that is free"
        do = "Choose another port or host, or stop what has it: this job perhaps, if it runs already."
        raise SetupError(f"{key} — {must}; got {at.host}:{at.port}, {error}. {do}") from error
    thread = threading.Thread(target=server.serve_forever, name=key, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_FOLDER = Path(__file__).parent
_STYLES = "style-src 'unsafe-inline'; img-src data: blob:"  # plotly styles what it draws
POLICY_OF_REPORT = f"default-src 'none'; script-src 'unsafe-inline'; {_STYLES}"
_POLICY = f"default-src 'none'; script-src 'self'; connect-src 'self'; {_STYLES}"
POLICY_OF_ANSWERS = f"{_POLICY}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HTML, _JS = "text/html; charset=utf-8", "text/javascript; charset=utf-8"
_DAY = "max-age=86400"
_LEAST_SECONDS = 3.0  # between two looks at the tables
_MOST_SHARE = 0.02  # of the time is spent on looks: of two cores, one hundredth
_FIRST_LOOK_SECONDS = 10.0  # for which those wait who ask meanwhile


def report(told: Facts) -> str:
    """The page as a file: what is told, and all scripts, are in it, and it may load nothing.

    Raises:
        ConfigError: plotly is not installed.
    """
    parts = {
        "policy": POLICY_OF_REPORT,
        "title": escape(told["name"]),
        "plotly": f"<script>{plotly()}</script>",
        "told": json_in_script(told),
        "script": f"<script>{script()}</script>",
    }
    return filled(_FOLDER / "page.html", parts)


def live_page(name: str) -> str:
    """The page of a running job, which asks for what it shows."""
    parts = {
        "policy": _POLICY,
        "title": escape(name),
        "plotly": '<script src="plotly.js"></script>',
        "told": "null",
        "script": '<script src="page.js"></script>',
    }
    return filled(_FOLDER / "page.html", parts)


def script() -> str:
    """The script of both."""
    return (_FOLDER / "page.js").read_text(encoding="utf-8")


class Pages:
    """What there is to get from the page, by path. However many ask, the job is looked at now and then."""

    def __init__(self, name: str, look: Callable[[], Any], health: Callable[[], dict[str, Any]]) -> None:
        """Take the job's name, what tells of it, and what tells of its health."""
        self._look, self._health = look, health
        self._looking = threading.Lock()
        self._told: bytes | None = None
        self._until = 0.0
        self._of_path: dict[str, Callable[[], Answer]] = {
            "/": lambda: (200, _HTML, "no-store", live_page(name).encode()),
            "/plotly.js": lambda: (200, _JS, _DAY, _plotly()),
            "/page.js": lambda: (200, _JS, "no-store", script().encode()),
            "/told.json": lambda: (200, JSON, "no-store", self.told()),
            "/healthz": self._healthz,
        }

    def told(self) -> bytes:
        """JSON of what is told. Who asks while another one looks is given what was told before.

        Raises:
            SetupError: nothing was, and the look takes long.
        """
        if self._looking.acquire(timeout=_FIRST_LOOK_SECONDS if self._told is None else 0):
            try:
                began = time.monotonic()
                if self._told is None or began >= self._until:
                    try:
                        self._told = json.dumps(self._look()).encode()
                    finally:
                        took = time.monotonic() - began
                        self._until = began + max(_LEAST_SECONDS, took / _MOST_SHARE)
            finally:
                self._looking.release()
        if self._told is None:
            must, got = "must be looked at before they are shown", "a look that is not done yet"
            raise SetupError(f"the tables — {must}; got {got}. Ask again.")
        return self._told

    def end(self) -> None:
        """Wait for the end of a look, and look no more.

        A thread that is inside another language when Python ends would abort the process.
        """
        self._looking.acquire()

    def answer(self, path: str, _accepted: str) -> Answer:
        """Implements `Answers`."""
        page = self._of_path.get(path)
        return refusal(404, "there is no such page") if page is None else page()

    def _healthz(self) -> Answer:
        told = self._health()
        return 200 if told["healthy"] else 503, JSON, "no-store", json.dumps(told).encode() + b"\n"


@cache
def _plotly() -> bytes:
    return plotly().encode()

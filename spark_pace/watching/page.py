"""The page that shows a job: as a file that needs nothing beside itself, or as what a running job serves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from spark_pace.errors import SetupError
from spark_pace.io.html.template import filled, json_in_script, plotly
from spark_pace.watching.facts import Facts
from spark_pace.watching.server import JSON, Answer, refusal

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


class Looks:
    """What is told of the job, looked up again once it is old, however many ask."""

    def __init__(self, look: Callable[[], Any]) -> None:
        """Look at nothing yet; `look` gives what JSON can hold."""
        self._look = look
        self._lock = threading.Lock()
        self._told: bytes | None = None
        self._until = 0.0

    def told(self) -> bytes:
        """JSON of what is told. Who asks while another one looks is given what was told before.

        Raises:
            SetupError: nothing was, and the look takes long.
        """
        if self._lock.acquire(timeout=_FIRST_LOOK_SECONDS if self._told is None else 0):
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
        if self._told is None:
            must, got = "must be looked at before they are shown", "a look that is not done yet"
            raise SetupError(f"the tables — {must}; got {got}. Ask again.")
        return self._told

    def end(self) -> None:
        """Wait for the end of a look, and look no more.

        A thread that is inside another language when Python ends would abort the process.
        """
        self._lock.acquire()


class Pages:
    """What there is to get from the page, by path."""

    def __init__(self, name: str, look: Callable[[], Any], health: Callable[[], dict[str, Any]]) -> None:
        """Take the job's name, what tells of it, and what tells of its health."""
        self._looks = Looks(look)
        self._health = health
        self._of_path: dict[str, Callable[[], Answer]] = {
            "/": lambda: (200, _HTML, "no-store", live_page(name).encode()),
            "/plotly.js": lambda: (200, _JS, _DAY, _plotly()),
            "/page.js": lambda: (200, _JS, "no-store", script().encode()),
            "/told.json": lambda: (200, JSON, "no-store", self._looks.told()),
            "/healthz": self._healthz,
        }

    def end(self) -> None:
        """Look at the job no more; wait for the end of a look."""
        self._looks.end()

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

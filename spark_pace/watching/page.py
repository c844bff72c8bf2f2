"""The page that shows a job: as a file that needs nothing beside itself, or as what a running job serves."""

from __future__ import annotations

from html import escape
from pathlib import Path

from spark_pace.io.html.template import filled, json_in_script, plotly
from spark_pace.watching.facts import Facts

_FOLDER = Path(__file__).parent
_STYLES = "style-src 'unsafe-inline'; img-src data: blob:"  # plotly styles what it draws
POLICY_OF_REPORT = f"default-src 'none'; script-src 'unsafe-inline'; {_STYLES}"
POLICY = f"default-src 'none'; script-src 'self'; connect-src 'self'; {_STYLES}"


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
        "policy": POLICY,
        "title": escape(name),
        "plotly": '<script src="plotly.js"></script>',
        "told": "null",
        "script": '<script src="page.js"></script>',
    }
    return filled(_FOLDER / "page.html", parts)


def script() -> str:
    """The script of both."""
    return (_FOLDER / "page.js").read_text(encoding="utf-8")

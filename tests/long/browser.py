"""Opens pages with matches on a time axis in Chromium, and checks what it makes of them: ``make browser``.

One page has a few matches whose keys are scripts, the other ten thousand; every one must be drawn and no
script of an event run. Chromium must be on the path (of Debian: the package `chromium`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import spark_pace

RULES = """
events: {schema: "time TIMESTAMP, type STRING, k STRING", event_time: time}
rules:
  - {name: pair, partition_by: [k], pattern: {sequence: [{a: type = 'a'}, {b: type = 'b'}]}, within: 10 s}
  - {name: alone, pattern: {sequence: [{a: type = 'b'}]}, context: "each, zero"}
"""
HOSTILE = "</script><script>document.title = 'taken'</script>"
MANY = 20_000
# as root, and without looking for anything on a network
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update"),
]


def events(number: int) -> list[dict[str, str]]:
    """Events a second apart, of the types a and b in turn."""
    first = datetime(2024, 1, 1, tzinfo=timezone.utc)
    times = [(first + timedelta(seconds=place)).isoformat() for place in range(number)]
    return [{"time": at, "type": "ab"[place % 2], "k": HOSTILE} for place, at in enumerate(times)]


def dom_of(page: Path, chromium: str) -> str:
    """What the browser has made of a page once its scripts have run."""
    command = [chromium, *FLAGS, f"--user-data-dir={page.parent}/profile", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def check(number: int, folder: Path, chromium: str) -> None:
    """Draw the matches of so many events, half of them of each rule, and check the page."""
    found, began = spark_pace.replay(RULES, events(number)), time.monotonic()
    dom = dom_of(found.timeline("two & <more>").write(folder / "page.html"), chromium)
    assert "<title>two &amp; &lt;more&gt;</title>" in dom, "a text of an event has run as a script"
    drawn = f'<span id="count">{len(found):,} of {len(found):,} matches</span>'
    assert len(found) == number and drawn in dom, f"not all of {len(found)} matches are drawn"
    assert "pair · b" in re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL), (
        "the legend lacks a component"
    )
    print(f"{len(found):,} matches drawn {time.monotonic() - began:.1f} s after they were found")


@click.command()
def main() -> None:
    """Open both pages in Chromium, and check them."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium — must be on the path; got none. Install it (of Debian: the package chromium).")
    for number in (20, MANY):
        with TemporaryDirectory() as folder:
            check(number, Path(folder), chromium)


if __name__ == "__main__":
    main()

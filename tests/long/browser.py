"""Opens pages in Chromium, and checks what it makes of them: ``make browser``.

Pages with matches on a time axis, one with a few matches whose keys are scripts, one with ten thousand; the
report of a job with ten rules and with a thousand, the live page of a job, and a page of the site of the
documents, as a file. Everything must be drawn, no script of an event run, no script of ours fail, and the
site's search find what it is asked for. Chromium must be on the path (of Debian: the package
`chromium`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import spark_pace
from examples.ports import free_port
from spark_pace.io.timeline import write_page
from spark_pace.job_file import Page
from spark_pace.watching.answering import answering
from spark_pace.watching.facts import facts
from spark_pace.watching.history import Seen
from spark_pace.watching.page import report
from spark_pace.watching.subject import Subject
from tests.support.watched import pairs_of_events, watched_job

RULES = """
events: {schema: "time TIMESTAMP, type STRING, k STRING", event_time: time}
rules:
  - {name: pair, partition_by: [k], pattern: {sequence: [{a: type = 'a'}, {b: type = 'b'}]}, within: 10 s}
  - {name: alone, pattern: {sequence: [{a: type = 'b'}]}, context: "each, zero"}
"""
HOSTILE = "</script><script>document.title = 'taken'</script>"
# a click on the first curve's name, and a refresh; the page tells which curves are shown before and after it
CLICK = """<script>
const shown = () => byId("kept").data.map(trace => String(trace.visible)).join();
setTimeout(() => {
  const name = document.querySelector("#kept .legendtoggle");
  ["mousedown", "mouseup"].forEach(kind => name.dispatchEvent(new MouseEvent(kind, { bubbles: true })));
  setTimeout(() => {
    const before = shown();
    draw();
    setTimeout(() => { document.body.dataset.shown = `${before} then ${shown()}`; }, 500);
  }, 2000);
}, 1000);
</script></body>"""
MANY = 20_000
# as root, and without looking for anything on a network
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000"),
]


def events(number: int) -> list[dict[str, str]]:
    """Events a second apart, of the types a and b in turn."""
    first = datetime(2024, 1, 1, tzinfo=timezone.utc)
    times = [(first + timedelta(seconds=place)).isoformat() for place in range(number)]
    return [{"time": at, "type": "ab"[place % 2], "k": HOSTILE} for place, at in enumerate(times)]


def dom_of(address: str, folder: Path, chromium: str) -> str:
    """What the browser has made of a page once its scripts have run; none of them may have failed."""
    command = [chromium, *FLAGS, f"--user-data-dir={folder}/profile", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    failed = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "WebGL" not in line]
    assert not failed, "\n".join(failed)
    return done.stdout


def check(number: int, folder: Path, chromium: str) -> None:
    """Draw the matches of so many events, half of them of each rule, and check the page."""
    found, began = spark_pace.replay(RULES, events(number)), time.monotonic()
    page = found.timeline("two & <more>").write(folder / "page.html")
    dom = dom_of(page.as_uri(), folder, chromium)
    assert "<title>two &amp; &lt;more&gt;</title>" in dom, "a text of an event has run as a script"
    drawn = f'<span id="count">{len(found):,} of {len(found):,} matches</span>'
    assert len(found) == number and drawn in dom, f"not all of {len(found)} matches are drawn"
    assert "pair · b" in re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL), (
        "the legend lacks a component"
    )
    print(f"{len(found):,} matches drawn {time.monotonic() - began:.1f} s after they were found")


def check_job(rules: int, folder: Path, chromium: str) -> None:
    """Draw the report and the live page of a job with so many rules, and check both."""
    watched, began = watched_job(folder, rules, pairs_of_events(60)), time.monotonic()
    for number in range(60):
        watched.batch({f"rule_{rule}": rule + 1 for rule in range(number % 3, rules, 3)})
    told = facts(Subject.of(watched.spec), Seen(watched.spec.sink_path), datetime.now(timezone.utc))
    write_page(report(told), folder / "report.html", "report")
    check_drawn(dom_of((folder / "report.html").as_uri(), folder, chromium), rules)
    page = (folder / "report.html").read_text().replace("</body>", CLICK)
    (folder / "clicked.html").write_text(page)
    hidden = "legendonly,true,true"
    dom = dom_of((folder / "clicked.html").as_uri(), folder, chromium)
    assert f'data-shown="{hidden} then {hidden}"' in dom, "a refresh undoes a click on the legend"
    port = free_port()
    with answering(replace(watched.spec, page=Page(port)), list):
        check_drawn(dom_of(f"http://127.0.0.1:{port}/", folder, chromium), rules)
    print(f"{rules:,} rules: the report and the live page drawn in {time.monotonic() - began:.1f} s")


def check_drawn(dom: str, rules: int) -> None:
    """Check the page of a job whose last rule has the most matches, and whose first is called by a script."""
    seen = re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL)
    assert f'data-drawn="{rules}"' in seen, "not all rules are drawn"
    assert f'<td class="plain">rule_{rules - 1}</td>' in seen, "the first rule is not the one with the most"
    assert seen.count('class="bars"') + seen.count('class="trace scatter') > 10, "plots are missing"
    assert "<title>watched" in seen and "taken</title>" not in seen, "a text of an event has run as a script"
    assert "<b>finds" not in seen and "&lt;b&gt;finds" in seen, "a description has become part of the page"


def check_site(folder: Path, chromium: str) -> None:
    """Search in a page of the documents that is opened as a file."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True, timeout=300)
    page = (folder / "docs" / "rules" / "explain.html").as_uri()
    found = re.search(r"(\d+) matching documents", dom_of(f"{page}?q=chronicle", folder, chromium))
    assert found is not None and int(found[1]) > 1, (
        "the site's search finds nothing in a page opened as a file"
    )
    print(f"the site's search, in a page opened as a file, finds {found[1]} documents")


@click.command()
def main() -> None:
    """Open all pages in Chromium, and check them."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("chromium — must be on the path; got none. Install it (of Debian: the package chromium).")
    for number in (20, MANY):
        with TemporaryDirectory() as folder:
            check(number, Path(folder), chromium)
    for rules in (1, 10, 1_000):
        with TemporaryDirectory() as folder:
            check_job(rules, Path(folder), chromium)
    with TemporaryDirectory() as folder:
        check_site(Path(folder), chromium)


if __name__ == "__main__":
    main()

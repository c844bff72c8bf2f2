"""The patterns of `docs/compared.md` in Flink CEP, Esper and Flink SQL: what they give, measured.

The page holds each pattern's stream and its text in every language. The engines run that text on that
stream (Flink CEP: the method of that name in `benchmarks/peers`, which must be what the page shows), one
engine after the other, and what they give goes to `benchmarks/peers/results.json`. A test compares the page
with that file.

    python -m benchmarks.compared [--engine Esper]... [NAME]...

Maven and a JDK of version 17 or later must be there; Maven puts what it fetches into `jars/peers`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compared.md"
PEERS = ROOT / "benchmarks" / "peers"
PATTERNS = PEERS / "src" / "main" / "java" / "peers" / "Patterns.java"
RESULTS = PEERS / "results.json"
# an engine, as the page names it: the language of its fences there, and its main
ENGINES = {"Flink CEP": ("java", "FlinkCep"), "Esper": ("epl", "Esper"), "Flink SQL": ("sql", "FlinkSql")}
JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "--add-opens=java.base/java.util=ALL-UNNAMED")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"- name: (\w+)")
EVENT = re.compile(r"(([a-z]+)\d+)(?:@([\d.]+))?(?:=(\d+)(?:,(\d+))?)?")
STREAM = re.compile(r"^Stream: `(.*)`", re.MULTILINE)
ROW = re.compile(r"^\| (spark_pace(?:, `[^`]+`)?|Flink CEP|Esper|Flink SQL) \| (.*) \|$", re.MULTILINE)
METHOD = re.compile(r"PatternStream<Event> (\w+)\(DataStream<Event> events\) \{\n(.*?)\n  \}\n", re.DOTALL)

Match = list[str]


@dataclass(frozen=True)
class Section:
    """A pattern of the page: its stream, its text by language, and what each engine is shown to give."""

    name: str
    stream: str
    texts: dict[str, str]
    shown: dict[str, str]

    def entry(self, engine: str, matches: list[Match]) -> dict[str, Any]:
        """What the file of results holds: the matches, and of which stream and text they are."""
        text = self.texts[ENGINES[engine][0]]
        words = " ".join([self.stream, *text.split()])
        return {"of": hashlib.sha256(words.encode()).hexdigest()[:16], "matches": matches}


def sections(page: str) -> list[Section]:
    """The patterns of the page, in its order: each section with a stream is one."""
    found = []
    for part in re.split(r"^## ", page, flags=re.MULTILINE):
        stream = STREAM.search(part)
        if stream:
            texts = dict(FENCE.findall(part))
            found.append(
                Section(NAME.search(texts["yaml"])[1], stream[1], texts, dict(ROW.findall(part)))  # type: ignore[index]
            )
    return found


def methods() -> dict[str, str]:
    """The body of each pattern's method for Flink CEP."""
    return dict(METHOD.findall(PATTERNS.read_text(encoding="utf-8")))


def shown(matches: list[Match]) -> str:
    """Matches as a cell of the page shows them."""
    return " ".join(f"({','.join(match)})" for match in matches) or "none"


def tidy(matches: list[Match], ids: list[str]) -> list[Match]:
    """Matches by their last events, each as its events in the order of the stream.

    A match that names no events is left as its values are.
    """
    place = {name: number for number, name in enumerate(ids)}
    tidied = []
    for match in matches:
        words = [word for value in match for word in value.split(",")]
        events = sorted((word for word in words if word in place), key=place.__getitem__)
        tidied.append(events or words)
    if not all(match[-1] in place for match in tidied):
        return tidied
    return sorted(tidied, key=lambda match: (place[match[-1]], [place[name] for name in match]))


def events_of(stream: str) -> list[dict[str, Any]]:
    """The events of a stream such as ``a1 b1@2.5 a2=7,1``, with their times in milliseconds since 1970."""
    events: list[dict[str, Any]] = []
    for word in stream.split():
        found = EVENT.fullmatch(word)
        if not found:
            raise ValueError(f"{PAGE} — an event must be such as a1, a1@2.5 or a1@2.5=7,1; got {word!r}.")
        name, kind, at, x, y = found.groups()
        time = round(float(at) * 1000) if at else (events[-1]["time"] + 1000 if events else 0)
        values = {key: None if value is None else int(value) for key, value in (("x", x), ("y", y))}
        events.append({"id": name, "type": kind, **values, "time": time})
    return events


def ids_of(stream: str) -> list[str]:
    """The ids of a stream's events, in its order."""
    return [event["id"] for event in events_of(stream)]


def build() -> str:
    """Compile the mains; the class path to run them with."""
    command = ["mvn", "--batch-mode", "--quiet", f"--file={PEERS / 'pom.xml'}", "compile"]
    command += ["-Dstyle.color=never", f"-Dmaven.repo.local={ROOT / 'jars' / 'peers'}"]
    subprocess.run(command, check=True, stdout=sys.stderr)  # rows go to standard output
    target = PEERS / "target"
    return f"{target / 'classes'}:{(target / 'classpath').read_text(encoding='utf-8').strip()}"


def run(engine: str, wanted: list[Section], classpath: str) -> dict[str, list[Match]]:
    """What the engine gives for each of these patterns."""
    ending, main_class = ENGINES[engine]
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for section in wanted:
            (Path(folder) / f"{section.name}.{ending}").write_text(section.texts[ending], encoding="utf-8")
            events = Path(folder) / f"{section.name}.jsonl"
            lines = [json.dumps(event) + "\n" for event in events_of(section.stream)]
            events.write_text("".join(lines), encoding="utf-8")
            arguments += [section.name, str(events)]
        command = [*JAVA, f"-Dpatterns={folder}", "-cp", classpath, f"peers.{main_class}", *arguments]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, list[Match]] = {section.name: [] for section in wanted}
    for line in output.splitlines():
        row = json.loads(line)
        found[row["pattern"]].append(row["match"])
    return {section.name: tidy(found[section.name], ids_of(section.stream)) for section in wanted}


def main() -> None:
    """Run what is asked for, and write the results engine by engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="patterns; all without it")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="all without it")
    arguments = parser.parse_args()
    page = sections(PAGE.read_text(encoding="utf-8"))
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results = {section.name: before.get(section.name, {}) for section in page}
    classpath = build()
    for engine in arguments.engine or ENGINES:
        wanted = [s for s in page if ENGINES[engine][0] in s.texts and s.name in (arguments.names or results)]
        found = run(engine, wanted, classpath) if wanted else {}
        for section in wanted:
            results[section.name][engine] = section.entry(engine, found[section.name])
            print(f"{section.name}: {engine}: {shown(found[section.name])}", file=sys.stderr)
        lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in results.items()]
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

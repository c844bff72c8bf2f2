"""The chosen moments: parts of the product, wrapped from outside to kill a process before or after them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.files import files, object_store
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.spark import queries, session
from spark_pace.spark.stages.merger import MergerHost

TABLES = ("matches", "late", "quarantine", "metrics")
BEFORE_THE_FIRST_BATCH = ("layout unwritten", "layout written", "query unstarted")
OF_FILES = ("chunk half written", "chunk written", "old chunk removed")  # of what waits
IN_A_BATCH = (
    *OF_FILES[:2],
    "state committed",
    "levels unwritten",
    "levels written",
    "numbers unwritten",
    "numbers written",
    OF_FILES[2],
    *(f"{table} written" for table in TABLES),
)
IN_THE_END = ("end found", "end half written", "end written")
OF_ALERTS = ("cursor unwritten", "cursor written")  # before a piece is sent, or behind it
OF_RULES = ("rules unwritten", "rules written")  # the layout, once a query of this start has begun
OF_LOOKUPS = ("lookup unwritten", "lookup written")  # copies of what tables hold, and which a batch has
WITH_THE_FIRST_BATCH = "rule_changes written"
MOMENTS = (
    WITH_THE_FIRST_BATCH,
    *BEFORE_THE_FIRST_BATCH,
    *IN_A_BATCH,
    *IN_THE_END,
    *OF_ALERTS,
    *OF_RULES,
    *OF_LOOKUPS,
)

_LOOK_S = 0.0002  # a file is written and synced in milliseconds

Tell = Callable[..., None]


@dataclass
class _Kill:
    """Kills once its moment has passed `skip` times."""

    whom: str
    moment: str
    skip: int
    tell: Tell
    jvm: int | None = None
    has_query: bool = False

    def at(self, moment: str) -> None:
        if moment != self.moment:
            return
        if self.skip:
            self.skip -= 1
            return
        self.moment = ""
        self.tell(killed=self.whom)
        if self.whom == "jvm":
            assert self.jvm is not None
            os.kill(self.jvm, signal.SIGKILL)
        elif self.whom == "group":
            os.killpg(0, signal.SIGKILL)
        elif self.whom == "all":
            for process in [*psutil.Process().children(recursive=True), psutil.Process()]:
                process.kill()
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def arm(whom: str, moment: str, skip: int, tell: Tell) -> None:
    """Kill at a moment of this process's job.

    Args:
        whom: `driver`, `group` (driver and JVM), `all` (the workers too) or `jvm`.
        moment: one of `MOMENTS`.
        skip: how many times the moment passes before.
        tell: hears of the kill before it happens.
    """
    assert moment in MOMENTS, moment
    kill = _Kill(whom, moment, skip, tell)
    _wrap_files(kill)
    _wrap_session(kill)
    _wrap_batches(kill)


def _wrap_files(kill: _Kill) -> None:
    replace, write = os.replace, object_store.write

    def named(path: AnyPath) -> str:
        folders = {"sequence": "numbers", "levels": "levels", "lookup": "lookup", "alerts": "cursor"}
        layout = "rules" if kill.has_query else "layout"
        return layout if path.name == "layout.json" else folders.get(path.parent.name, "other")

    def replaced(source: Any, target: Any) -> None:
        thing = named(Path(target))
        kill.at(f"{thing} unwritten")
        replace(source, target)
        kill.at(f"{thing} written")

    def put(path: StorePath, content: bytes) -> None:
        thing = named(path)
        kill.at(f"{thing} unwritten")
        write(path, content)
        kill.at(f"{thing} written")

    remove = files.remove

    def removed(*paths: AnyPath) -> None:
        remove(*paths)
        if paths[0].parent.name == "waiting":
            kill.at("old chunk removed")

    os.replace, files.remove = replaced, removed  # type: ignore[assignment]
    object_store.write = put


def _wrap_session(kill: _Kill) -> None:
    build, start = session.build_session, queries.start  # type: ignore[attr-defined]

    def built(*arguments: Any, **named: Any) -> Any:
        spark = build(*arguments, **named)
        kill.jvm = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        return spark

    def started(rows: Any, merger: MergerHost, *arguments: Any) -> Any:
        kill.at("query unstarted")
        kill.has_query = True
        if kill.moment in OF_FILES:
            threading.Thread(target=_watch, args=(kill, merger.checkpoint.chunks.folder), daemon=True).start()
        return start(rows, merger, *arguments)

    session.build_session, queries.start = built, started  # type: ignore[attr-defined]


def _watch(kill: _Kill, folder: AnyPath) -> None:
    """Tell the moments of the files that workers write."""
    known: set[str] = set(files.names(folder))
    while kill.moment:
        there = set(files.names(folder))
        for name in there - known:
            kill.at("chunk half written" if name.startswith(".") else "chunk written")
        known = there
        threading.Event().wait(_LOOK_S)


def _wrap_batches(kill: _Kill) -> None:
    append, report, write = DeltaTables.append, MergerHost._report, MergerHost._write
    ending = False

    def written(merger: MergerHost, *arguments: Any) -> Any:
        kill.at("state committed")  # the rows are there: every task of the batch has ended
        return write(merger, *arguments)

    def reported(merger: MergerHost, *arguments: Any) -> Any:
        nonlocal ending
        found = report(merger, *arguments)
        ending = found.finished
        if ending:
            kill.at("end found")
        return found

    def appended(tables: DeltaTables, table: str, rows: Any, batch_id: int) -> None:
        append(tables, table, rows, batch_id)
        kill.at(f"{table} written")
        if ending:
            kill.at("end written" if table == "metrics" else "end half written")

    MergerHost._write, MergerHost._report, DeltaTables.append = written, reported, appended  # type: ignore[method-assign,assignment]

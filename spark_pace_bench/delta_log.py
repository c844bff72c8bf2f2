"""When a Delta table's rows became visible: its log, read as files, without files that were joined."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote


@dataclass(frozen=True)
class Commit:
    """One entry of the log that added rows.

    Attributes:
        name: of the entry.
        committed: when readers began to see its rows, seconds since 1970.
        files: the Parquet files with these rows; none where it brings no rows, as when files are joined.
    """

    name: str
    committed: float
    files: tuple[Path, ...]


def commits(table: Path, known: Collection[str] = ()) -> Iterator[Commit]:
    """The entries of a table's log in their order but for the `known` ones; none if there is no table."""
    for log in sorted((table / "_delta_log").glob("*.json")):
        if log.name in known:
            continue
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        committed = next(
            (entry["commitInfo"]["timestamp"] / 1000 for entry in entries if "commitInfo" in entry), 0.0
        )
        added = [entry["add"]["path"] for entry in entries if "add" in entry and entry["add"]["dataChange"]]
        yield Commit(log.name, committed, tuple(table / unquote(path) for path in added))

"""Reads the tables of a job as often as somebody looks, each time only what is new in them.

Of sums over the rows of a table that grows, each file is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.errors import StateError
from spark_pace.io.delta_rs import tables_in
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.query import Tables
from spark_pace.spark.running import Running
from spark_pace.watching.history import COLUMNS, NOTHING, History

_FILES_AT_ONCE = 200


@dataclass(frozen=True)
class Summing:
    """What is added up.

    Attributes:
        table: the name of the table.
        columns: those that are read.
        of_rows: gives the sums of some rows, in a table.
        of_sums: gives the sums of sums that stand in one table below each other.
    """

    table: str
    columns: tuple[str, ...]
    of_rows: Callable[[pa.Table], pa.Table]
    of_sums: Callable[[pa.Table], pa.Table]


class Sums:
    """The sums of a table's rows so far.

    A table that has lost files, because somebody has put them together or deleted rows, is read anew.
    """

    def __init__(self, summing: Summing) -> None:
        """Read nothing yet."""
        self._summing = summing
        self._read: frozenset[str] = frozenset()
        self._sums: pa.Table | None = None

    def of(self, tables: Tables, require_running: Callable[[], None]) -> pa.Table:
        """The sums of the table as it is in `tables`.

        Args:
            tables: with the table.
            require_running: called between the files; what it raises ends the look, which is then forgotten.

        Raises:
            StateError: the table has lost a file.
        """
        table, columns = self._summing.table, self._summing.columns
        there = tables.files(table)
        known, sums = self._read, self._sums
        if sums is None or not known <= there.keys():
            known, sums = frozenset(), self._summing.of_rows(tables.rows_of(table, {}, columns))
        new = [file for file in there if file not in known]
        for start in range(0, len(new), _FILES_AT_ONCE):
            require_running()
            some = {file: there[file] for file in new[start : start + _FILES_AT_ONCE]}
            rows = self._summing.of_rows(tables.rows_of(table, some, columns))
            sums = self._summing.of_sums(pa.concat_tables([sums, rows]))
        self._read, self._sums = frozenset(there), sums  # all of it or, after an error, nothing
        return sums


Word = Literal["runs", "finished", "stopped", "unknown"]
_ROWS_AT_ONCE = 5_000
_OF_THE_LAST = (
    "batch_id",
    "slowest_source",
    "idle_names",
    "unheard_sources",
    "finished",
    "over_bound",
    *COLUMNS,
)
_READ = (*_OF_THE_LAST, "matches_by_rule", "absent")


class Seen:
    """What is known of the tables in a place.

    Attributes:
        out: the place.
        history: of all batches.
        last: the last batch's row in `metrics`, without what it is not needed for; None before the first.
    """

    def __init__(self, out: str | AnyPath) -> None:
        """Read nothing yet."""
        self.out = tables_in(out)
        self.history: History = NOTHING
        self.last: dict[str, Any] | None = None
        self._ended = False
        self._answers: dict[str, tuple[int, Any]] = {}
        self._sums: dict[str, Sums] = {}

    @property
    def done(self) -> int | None:
        """The number of the last batch; None before the first."""
        return None if self.last is None else int(self.last["batch_id"])

    def look(self) -> None:
        """Read the batches that were written since the last look.

        Raises:
            ConfigError: there is no table yet.
            StateError: a table is damaged.
        """
        after = -1 if self.last is None else self.last["batch_id"]
        tables = Tables(self.out, ["metrics"])
        answer = tables.query(
            f"SELECT {tables.columns('metrics', _READ)} FROM metrics WHERE batch_id > {after}"
        )
        read, history, last = list[pa.RecordBatch](), self.history, self.last
        for batch in answer:
            self._require_running()
            read.append(batch)
            if sum(one.num_rows for one in read) >= _ROWS_AT_ONCE:
                history, last = _with(history, last, pa.Table.from_batches(read))
                read = []
        if read:
            history, last = _with(history, last, pa.Table.from_batches(read))
        self.history, self.last = history, last  # all of it or, after an error, nothing

    def _require_running(self) -> None:
        if self._ended:
            must, do = "must be looked at while the job runs", "Start the job again."
            raise StateError(f"{self.out} — {must}; got its end. {do}")

    def end(self) -> None:
        """Let a look that another thread takes end early, in an error."""
        self._ended = True

    def asked(self, table: str, ask: Callable[[Tables], Any]) -> Any:
        """The answer of `ask` to a table in its present state; asked once for each state of it.

        Raises:
            ConfigError: there is no such table.
            StateError: the table is damaged.
        """
        tables = Tables(self.out, [table])
        version = tables.version(table)
        if self._answers.get(table, (None,))[0] != version:
            self._answers[table] = (version, ask(tables))
        return self._answers[table][1]

    def summed(self, summing: Summing, ask: Callable[[Tables, pa.Table], Any]) -> Any:
        """As `asked`, where `ask` is given the sums of the table's rows as well."""
        sums = self._sums.setdefault(summing.table, Sums(summing))
        return self.asked(summing.table, lambda tables: ask(tables, sums.of(tables, self._require_running)))


def state_word(seen: Seen, state: Running | None) -> Word:
    """`runs`, has `finished` its input, or is `stopped`; `unknown` without its checkpoint."""
    if state is not None and state.process is not None:
        return "runs"
    if seen.last is not None and seen.last["finished"]:
        return "finished"
    return "unknown" if state is None else "stopped"


def _with(history: History, last: dict[str, Any] | None, rows: pa.Table) -> tuple[History, dict[str, Any]]:
    """The history, and the row of the last batch, with further rows, which may come in any order."""
    place = pc.index(rows["batch_id"], pc.max(rows["batch_id"])).as_py()
    newest: dict[str, Any] = rows.select(_OF_THE_LAST).slice(place, 1).to_pylist()[0]
    if last is not None and last["batch_id"] > newest["batch_id"]:
        newest = last
    return history.after(rows), newest

"""Reads a job's tables without Spark, by SQL, in the engine (DataFusion) that delta-rs contains.

Here too is how delta-rs reaches the tables at a path, and what it says where it does not.

delta-rs can also return a dataset of pyarrow, but a script that has read a table in this way often aborts
when it ends (`terminate called without an active exception`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_pace.errors import ConfigError, StateError
from spark_pace.io.files.addresses import AT_START_S, AnyPath, path_at
from spark_pace.io.files.contract import (
    hdfs_table_failure,
    is_of_a_store,
    is_of_lost_object,
    store_failure,
    told_by,
)

_MISSING = re.compile(r"table '(\w+)' not found")  # in the engine's errors
TABLES = ("matches", "late", "quarantine", "metrics")  # what a batch may append to, and must know the age of
CHANGES = "rule_changes"  # tables of older releases lack it until the next start of their job
REFUSED = "alerts_refused"  # which a job has once a target of its alerts has refused one


def tables_in(place: str | AnyPath, spark: Mapping[str, str] | None = None) -> AnyPath:
    """The path of tables, as of `path_at`, where nobody waits long for a store that does not answer."""
    return path_at(place, spark, AT_START_S)


def store_options(place: AnyPath) -> dict[str, str] | None:
    """What delta-rs is told of a store. Of S3 it writes a commit by a put on condition that none is."""
    if isinstance(place, Path) or not place.is_in_store:
        return None
    given = dict(place.settings.given)
    if "endpoint" in given:
        given.setdefault("region", "us-east-1")  # else a machine of Amazon's is asked for it
    return given | {
        "allow_http": str(place.settings.may_be_plain(str(place))).lower(),
        "max_retries": "100",
        "retry_timeout": f"{place.patience_s}s",
        "timeout": "60s",
    }


def table_if_there(place: AnyPath, version: int | None = None) -> DeltaTable | None:
    """The table that is at a path, as `table_at` gives it; None if there is none.

    `DeltaTable.is_deltatable` would keep all threads of Python waiting for a store.
    """
    try:
        return table_at(place, version)
    except TableNotFoundError:
        return None


def table_at(place: AnyPath, version: int | None = None) -> DeltaTable:
    """The table that is at a path.

    Raises:
        TableNotFoundError: there is none.
        DeltaError: its log is damaged.
        OSError: it cannot be read.
        SetupError: the store cannot be read.
    """
    with told_by_store(place):
        return DeltaTable(str(place), version, store_options(place))


@contextmanager
def told_by_store(place: AnyPath) -> Iterator[None]:
    """Raise what a store answers as an error that says what to do. What is wrong with a table stays.

    Raises:
        SetupError: a store does not answer, or refuses a request.
    """
    try:
        yield
    except (OSError, DeltaError, pa.ArrowException) as error:
        text = told_by(error)
        if isinstance(place, Path) or isinstance(error, TableNotFoundError) or not is_of_a_store(text):
            raise
        if is_of_lost_object(text):  # the table is not whole
            raise
        raise (store_failure if place.is_in_store else hdfs_table_failure)(str(place), text) from None


class Tables:
    """The tables of a job, opened for SQL in their present state. Names are case-sensitive, as in rules.

    Attributes:
        schemas: the schema of each table.
        rules: the rules that have matches; empty before `add_rules`.
    """

    def __init__(
        self, out: str | AnyPath, names: Sequence[str] = TABLES, if_there: Sequence[str] = ()
    ) -> None:
        """Open the tables `names` in the place `out`, and those of `if_there` that are.

        Raises:
            ConfigError: a table is not there.
            StateError: the log of a table is damaged, or cannot be read.
            SetupError: a store does not answer, or refuses a request.
        """
        self._root = tables_in(out)
        self.schemas: dict[str, pa.Schema] = {}
        self.rules: list[str] = []
        self._tables: dict[str, DeltaTable] = {}
        self._engine = QueryBuilder()
        self._engine.execute("SET datafusion.sql_parser.enable_ident_normalization = false")
        for name in (*names, *if_there):
            try:
                table = table_at(self.place(name))
            except TableNotFoundError as error:
                if name in if_there:
                    continue
                must, got = "must be the `sink: path:` of a job that has run", f"no Delta table {name} there"
                raise ConfigError.of(str(out), must, got, "Name the folder with the tables.") from error
            except DeltaError as error:
                must, got = "must be a Delta table with a whole log", str(error).splitlines()[0]
                raise StateError(f"{out}/{name} — {must}; got: {got}. Restore the table.") from error
            except OSError as error:
                got = told_by(error).rstrip(".")
                must, do = "must be where it can be read", "Check the address and the way to it."
                raise StateError(f"{out}/{name} — {must}; got: {got}. {do}") from error
            self.schemas[name] = pa.schema(table.schema().to_arrow())
            self._tables[name] = table
            self._engine.register(name, table)

    def add_rules(self, sql: str) -> None:
        """Add a view of the matches of each rule that `sql` names, without columns that are null in all rows.

        Rules and their fields are known from the tables only, so a rule without matches has no view.
        """
        rules = self.query("SELECT DISTINCT rule FROM matches ORDER BY rule").read_all()
        self.rules = rules["rule"].to_pylist()
        for rule in self.rules:
            if rule not in self.schemas and re.search(rf"\b{re.escape(rule)}\b", sql):
                self._add_rule(rule)

    def _add_rule(self, rule: str) -> None:
        """Add the view of one rule; in Spark, `view_sql` of `spark_pace.io.delta_tables` makes the views."""
        rows = f"FROM matches WHERE rule = {text_of(rule)}"
        names = [name for name in self.schemas["matches"].names if name not in ("rule", "events", "batch_id")]
        counted = ", ".join(f"count({quoted(name)}) AS {quoted(name)}" for name in names)
        counts = self.query(f"SELECT {counted} {rows}").read_all()
        columns = [*(name for name in names if counts[name][0].as_py()), "events"]
        self._engine.execute(f"CREATE VIEW {quoted(rule)} AS SELECT {', '.join(map(quoted, columns))} {rows}")

    def columns(self, name: str, wanted: Iterable[str]) -> str:
        """SQL for columns of a table; those that a table of an older release lacks are null."""
        there = self.schemas[name].names
        return ", ".join(f"{'' if one in there else 'NULL AS '}{quoted(one)}" for one in wanted)

    def place(self, name: str) -> AnyPath:
        """Where a table lies."""
        return self._root / name

    def version(self, name: str) -> int:
        """The number of the table's last commit."""
        return self._tables[name].version()

    def newest(self, name: str, order: Sequence[str], most: int, ask: str = "{rows}") -> pa.Table:
        """The answer to `ask` over the rows that are the last by the columns `order`, the last first.

        Where the table's log says what its files hold, only files that may have such rows are read.
        """
        files = pa.table(self._tables[name].get_add_actions(flatten=True))
        least, greatest = f"min.{order[0]}", f"max.{order[0]}"
        where = ""
        if {"num_records", least, greatest} <= set(files.column_names):
            files = files.select(["num_records", least, greatest]).sort_by([(greatest, "descending")])
            enough = pc.cumulative_sum(pc.fill_null(files["num_records"], 0))
            needed = files.slice(0, pc.sum(pc.less(enough, most)).as_py() + 1 if files.num_rows else 0)
            bound = pc.min(needed[least]).as_py()
            if bound is not None and not files[least].null_count and not files[greatest].null_count:
                bound = bound if isinstance(bound, int) else f"'{bound.isoformat()}'"
                where = f"WHERE {quoted(order[0])} >= {bound}"
        by = ", ".join(f"{quoted(one)} DESC NULLS LAST" for one in order)
        rows = f"(SELECT * FROM {quoted(name)} {where} ORDER BY {by} LIMIT {most})"
        return self.query(ask.format(rows=rows)).read_all()

    def query(self, sql: str) -> pa.RecordBatchReader:
        """Answer one statement. Text columns of the answer may have Arrow's type string_view.

        Raises:
            ConfigError: the statement is wrong.
            StateError: raised while the answer is read: a table has lost a file, or a value cannot be
                computed.
        """
        try:
            answer = pa.RecordBatchReader.from_stream(self._engine.execute(sql))
        except DeltaError as error:
            got = " ".join(str(error).split()).replace("datafusion.public.", "").rstrip(".")
            rules = f"; as views the rules that have matches: {', '.join(self.rules)}" if self.rules else ""
            missing = _MISSING.search(got)
            do = f"If {missing[1]} is a rule, no match of it was written yet. " if missing else ""
            do += f"The tables are {', '.join(self.schemas)}{rules}. Names are case-sensitive."
            raise ConfigError.of("SQL", "must be a query that the tables can answer", got, do) from error
        return pa.RecordBatchReader.from_batches(answer.schema, _read(answer, self._root))


def _read(answer: pa.RecordBatchReader, root: AnyPath) -> Iterator[pa.RecordBatch]:
    try:
        with told_by_store(root):
            yield from answer
    except pa.ArrowException as error:
        got = str(error).splitlines()[0].rstrip(".")
        if "Parquet" in got or (not isinstance(root, Path) and is_of_lost_object(told_by(error))):
            must = "must have all its files as they were written"
            do = "Restore it together with the checkpoint."
            raise StateError(f"a table — {must}; got: {got}. {do}") from error
        raise StateError(f"the query — must come to its end; got: {got}. Change the query.") from error


def read_table(out: str | AnyPath, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one of a job's tables, without Spark and without a JVM.

    Args:
        out: the folder of the job's tables, its `sink: path:`.
        name: `matches`, `late`, `quarantine`, `metrics` or `rule_changes`.
        columns: the columns to read, in this order; by default all.

    Returns:
        The rows that the table has now, in no particular order. Times are timestamps in microseconds, UTC.

    Raises:
        ConfigError: the table or a column is not there.
        StateError: the table is damaged.
    """
    if name not in (*TABLES, CHANGES):
        do = f"Use one of: {', '.join((*TABLES, CHANGES))}."
        raise ConfigError.of("read_table", "must be given the name of a table", name, do)
    tables = Tables(out, [name])
    schema = tables.schemas[name]
    names = schema.names if columns is None else list(columns)
    for column in names:
        if column not in schema.names:
            must, do = f"must be given columns of {name}", f"Use some of: {', '.join(schema.names)}."
            raise ConfigError.of("read_table", must, column, do)
    rows = tables.query(f"SELECT {', '.join(map(quoted, names))} FROM {quoted(name)}").read_all()
    return rows.cast(pa.schema([schema.field(column) for column in names]))


def text_of(value: str) -> str:
    """A text as it stands in SQL."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """The name as an SQL identifier of DataFusion's, in double quotes."""
    return '"' + name.replace('"', '""') + '"'

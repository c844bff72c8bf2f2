"""Makes the Delta tables of a job, appends each batch to them exactly once, and makes views for SQL.

delta-rs writes a batch's rows, each column in the encoding that suits it: `docs/decisions/table-files.md`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError

from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.merger import matches_schema
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import Rule, column_name
from spark_pace.errors import ConfigError, FullStoreError, SetupError, one_line
from spark_pace.io.files.addresses import WHILE_RUNNING_S, AnyPath, path_at
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.io.own_tables import SinkOwner, last_batch, missing_columns, require_own_tables
from spark_pace.io.query import (
    CHANGES,
    TABLES,
    Tables,
    read_table,
    store_options,
    table_at,
    table_if_there,
    text_of,
    told_by_store,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _properties(schema: pa.Schema) -> WriterProperties:
    """How delta-rs writes the columns of a file: whole numbers as differences, texts by a dictionary.

    By the least and the greatest value of these, queries skip files. Floating-point columns have none: NaN
    counts as greater than all numbers, and writers of Parquet leave it out. Decimals have none, for a table's
    log has them as floating-point numbers.
    """
    whole = ColumnProperties(
        dictionary_enabled=False, encoding="DELTA_BINARY_PACKED", statistics_enabled="CHUNK"
    )
    text = ColumnProperties(dictionary_enabled=True, statistics_enabled="CHUNK")
    columns = {field.name: text for field in schema if _is_text(field.type)}
    columns |= {field.name: whole for field in schema if _is_whole(field.type)}
    others = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
    return WriterProperties(compression="ZSTD", default_column_properties=others, column_properties=columns)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))


def _is_whole(kind: pa.DataType) -> bool:
    """True for whole numbers, whose differences are usually smaller than the values themselves."""
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


QUARANTINE_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),  # record or selection
        ("reason", pa.string()),
        ("source", pa.string()),  # the source of a record, or of the first event of a selection
        ("offset", pa.int64()),
        ("raw", pa.binary()),  # a record, or the events of a selection as lines of JSON
        ("rule", pa.string()),  # the rule of a selection, like key and selection_id
        ("key", pa.string()),
        ("selection_id", pa.int64()),
        ("batch_id", pa.int64()),  # the batch that wrote the row; null in rows of older releases
    ]
)
_BATCH = pa.field("batch_id", pa.int64())  # the batch that wrote the row
CHANGES_SCHEMA = pa.schema(
    [
        ("batch_id", pa.int64()),  # the first batch with the change
        ("changed_at", pa.timestamp("us", "UTC")),  # when it was written
        ("rule", pa.string()),
        ("change", pa.string()),
        ("meaning", pa.string()),  # the parts of a rule that begins, as JSON
    ]
)
# A job adds an entry to the log of each table every few seconds, and old versions of a table that only grows
# say nothing new. With Delta's own retention (the log for a month, joined files for a week) a commit would
# list millions. Small files are joined by Spark's OPTIMIZE alone: if another process has joined files
# meanwhile, delta-rs (1.6) joins them once more and keeps their rows twice. A commit reads the log from its
# last checkpoint on, each entry in a thread of its own: with a checkpoint every 20 entries it takes half the
# time, and a third of the threads, that it takes with delta-rs's 100.
_CHECKPOINT_EVERY = 20
PROPERTIES = {
    "delta.checkpointInterval": str(_CHECKPOINT_EVERY),
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.logRetentionDuration": "interval 1 days",
}
_MOST_CONFLICTS, _PAUSE_S = 10, 0.1
# how Spark's conditions begin if a session has no extension and catalog of Delta's
_WITHOUT_DELTA = ("UNSUPPORTED_DATASOURCE", "DELTA_CONFIGURE_SPARK_SESSION")
T = TypeVar("T")


def table_schemas(rules: Sequence[Rule]) -> dict[str, pa.Schema]:
    """The schema of each table of a job with these rules."""
    of_events = (matches_schema(rules).append(_BATCH), LATE_SCHEMA.append(_BATCH))
    schemas = (*of_events, QUARANTINE_SCHEMA, METRICS_SCHEMA, CHANGES_SCHEMA)
    return dict(zip((*TABLES, CHANGES), schemas, strict=True))


def of_batch(rows: pa.Table, batch_id: int) -> pa.Table:
    """Rows with the number of their batch in the column `batch_id`, which they may have already."""
    if _BATCH.name in rows.column_names:
        return rows
    return rows.append_column(_BATCH, pa.repeat(pa.scalar(batch_id, _BATCH.type), rows.num_rows))


class DeltaTables:
    """Appends to the tables of one job, batch by batch.

    Each append is a transaction (`app_id`, batch id) of its table, so repeating it does nothing. Delta-rs
    writes in this process, to a mounted file system or to a store. No other process may write with this
    `app_id`, which the lock of the checkpoint ensures, and none with another `app_id`, which `claim`
    ensures: a batch calls it before it appends.
    """

    def __init__(self, root: str | AnyPath, app_id: str) -> None:
        """Take `root` as the place of the tables, and `app_id` as the writer's name in transactions."""
        self.writing: str | None = None  # the table that is being, or could not be, appended to
        self.root = path_at(root)
        self._app_id = app_id
        self._owner = SinkOwner(self.root, app_id)
        # a table as it was before the last append, its version then, the batch of that append
        self._open: dict[str, tuple[DeltaTable, int, int]] = {}

    def place(self, table: str) -> AnyPath:
        """Where a table lies."""
        return self.root / table

    def prepare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Make missing tables, so that SQL finds them before the first match; add missing columns to others.

        Further columns of a table stay; they are null in all rows that are appended from now on.

        Raises:
            StateError: a table has a column with the same name and another type.
        """
        for table, schema in schemas.items():
            self._patiently(self.place(table), partial(_prepare, self.place(table), schema))

    def last_batch(self, table: str) -> int:
        """The last batch that was appended to a table, -1 if none was."""

        def step() -> int:
            there = table_if_there(self.place(table))
            return -1 if there is None else last_batch(there, self._app_id)

        return self._patiently(self.place(table), step)

    def written(self, tables: Iterable[str]) -> dict[str, int]:
        """The last batch that was appended to each existing table, or -1.

        Raises:
            StateError: a table is damaged, or belongs to another checkpoint.
        """
        return self._patiently(self.root, lambda: require_own_tables(self._owner, tables))

    def claim(self) -> None:
        """Make this checkpoint the only one that writes to the tables.

        Raises:
            StateError: another one writes to them.
        """
        self._patiently(self.root, self._owner.claim)

    def rows(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a small table that is there."""
        return self._patiently(self.root, lambda: read_table(self.root, table, columns))

    def failed_selections(self, batch_id: int) -> int:
        """How many selections a batch has in the table `quarantine`, whichever of its tries wrote them."""
        query = f"SELECT kind FROM quarantine WHERE batch_id = {batch_id} AND kind = 'selection'"

        def step() -> int:
            return int(Tables(self.root, ["quarantine"]).query(query).read_all().num_rows)

        return self._patiently(self.root, step)

    def append_missing(self, table: str, rows: pa.Table, key: Sequence[str]) -> None:
        """Append those rows that the table does not have yet, for a batch that runs again.

        Args:
            table: the table's name.
            rows: at least one row.
            key: the columns that identify a row.
        """
        same = [f'(there."{name}" IS NOT DISTINCT FROM new."{name}")' for name in key]
        for name in key:  # with bounds, delta-rs reads only files that may hold these rows
            if pa.types.is_integer(rows.schema.field(name).type) and not rows[name].null_count:
                least, most = pc.min_max(rows[name]).values()
                same.append(f'there."{name}" BETWEEN {least} AND {most}')
        where = " AND ".join(same)

        def step() -> None:
            merge = table_at(self.place(table)).merge(
                rows,
                where,
                source_alias="new",
                target_alias="there",
                writer_properties=_properties(rows.schema),
            )
            merge.when_not_matched_insert_all().execute()

        self._patiently(self.place(table), step)

    def append(self, table: str, rows: pa.Table, batch_id: int) -> None:
        """Append a batch's rows, unless that was done before. The sink must be claimed."""
        self.writing = str(self.place(table))
        self._patiently(self.place(table), partial(self._append, table, rows, batch_id))
        self.writing = None

    def _append(self, table: str, rows: pa.Table, batch_id: int) -> None:
        there, done = self._opened(table)
        if done >= batch_id:
            return
        before = there.version()
        write_deltalake(
            there,
            rows,
            mode="append",
            schema_mode="merge",
            writer_properties=_properties(rows.schema),
            commit_properties=CommitProperties(app_transactions=[Transaction(self._app_id, batch_id)]),
            post_commithook_properties=_hooks(before + 1),
        )
        self._open[table] = there, before, batch_id

    def _opened(self, table: str) -> tuple[DeltaTable, int]:
        """A table and the last batch that was appended to it.

        Both are known from the last append, unless that try has failed, or somebody else has written since:
        perhaps a job that has taken the checkpoint over.
        """
        if table in self._open:
            there, before, done = self._open.pop(table)
            there.update_incremental()  # delta-rs leaves it as it was before its own commit
            return there, done if there.version() == before + 1 else last_batch(there, self._app_id)
        there = table_at(self.place(table))
        return there, last_batch(there, self._app_id)

    def _patiently(self, place: AnyPath, step: Callable[[], T]) -> T:
        """Take a step, and repeat it if it fails in a way that the next try may not.

        Another job may make or alter the table at the same moment: it has not noticed yet that the sink is
        not its own. A store may have done what was asked, and its answer be lost; the next try sees that.
        """
        conflicts, until_s = 0, time.monotonic() + WHILE_RUNNING_S
        while True:
            try:
                with told_by_store(place):
                    return step()
            except CommitFailedError:
                conflicts += 1
                if conflicts > _MOST_CONFLICTS:
                    raise
            except SetupError as error:
                if not error.may_pass or isinstance(error, FullStoreError) or time.monotonic() > until_s:
                    raise
                threading.Event().wait(_PAUSE_S)


def _hooks(version: int) -> PostCommitHookProperties:
    """What follows the commit of a version; old entries are looked for only where a checkpoint is written.

    For that takes a list of the whole log.
    """
    return PostCommitHookProperties(cleanup_expired_logs=version % _CHECKPOINT_EVERY == 0)


def _prepare(place: AnyPath, schema: pa.Schema) -> None:
    there = DeltaTable.create(
        str(place), schema, mode="ignore", configuration=PROPERTIES, storage_options=store_options(place)
    )
    wanted = Schema.from_arrow(schema)
    missing = missing_columns(place, there.schema(), wanted)
    if missing:
        there.alter.add_columns([field for field in wanted.fields if field.name in missing])


def view_sql(rule: Rule, root: str) -> str:
    """The SQL that makes a temporary view of a rule's matches in Spark, with the columns that the rule fills.

    The view has the rule's name; `root` is the folder of the job's tables. For SQL without Spark, `Tables` in
    `spark_pace.io.query` makes views.
    """
    left_out = {"rule", "events"} if rule.partition_by else {"rule", "key", "events"}
    fixed = [name for name in FIXED_COLUMNS if name not in left_out]
    names = [*fixed, *map(column_name, rule.partition_by), *(field.name for field in rule.emit), "events"]
    columns = ", ".join(map(quoted, names))
    return (
        f"CREATE OR REPLACE TEMP VIEW {quoted(rule.name)} AS SELECT {columns} "
        f"FROM delta.{quoted(f'{root}/matches')} WHERE rule = {text_of(rule.name)}"
    )


def create_views(spark: SparkSession, root: str, rules: Iterable[Rule] = ()) -> tuple[str, ...]:
    """Make temporary views in Spark: one of each table of a job, and one of each rule's matches.

    Returns:
        The names of the views.

    Raises:
        ConfigError: `root` has no tables of a job, or the session does not know Delta tables.
    """
    from delta.tables import DeltaTable as TableOfSpark
    from pyspark.errors import AnalysisException

    try:
        names = [*TABLES, *([CHANGES] if TableOfSpark.isDeltaTable(spark, f"{root}/{CHANGES}") else [])]
        views = {
            name: f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM delta.{quoted(f'{root}/{name}')}"
            for name in names
        }
        views |= {rule.name: view_sql(rule, root) for rule in rules}
        for view in views.values():
            spark.sql(view)
    except TypeError as error:  # where a class of Delta's should be, the JVM has none to call
        raise _without_delta() from error
    except AnalysisException as error:
        if (error.getCondition() or "").startswith(_WITHOUT_DELTA):
            raise _without_delta() from error
        must, do = "must have the tables of a job", "Name the path of the job's sink, once the job has run."
        raise ConfigError.of(root, must, one_line(error.getMessage() or str(error)), do) from error
    return tuple(views)


def _without_delta() -> ConfigError:
    must, got = "must know Delta tables", "a session without Delta's jars, or its extension and catalog"
    do = "Build it by build_session of spark_pace.spark.session, or as Delta's documents say."
    return ConfigError.of("spark", must, got, do)


def quoted(name: str) -> str:
    """The name as an SQL identifier of Spark's, in backquotes."""
    return "`" + name.replace("`", "``") + "`"

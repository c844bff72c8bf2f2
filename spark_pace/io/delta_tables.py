"""Makes the Delta tables of a job, appends each batch to them exactly once, and makes views for SQL.

A batch's rows are one Parquet file, each column in the encoding that suits it. delta-rs encodes all columns
inside lists alike, which takes longer and gives larger files: `docs/decisions/table-files.md`.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
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
from deltalake.transaction import AddAction

from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.merger import matches_schema
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.core.plan.rule import Rule, column_name
from spark_pace.errors import ConfigError, FullStoreError, SetupError, one_line
from spark_pace.io import delta_rs
from spark_pace.io.files import files
from spark_pace.io.files.addresses import WHILE_RUNNING_S, AnyPath, StorePath, path_at
from spark_pace.io.metrics import METRICS_SCHEMA
from spark_pace.io.own_tables import SinkOwner, missing_columns, require_own_tables
from spark_pace.io.query import CHANGES, TABLES, Tables, read_table, text_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_YEARS = (np.datetime64("0001-01-01"), np.datetime64("9999-12-31"))  # the days that a log can name


def _is_plain(table: DeltaTable, rows: pa.Table) -> bool:
    """True if an append needs one file of rows and nothing else; False for tables that were altered."""
    if table.metadata().partition_columns or table.protocol().min_writer_version > 2:
        return False
    fields = {field.name: field for field in table.schema().fields}
    free = all(field.nullable and not field.metadata for field in fields.values())
    return free and fields.keys() >= set(rows.column_names)


def _bounds_by_delta_rs(schema: pa.Schema) -> WriterProperties:
    """Of which columns delta-rs notes bounds, where it writes the file: of the same as here."""
    noted = ColumnProperties(statistics_enabled="CHUNK")
    return WriterProperties(
        compression="ZSTD",
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={field.name: noted for field in schema if _has_bounds(field.type)},
    )


def _write_file(place: AnyPath, rows: pa.Table) -> AddAction:
    """Write a new file of a table that is not partitioned, into its folder or below its address.

    Nobody reads the file before a commit names it. It is not synced: how durable it is depends on the file
    system.

    Args:
        place: the table's.
        rows: at least one row.

    Returns:
        The entry for the table's log.

    Raises:
        OSError: the file cannot be written; no part of it is left.
        SetupError: the store cannot be written to.
    """
    name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
    path = place / name
    size, told = _write_here(path, rows) if isinstance(path, Path) else _write_there(path, rows)
    made_ms = time.time_ns() // 1_000_000
    # delta-rs misreads characters behind U+FFFF where they are escaped
    stats = json.dumps(_stats(rows, told), ensure_ascii=False)
    return AddAction(name, size, {}, made_ms, True, stats)


def _write_here(path: Path, rows: pa.Table) -> tuple[int, pq.FileMetaData]:
    try:
        with pa.OSFile(str(path), "wb") as file:
            told = _write(file, rows)
        return path.stat().st_size, told
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _write_there(path: StorePath, rows: pa.Table) -> tuple[int, pq.FileMetaData]:
    stream = pa.BufferOutputStream()
    told = _write(stream, rows)
    content = stream.getvalue()
    files.write(path, content.to_pybytes())
    return content.size, told


def _write(file: pa.NativeFile, rows: pa.Table) -> pq.FileMetaData:
    leaves = dict(leaf for field in rows.schema for leaf in _leaves(field.name, field.type))
    told = list[pq.FileMetaData]()
    pq.write_table(
        rows,
        file,
        compression="zstd",
        use_dictionary=[leaf for leaf, kind in leaves.items() if _is_text(kind)],
        column_encoding={leaf: "DELTA_BINARY_PACKED" for leaf, kind in leaves.items() if _is_whole(kind)},
        write_statistics=[leaf for leaf, kind in leaves.items() if not pa.types.is_floating(kind)],
        store_schema=False,
        metadata_collector=told,
    )
    return told[0]


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The path and type of each Parquet column that an Arrow column becomes."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind


def _has_bounds(kind: pa.DataType) -> bool:
    """True for columns whose least and greatest value are noted, by which queries skip files.

    Floating-point columns have none: NaN counts as greater than all numbers, and writers of Parquet leave it
    out. Decimals have none in a table's log, which has them as floating-point numbers.
    """
    return _is_text(kind) or _is_whole(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))


def _is_whole(kind: pa.DataType) -> bool:
    """True for whole numbers, whose differences are usually smaller than the values themselves."""
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def _stats(rows: pa.Table, told: pq.FileMetaData) -> dict[str, Any]:
    """The statistics of a file for Delta's log, by which queries skip files that they do not need."""
    bounds, nulls = dict[str, tuple[Any, Any]](), dict[str, int]()
    places = {told.schema.column(place).path: place for place in range(told.num_columns)}
    groups = [told.row_group(group) for group in range(told.num_row_groups)]
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        nulls[field.name] = rows[field.name].null_count
        if not _has_bounds(field.type):
            continue
        parts = [group.column(places[field.name]).statistics for group in groups]
        known = [part for part in parts if part.has_min_max]
        complete = known and len(known) == sum(part.num_values > 0 for part in parts)
        if complete and (bound := _bounds(field.type, known)):
            bounds[field.name] = bound
    return {
        "numRecords": told.num_rows,
        "minValues": {name: least for name, (least, _) in bounds.items()},
        "maxValues": {name: most for name, (_, most) in bounds.items()},
        "nullCount": nulls,
    }


def _bounds(kind: pa.DataType, parts: list[pq.Statistics]) -> tuple[Any, Any] | None:
    """A lower and an upper bound of a column's values; None for days that a log cannot name."""
    if _is_text(kind):
        return min(part.min for part in parts), max(part.max for part in parts)
    least, most = min(part.min_raw for part in parts), max(part.max_raw for part in parts)
    if pa.types.is_integer(kind):
        return least, most
    days = pa.types.is_date32(kind)
    unit = ("D", 1, "") if days else ("ms", 1000, "Z")  # as readers expect it: name, size, suffix
    rounded = np.array([least // unit[1], -(-most // unit[1])])
    low, high = rounded.astype(f"datetime64[{unit[0]}]")
    return (f"{low}{unit[2]}", f"{high}{unit[2]}") if low >= _YEARS[0] and high < _YEARS[1] else None


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
        # of a store: a table as it was before the last append, its version then, the batch of that append
        self._open: dict[str, tuple[DeltaTable, int, int]] = {}

    def place(self, table: str) -> AnyPath:
        """Where a table lies."""
        return self.root / table

    def path(self, table: str) -> str:
        """The path or the address of a table."""
        return str(self.place(table))

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
            there = delta_rs.found(self.place(table))
            return -1 if there is None else self._last(there)

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

    def has_batch(self, table: str, batch_id: int) -> bool:
        """True if a batch was appended to a table."""
        return self.last_batch(table) >= batch_id

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
            merge = delta_rs.table(self.place(table)).merge(
                rows,
                where,
                source_alias="new",
                target_alias="there",
                writer_properties=_bounds_by_delta_rs(rows.schema),
            )
            merge.when_not_matched_insert_all().execute()

        self._patiently(self.place(table), step)

    def append(self, table: str, rows: pa.Table, batch_id: int) -> None:
        """Append a batch's rows as one file, unless that was done before. The sink must be claimed."""
        self.writing = self.path(table)
        self._patiently(self.place(table), partial(self._append, table, rows, batch_id, []))
        self.writing = None

    def _append(self, table: str, rows: pa.Table, batch_id: int, written: list[AddAction]) -> None:
        """Append rows; `written` gets their file, for another try."""
        place = self.place(table)
        there, done = self._opened(table)
        if done >= batch_id:
            return
        before = there.version()
        once = CommitProperties(app_transactions=[Transaction(self._app_id, batch_id)])
        hooks = _hooks(before + 1)
        if _is_plain(there, rows) and (isinstance(place, Path) or place.is_in_store):
            if rows.num_rows and not written:
                written.append(_write_file(place, rows))
            there.create_write_transaction(
                [*written],
                "append",
                there.schema(),
                commit_properties=once,
                post_commithook_properties=hooks,
            )
        else:
            write_deltalake(
                there,
                rows,
                mode="append",
                schema_mode="merge",
                writer_properties=_bounds_by_delta_rs(rows.schema),
                commit_properties=once,
                post_commithook_properties=hooks,
            )
        if isinstance(place, StorePath) and place.is_in_store:
            self._open[table] = there, before, batch_id

    def _opened(self, table: str) -> tuple[DeltaTable, int]:
        """A table and the last batch that was appended to it.

        Of one in a store both are known from the last append, unless that try has failed, or somebody else
        has written since: perhaps a job that has taken the checkpoint over.
        """
        if table in self._open:
            there, before, done = self._open.pop(table)
            there.update_incremental()  # delta-rs leaves it as it was before its own commit
            return there, done if there.version() == before + 1 else self._last(there)
        there = delta_rs.table(self.place(table))
        return there, self._last(there)

    def _last(self, there: DeltaTable) -> int:
        """The last batch that was appended to a table that is there, -1 if none was."""
        done: int | None = there.transaction_version(self._app_id)
        return -1 if done is None else done

    def _patiently(self, place: AnyPath, step: Callable[[], T]) -> T:
        """Take a step, and repeat it if it fails in a way that the next try may not.

        Another job may make or alter the table at the same moment: it has not noticed yet that the sink is
        not its own. A store may have done what was asked, and its answer be lost; the next try sees that.
        """
        conflicts, until_s = 0, time.monotonic() + WHILE_RUNNING_S
        while True:
            try:
                with delta_rs.told(place):
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
        str(place), schema, mode="ignore", configuration=PROPERTIES, storage_options=delta_rs.options(place)
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

"""Compares a job with its checkpoint, source and tables: what a start changes there, and what it refuses.

Rules and settings may change only between two batches. A batch that was planned but not finished is repeated
first, with those of its rules that stay and the settings of its plan. Every step leaves the checkpoint whole,
so a job that is stopped between two steps can go on from there.

Before a query starts, a checkpoint must be whole and as old as its tables. Spark itself would go on with
whatever is left. `Checkpoint` says in which order a batch writes its files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spark_pace.core.plan.lower_rules import every_rule, readers_of
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import dealt_out
from spark_pace.core.plan.rule import Rule
from spark_pace.core.python_functions import load_operator
from spark_pace.errors import ConfigError, StateError
from spark_pace.io.delta_tables import DeltaTables, table_schemas
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, path_at
from spark_pace.io.files.files import RESTORE, read_json
from spark_pace.io.own_tables import require_columns
from spark_pace.io.query import TABLES
from spark_pace.job_file import DeltaSource, FilesSource, JobSpec, KafkaSource
from spark_pace.job_file.secrets import Secrets
from spark_pace.job_file.spec import event_settings
from spark_pace.spark.checkpoint.batch_begin import Begins, read_begin, read_state
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, is_behind, is_commit, is_query, not_of_spark
from spark_pace.spark.checkpoint.layout import (
    LaidRule,
    Layout,
    differing,
    new_layout,
    read_layout,
    require_same_settings,
    write_layout,
)
from spark_pace.spark.sources.files import DeltaInput, FilesInput
from spark_pace.spark.sources.input import Input, tie
from spark_pace.spark.sources.kafka import KafkaInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_whole(
    checkpoint: Checkpoint, written: Mapping[str, int], tables: Collection[str], layout: int = 0
) -> None:
    """Refuse a checkpoint with which a batch could not be finished, or would read another input than before.

    Args:
        checkpoint: the checkpoint.
        written: the last batch in each existing table, -1 if it has none.
        tables: the names of all tables.
        layout: the number of the checkpoint's layout.

    Raises:
        StateError: a file is missing, damaged or that of another batch, or the checkpoint is older or newer
            than the tables.
    """
    begun, done = checkpoint.last_begun(), checkpoint.last_done()
    if begun - done not in (0, 1):
        must = "must know the offsets of each batch that was done"
        got = f"offsets up to batch {begun}, done up to {done}"
        raise StateError(f"{checkpoint} — {must}; got {got}. {RESTORE}")
    there = written.get("metrics", -1)
    _require_age(checkpoint, {"metrics": done}, {"metrics": there}, begun, done)
    missing = [name for name in tables if name not in written]
    if missing and (done >= 0 or there >= 0):
        got = f"none named {', '.join(missing)}"
        raise StateError(f"{checkpoint} — must have all its tables; got {got}. {RESTORE}")
    if begun > done:
        _require_planned(checkpoint, begun)
        _require_fitting(checkpoint, begun, layout)  # this batch may have written to its tables already
    _require_note(checkpoint.metadata_file, is_query)
    following = done + 1
    if not following:
        return
    _require_note(checkpoint.commit_of(done), is_commit)
    begin = Begins(checkpoint).of(following)
    _require_fitting(checkpoint, done, layout)
    read_state(checkpoint, following, begin.levels)
    checkpoint.chunks.require_whole(begin.chunks)
    _require_age(checkpoint, begin.tables, written, begun, done)


def _require_age(
    checkpoint: Checkpoint, known: Mapping[str, int], written: Mapping[str, int], begun: int, done: int
) -> None:
    for name, batch in known.items():
        if written[name] != batch and not begun == written[name] > done:
            got = f"batch {batch} as the last of {name} here, batch {written[name]} there"
            raise StateError(f"{checkpoint} — must be as old as its tables; got {got}. {RESTORE}")


def _require_note(path: AnyPath, is_sound: Callable[[bytes], bool]) -> None:
    """Refuse a note of Spark's that is damaged. Of a missing note of the query's id Spark itself decides."""
    content = files.read(path)
    if content is not None and not is_sound(content):
        raise not_of_spark(path)


def _require_planned(checkpoint: Checkpoint, batch_id: int) -> None:
    """Refuse a batch that would read something else than it has begun with, or nothing new."""
    claimed, is_new = files.read(checkpoint.claim_of(batch_id)), True
    if batch_id:
        before, after = map(checkpoint.offsets_after, (batch_id - 1, batch_id))
        is_new = after != before and is_behind(after, before)
    if not is_new or claimed not in (None, checkpoint.note_of(batch_id)):
        raise not_of_spark(checkpoint.offsets_of(batch_id))


def _require_fitting(checkpoint: Checkpoint, batch_id: int, layout: int) -> None:
    """Refuse other offsets than a batch has read, and a layout from before it, if it has said what it had."""
    following = read_begin(checkpoint, batch_id + 1)
    if following is None:
        return
    if following.offsets not in (None, checkpoint.offsets_digest(batch_id)):
        raise not_of_spark(checkpoint.offsets_of(batch_id))
    if layout < following.layout:
        got = f"number {layout}, and number {following.layout} in {checkpoint.sequence(batch_id + 1).name}"
        raise StateError(f"{checkpoint.layout_file} — must be as old as its batches; got {got}. {RESTORE}")


def remove_leftovers(checkpoint: Checkpoint) -> None:
    """Remove what a killed job left: unused chunks, and temporary files that keep Spark from beginning."""
    if checkpoint.last_begun() < 0:
        for name in files.names(checkpoint.offsets):
            files.remove(checkpoint.offsets / name)  # temporary files; their names start with a dot
    batch = checkpoint.next_batch()
    # the next batch may have run before, and have written what the one after it begins with
    known = [read_begin(checkpoint, one) for one in (batch, batch + 1)]
    checkpoint.chunks.remove_all_but({name for begin in known if begin is not None for name in begin.chunks})


_INPUTS: dict[type, type[Input]] = {
    FilesSource: FilesInput,
    KafkaSource: KafkaInput,
    DeltaSource: DeltaInput,
}
# the most that a first batch reads, so that a small input is one batch: bytes of files, records of Kafka
_FIRST_CAPS = {FilesInput.kind: 32 << 20, KafkaInput.kind: 100_000, DeltaInput.kind: 32 << 20}


def input_of(spec: JobSpec, checkpoint: Checkpoint, secrets: Secrets) -> Input:
    """Make the input of a job.

    Raises:
        SetupError: there are no files, or a variable of the environment is missing.
    """
    source = spec.source.resolved(secrets)
    kind = _INPUTS[type(source)]
    first_cap = None if spec.admission == "off" else _FIRST_CAPS[kind.kind]
    events = spec.events
    available_now = spec.trigger_us == "available_now"
    return kind(source, checkpoint, spec.finish, events.on_bad_record, first_cap, events.clock, available_now)


def require_same_source(job_input: Input) -> None:
    """Refuse a checkpoint of another kind of source, or one of topics that the job no longer names.

    Raises:
        StateError: the checkpoint belongs to another source, or its `source.json` is damaged or missing.
    """
    checkpoint = job_input.checkpoint
    path = checkpoint.source_file
    stored = read_json(path)
    if stored is None and checkpoint.last_begun() >= 0:
        raise StateError(f"{path} — must be there where batches are; got no file. {RESTORE}")
    if stored is None:
        return
    if (kind := stored.get("kind")) != job_input.kind:
        must = f"must belong to a job that reads {job_input.kind}"
        got = f"the checkpoint of one that reads {kind}"
        do = "Use a new checkpoint with a sink of its own."
        raise StateError(f"{checkpoint} — {must}; got {got}. {do}")
    if gone := [name for name in stored.get("topics", ()) if name not in job_input.source.topics]:
        must, got = "must go on with its topics", f"a job without {', '.join(gone)}"
        do = "Name them again, or use a new checkpoint with a sink of its own."
        raise StateError(f"{checkpoint} — {must}; got {got}. {do}")


def require_known(spec: JobSpec, reset_rules: Collection[str]) -> None:
    """Raise an error for what is wrong in the job or its options, before anything is touched."""
    known = [rule.name for rule in spec.rules]
    for name in reset_rules:
        if name not in known:
            must, do = "must name a rule of the job that is not paused", f"Choose from {', '.join(known)}."
            raise ConfigError.of("--reset-rule", must, name, do)
    for rule in spec.rules:
        if rule.function is not None:
            load_operator(rule.function)


def require_accepted(spark: SparkSession, checkpoint: Checkpoint, spec: JobSpec) -> None:
    """Raise an error unless the running job can go on as `spec`, which has other rules. Change nothing."""
    require_known(spec, ())
    layout = read_layout(checkpoint)
    if layout is not None:
        compared(checkpoint, layout, spec.rules, ()).require_unchanged()
    require_columns(sink_of(spec, spark), table_schemas(spec.rules))


def new_change(spec: JobSpec, spark: SparkSession, checkpoint: Checkpoint) -> Change:
    """The change with which a new checkpoint begins."""
    parallel = spec.parallelism
    layout = new_layout(spark, spec.rules, parallel.slots, parallel.buckets, event_settings(spec))
    return compared(checkpoint, layout, spec.rules, ()).require_unchanged()


def fitting_layout(spec: JobSpec, job_input: Input) -> Layout | None:
    """The layout of the job's checkpoint, None for a new one.

    Raises:
        StateError: the checkpoint is of another source or of other settings than the job.
    """
    layout = read_layout(job_input.checkpoint)  # first: in another version every other file may differ
    require_same_source(job_input)
    if layout is not None:
        require_same_settings(layout, spec.parallelism.slots, spec.parallelism.buckets, event_settings(spec))
    return layout


def known_change(spec: JobSpec, job_input: Input, reset_rules: Collection[str]) -> Change | None:
    """The change of the job since its checkpoint, found before Spark starts; None for a new checkpoint.

    The rules that start anew are noted in the checkpoint at once, so that a stop while Spark starts does not
    forget them.
    """
    layout = fitting_layout(spec, job_input)
    if layout is None:
        return None
    change = compared(job_input.checkpoint, layout, spec.rules, reset_rules).require_unchanged()
    if reset_rules:
        write_layout(job_input.checkpoint, without_reset(layout, spec.rules, reset_rules))
    return change


def whole_tables(
    spec: JobSpec, spark: SparkSession, layout: Layout, job_input: Input, marks: Mapping[str, Any]
) -> DeltaTables:
    """Check that checkpoint and tables are whole, tie the checkpoint to the source, and return the tables."""
    tables = DeltaTables(sink_of(spec, spark), layout.app_id)
    written = tables.written(TABLES)
    require_whole(job_input.checkpoint, written, TABLES, layout.number)
    remove_leftovers(job_input.checkpoint)
    tie(job_input, marks)
    tables.prepare(table_schemas(spec.rules))
    return tables


def sink_of(spec: JobSpec, spark: SparkSession) -> AnyPath:
    """Where the job's tables lie; a store is reached by the settings of Spark, or by the environment."""
    return path_at(spec.sink_path, dict(spark.sparkContext.getConf().getAll())).absolute()


@dataclass(frozen=True)
class Change:
    """The change from the rules of a checkpoint to those of a job.

    Attributes:
        layout: the layout of the checkpoint.
        rules: the rules of the job.
        planned: True if a batch was planned and is not finished.
        since: the first batch that is not planned yet.
        begun: the rules of the checkpoint that had a batch.
        parts: the parts of the job's rules, by their names.
        kept: the rules of both that do not start anew.
    """

    layout: Layout
    rules: Sequence[Rule]
    planned: bool
    since: int
    begun: dict[str, LaidRule]
    parts: dict[str, dict[str, str]]
    kept: dict[str, LaidRule]

    @property
    def before(self) -> Layout:
        """The layout without the rules that are removed or start anew."""
        return replace(self.layout, rules=self.kept)

    @property
    def after(self) -> Layout:
        """The layout with the rules of the job. New rules begin with the first batch not planned yet."""
        before = self.before
        places = dealt_out(self.rules, before.slots, before.buckets, before.places, self.since)
        return replace(
            before, rules={name: LaidRule(parts, places[name]) for name, parts in self.parts.items()}
        )

    def layouts(self, settings: dict[str, Any]) -> list[tuple[Layout, bool]]:
        """The layouts to run with, one after the other, as (layout, is only for the unfinished batch).

        Each must be written to the checkpoint before a batch uses it.

        Args:
            settings: the job's `planned_settings` (`spark_pace.job_file`), for the batches to come.
        """
        last = (replace(self.after, planned=settings), False)
        same_rules = set(self.begun) == set(self.kept) == set(self.parts)
        if self.planned and not (same_rules and self.layout.planned == settings):
            return [(self.before, True), last]
        return [last]

    def changed(self) -> dict[str, list[str]]:
        """The names of the parts that differ, for each rule that has changed and does not start anew."""
        differing_of = {name: differing(rule.parts, self.parts[name]) for name, rule in self.kept.items()}
        return {name: parts for name, parts in differing_of.items() if parts}

    def told(self) -> tuple[dict[str, str], list[str]]:
        """(what has changed of each rule that was changed itself, which of these start all others anew)."""
        changed = self.changed()
        below = {rule.name: {one.name for one in every_rule(rule.reads)} for rule in every_rule(self.rules)}
        first = [name for name in changed if below[name].isdisjoint(changed)]
        told = [name for name, parts in changed.items() if name in first or set(parts) != {"from"}]
        return {name: _differences(self.kept[name].parts, self.parts[name]) for name in told}, first

    def require_unchanged(self) -> Change:
        """The change itself, unless there are rules that have changed and do not start anew.

        Raises:
            StateError: there are some.
        """
        changed = self.changed()
        if changed:
            differences, first = self.told()
            readers = [name for name in changed if name not in first]
            may_pause = not readers and len(changed) < len(self.rules)
            raise StateError(_refusal(differences, first, readers, may_pause=may_pause))
        return self


def compared(
    checkpoint: Checkpoint, layout: Layout, rules: Sequence[Rule], reset: Collection[str] = ()
) -> Change:
    """Compare the rules of a layout with those of the job, changed or not.

    Args:
        checkpoint: the checkpoint.
        layout: its layout.
        rules: the rules of the job.
        reset: the names of rules that start anew; rules that read their matches start anew with them.
    """
    batch = checkpoint.next_batch()
    planned = batch in checkpoint.begun()
    since = batch + planned
    begun = {name: rule for name, rule in layout.rules.items() if rule.place.since < since}
    parts = {rule.name: rule_parts(rule) for rule in every_rule(rules)}
    anew = _with_readers(reset, rules)
    kept = {name: rule for name, rule in begun.items() if name in parts and name not in anew}
    return Change(layout, rules, planned, since, begun, parts, kept)


def without_reset(layout: Layout, rules: Sequence[Rule], reset: Collection[str]) -> Layout:
    """Return the layout without the rules that start anew; see `compared` for the arguments.

    Once it is in the checkpoint, they start anew with the next batch, also if the job is stopped before.
    """
    anew = _with_readers(reset, rules)
    return replace(layout, rules={name: rule for name, rule in layout.rules.items() if name not in anew})


def _with_readers(reset: Collection[str], rules: Sequence[Rule]) -> set[str]:
    """The names of these rules, of rules that read their matches, and of those that hand events to them."""
    anew = readers_of(reset, rules)
    hands_on = [one for rule in every_rule(rules) if rule.name in anew for one in rule.reads if one.hands_on]
    return anew | {one.name for one in hands_on}


def _differences(stored: Mapping[str, str], given: Mapping[str, str]) -> str:
    names = differing(stored, given)
    return ", ".join(
        f"a changed {name}: {given.get(name, 'none')}, was {stored.get(name, 'none')}" for name in names
    )


def _refusal(
    changed: Mapping[str, str], first: Sequence[str], readers: Sequence[str], *, may_pause: bool
) -> str:
    """The message about changed rules.

    Args:
        changed: what has changed, for each rule that was changed itself.
        first: those of them that are to start anew.
        readers: the rules that then start anew too, for they read the matches of these.
        may_pause: whether the job can do without the changed rules.
    """
    do = f"anew with {' '.join(f'--reset-rule {name}' for name in first)}"
    pause = f" pause {'it' if len(changed) == 1 else 'them'} by enabled: false," if may_pause else ""
    if readers:
        do += f", with which {', '.join(readers)} {'starts' if len(readers) == 1 else 'start'} anew too"
    if len(changed) == 1:
        [(name, differences)] = changed.items()
        do = f"Restore it, give the rule a new name,{pause} or start it {do}."
        return f"rule {name} — must be as the checkpoint knows it; got {differences}. {do}"
    got = "; ".join(f"{name} with {differences}" for name, differences in changed.items())
    do = f"Restore them, give them new names,{pause} or start them {do}."
    return f"rules {', '.join(changed)} — must be as the checkpoint knows them; got {got}. {do}"

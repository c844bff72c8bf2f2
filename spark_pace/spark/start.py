"""Compares a job with its checkpoint and its tables: what a start changes there, and what it refuses."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from spark_pace.core.python_functions import load_operator
from spark_pace.errors import ConfigError
from spark_pace.io.delta_tables import DeltaTables, table_schemas
from spark_pace.io.files.addresses import AnyPath, path_at
from spark_pace.job_file import JobSpec
from spark_pace.job_file.checkpoint_settings import event_settings
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import (
    Layout,
    new_layout,
    read_layout,
    require_same_settings,
    write_layout,
)
from spark_pace.spark.checkpoint.rule_changes import Change, change_of, without_reset
from spark_pace.spark.sources.input import Input
from spark_pace.spark.sources.kinds import require_same_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_known(spec: JobSpec, reset_rules: Collection[str]) -> None:
    """Raise an error for what is wrong in the job or its options, before anything is touched."""
    known = [rule.name for rule in spec.rules]
    for name in reset_rules:
        if name in spec.paused:
            must, got = "must name a rule that runs", f"{name}, which is paused"
            do = "A paused rule keeps no state, and begins anew when it is resumed: leave out the option."
            raise ConfigError.of("--reset-rule", must, got, do)
        if name not in known:
            choice = f"Choose from {', '.join(known)}."
            raise ConfigError.of("--reset-rule", "must name a rule of the job", name, choice)
    for rule in spec.rules:
        if rule.function is not None:
            load_operator(rule.function)


def require_accepted(spark: SparkSession, job_input: Input, spec: JobSpec) -> None:
    """Raise an error unless the running job can go on as `spec`, which has other rules. Change nothing."""
    require_known(spec, ())
    known_change(spec, job_input, ())
    DeltaTables(sink_of(spec, spark), "").require_columns(table_schemas(spec.rules))


def new_change(spec: JobSpec, spark: SparkSession, checkpoint: Checkpoint) -> Change:
    """The change with which a new checkpoint begins."""
    layout = new_layout(spark, spec.rules, spec.slots, spec.buckets, event_settings(spec))
    return change_of(checkpoint, layout, spec.rules, ())


def fitting_layout(spec: JobSpec, job_input: Input) -> Layout | None:
    """The layout of the job's checkpoint, None for a new one.

    Raises:
        StateError: the checkpoint is of another source or of other settings than the job.
    """
    layout = read_layout(job_input.checkpoint)  # first: in another version every other file may differ
    require_same_source(job_input)
    if layout is not None:
        require_same_settings(layout, spec.slots, spec.buckets, event_settings(spec))
    return layout


def known_change(spec: JobSpec, job_input: Input, reset_rules: Collection[str]) -> Change | None:
    """The change of the job since its checkpoint, found before Spark starts; None for a new checkpoint.

    The rules that start anew are noted in the checkpoint at once, so that a stop while Spark starts does not
    forget them.
    """
    layout = fitting_layout(spec, job_input)
    if layout is None:
        return None
    change = change_of(job_input.checkpoint, layout, spec.rules, reset_rules)
    if reset_rules:
        write_layout(job_input.checkpoint, without_reset(layout, spec.rules, reset_rules))
    return change


def sink_of(spec: JobSpec, spark: SparkSession) -> AnyPath:
    """Where the job's tables lie; a store is reached by the settings of Spark, or by the environment."""
    place = path_at(spec.sink_path, dict(spark.sparkContext.getConf().getAll()))
    return Path(os.path.abspath(place)) if isinstance(place, Path) else place

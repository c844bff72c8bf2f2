"""Complex event processing on Spark: rules in YAML, selections matched in parallel, one ordered output.

The five functions here are the Python API; each imports what it needs when it is called,
so ``import spark_pace`` costs next to nothing and starts no JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from spark_pace.core.local import LocalResult
    from spark_pace.core.plan.rule import EventSchema, Rule
    from spark_pace.reasons import Why

__all__ = ["__version__", "detect", "load_rules", "read_table", "replay", "why"]


def load_rules(
    paths: str | Path | Sequence[str | Path], *, events: EventSchema | None = None
) -> tuple[Rule, ...]:
    """Read and check the rules of rule files, or of one job file; see `spark_pace.rules.load_rules`.

    Args:
        paths: one file or several.
        events: what an event looks like, where the rule files do not say it. A job file says it itself, and
            must be read without this.

    Raises:
        RuleError: with every problem of the rule files.
        ConfigError: with every problem of the job file and its rule files; or `events` comes with a job file.
    """
    from pathlib import Path

    from spark_pace import errors, job_file, rules

    files = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if len(files) != 1 or not job_file.is_job(files[0]):
        return rules.load_rules(files, events=events)
    if events is not None:
        must = (
            "must be loaded without `events`, "
            "for a job and its rule files say themselves what an event looks like"
        )
        raise errors.ConfigError.of(str(files[0]), must, "both", "Leave `events` out.")
    return job_file.read_job(files[0]).rules


def replay(rules: Sequence[Rule], table: pa.Table) -> LocalResult:
    """Find the matches of `rules` in a table, without Spark; see `spark_pace.io.replay.replay_table`."""
    from spark_pace.io.replay import replay_table

    return replay_table(rules, table)


def why(
    rules: Sequence[Rule], events: Path | pa.Table, *, rule: str, at: int | str, key: str | None = None
) -> Why:
    """Tell why an event is in a rule's matches, or in none of them; see `spark_pace.reasons.why`."""
    from spark_pace.reasons import why as why_of

    return why_of(rules, events, rule=rule, at=at, key=key)


def read_table(out: str | Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table that a job has written, without Spark; see `spark_pace.io.query.read_table`.

    `name` is `matches`, `late`, `quarantine` or `metrics`.
    """
    from spark_pace.io import query

    return query.read_table(out, name, columns)


def detect(
    df: DataFrame,
    rules: Sequence[Rule],
    *,
    delay_us: int = 0,
    tie_break: Sequence[str] = (),
    slots: int | None = None,
) -> DataFrame:
    """Find the matches of `rules` in a streaming DataFrame; see `spark_pace.spark.detect.detect`.

    The matches are the rows of the streaming DataFrame that this returns.
    """
    from spark_pace.spark.detect import detect as detect_in

    return detect_in(df, rules, delay_us=delay_us, tie_break=tie_break, slots=slots)

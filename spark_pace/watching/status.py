"""What `spark-pace status --json` says: one object, whose keys programs rely on."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.query import Tables
from spark_pace.io.text.value_texts import as_cells
from spark_pace.spark.running import running
from spark_pace.watching.figures import paused_rules, rules_without_matches
from spark_pace.watching.seen import Seen, state_word
from spark_pace.watching.subject import Subject, WaitingAlerts, waiting_alerts
from spark_pace.watching.troubles import troubles

SCHEMA = 1  # keys may be added to it; one that is removed, or gets another meaning, makes it 2
_OF_THE_LAST = ("batch_id", "written_at", "seconds", "batch_seconds", "records")
_STANDING = (
    *("frontier", "max_event_time", "finished", "pending", "carry", "open", "state_bytes"),
    *("idle_sources", "idle_names", "slowest_source", "unheard_sources"),
)
MATCHES_OF_RULES = (
    "SELECT rule, count(*) AS matches, min(matched_at) AS first, max(matched_at) AS last "
    "FROM matches GROUP BY rule ORDER BY rule"
)


def status_of(subject: Subject, seen: Seen, now: datetime) -> dict[str, Any]:
    """Look at the tables and the checkpoint of a job, and tell what there is.

    Raises:
        ConfigError: there are no tables.
        StateError: a table or the checkpoint is damaged.
    """
    state = None if subject.checkpoint is None else running(subject.checkpoint)
    seen.look()
    last: dict[str, Any] = seen.last or {}
    targets = waiting_alerts(subject, seen.done)
    return {
        "schema": SCHEMA,
        "at": _text(now),
        "job": None if subject.spec is None else subject.spec.name,
        "sink": subject.sink,
        "state": state_word(seen, state),
        "process": None if state is None else state.process,
        "since": None if state is None else _text(state.since),
        "under_way": None if state is None else state.batch,
        "last_batch": {name: _text(last[name]) for name in _OF_THE_LAST} if last else None,
        "sums": seen.history.sums(),
        **{name: _text(last.get(name)) for name in _STANDING},
        "rules": _rules(seen.out),
        "paused": paused_rules(subject),
        "without_matches": rules_without_matches(subject, seen),
        "alerts": list(map(_alert, targets)),
        "troubles": [
            *troubles(subject, seen, state, now),
            *(one.trouble for one in targets if one.trouble),
        ],
    }


def _rules(sink: AnyPath) -> list[dict[str, Any]]:
    """Each rule with matches; they are counted while they are read, for there may be very many."""
    rows = Tables(sink, ["matches"]).query(MATCHES_OF_RULES).read_all()
    cells = [as_cells(column.combine_chunks()) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*cells, strict=True)]


def _alert(one: WaitingAlerts) -> dict[str, Any]:
    return {
        "target": one.target,
        "rows_waiting": one.waiting,
        "failing_since": one.failure.at if one.failure is not None and one.fails else None,
        "last_failure": None if one.failure is None else one.failure.text,
    }


def _text(value: Any) -> Any:
    """A time as text in UTC; other values as they are."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")

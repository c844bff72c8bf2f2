"""What a series of kills has shown, as a table and as JSON."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from spark_pace.errors import counted
from tests.long.chaos.check import Tables, total
from tests.long.chaos.series import Outcome

_COUNTS = ("records", "events", "late", "bad_records", "heartbeats", "repeats", "quarantined", "matches")


def summary_of(
    outcome: Outcome, tables: Tables, produced: int, apart: Sequence[str], minutes: float
) -> dict[str, Any]:
    """The facts of one series."""
    kills = Counter((survived.kill.whom, survived.kill.moment) for survived in outcome.survived)
    seconds = sorted(survived.seconds for survived in outcome.survived)
    return {
        "kills": [
            {"whom": whom, "moment": moment, "survived": count}
            for (whom, moment), count in sorted(kills.items())
        ],
        "survived": len(outcome.survived),
        "not_reached": [vars(kill) for kill in outcome.unspent],
        "starts": outcome.starts,
        "batches": tables["metrics"].num_rows,
        "produced": produced,
        **{name: total(tables["metrics"], name) for name in _COUNTS},
        "seconds_to_recover": {"p50": round(statistics.median(seconds), 1), "max": round(seconds[-1], 1)}
        if seconds
        else {},
        "differences": list(apart),
        "complaints": outcome.complaints,
        "minutes": round(minutes, 1),
    }


def as_text(summary: dict[str, Any]) -> str:
    """The table that is shown."""
    lines = [f"{'killed':10} {'moment':20} {'survived':>8}"]
    lines += [f"{kill['whom']:10} {kill['moment']:20} {kill['survived']:8}" for kill in summary["kills"]]
    lines.append(
        f"{counted(summary['survived'], 'kill')} in {summary['minutes']} minutes; "
        f"{counted(summary['starts'], 'start')} of the job, {counted(summary['batches'], 'batch')}"
    )
    lines.append(
        f"{counted(summary['produced'], 'record')} produced; in the metrics: "
        + ", ".join(f"{name} {summary[name]:,}" for name in _COUNTS)
    )
    if summary["seconds_to_recover"]:
        lines.append(
            "seconds until the next batch was written: p50 {p50}, most {max}".format(
                **summary["seconds_to_recover"]
            )
        )
    lines += list(_of_everything(summary)) if "alerts" in summary else []
    lines += [f"not reached: {kill['whom']}, {kill['moment']}" for kill in summary["not_reached"]]
    lines += [f"said or left behind: {complaint}" for complaint in summary["complaints"]]
    lines += [f"differs: {difference}" for difference in summary["differences"]]
    lines.append(f"differences: {len(summary['differences'])}")
    return "\n".join(lines)


def _of_everything(summary: dict[str, Any]) -> Iterator[str]:
    """What there is to say of a job that has everything."""
    alerts, extras = summary["alerts"], summary["extras"]
    read = ", ".join(f"{count:,} while {mode}" for mode, count in sorted(alerts["alerts_read"].items()))
    yield (
        f"alerts: {alerts['rows']:,} rows; read by the target: {read}; {alerts['came_again']:,} came again, "
        f"{alerts['marked_though_first']:,} were marked as repeats and came once"
    )
    yield (
        f"rules: the file changed {counted(summary['rule_files'], 'time')}, extra rules were taken over "
        f"{counted(extras['lives'], 'time')}; {extras['matches']:,} of their matches are the core's, of "
        f"{extras['numbered']:,} by rules over rules the numbers were looked at"
    )
    yield f"clock: {counted(summary['ticks'], 'tick')}"
    yield f"counters and page: {counted(summary['answers'], 'answer')} with 200; any other is told below"


def write_report(path: Path, summary: dict[str, Any]) -> None:
    """The facts as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=1) + "\n")

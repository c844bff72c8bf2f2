"""What becomes of a checkpoint when a job starts with other rules or settings than before.

They may change between two batches only. A batch that was planned but not finished is done again first, by those of its
rules that stay, with the settings of its plan. Every step leaves the checkpoint whole: stopped in between, the next start
goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import dealt_out
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import LaidRule, Layout, write_layout


@dataclass(frozen=True)
class Change:
    """From the rules that a checkpoint knows to those of the job.

    Attributes:
        checkpoint: the checkpoint.
        before: the layout without the rules that go, or that start anew.
        rules: of the job.
        planned: a batch has been planned and is not finished.
        same_rules: no rule comes, goes or starts anew.
    """

    checkpoint: Checkpoint
    before: Layout
    rules: tuple[Rule, ...]
    planned: bool
    same_rules: bool

    def layouts(self, settings: dict[str, Any]) -> Iterator[tuple[Layout, bool]]:
        """The layouts to run by one after another: (layout, only the unfinished batch). Each is kept before it is given.

        `settings` are those of the job (`spark_pace.job_file.planned`): later batches are planned with them.
        """
        if self.planned and not (self.same_rules and self.before.planned in (None, settings)):
            write_layout(self.checkpoint, self.before)
            yield self.before, True
        layout = replace(self.after, planned=settings)
        write_layout(self.checkpoint, layout)
        yield layout, False

    @property
    def after(self) -> Layout:
        """The layout with the job's rules; those that are new begin with the next batch."""
        places = dealt_out(
            self.rules,
            self.before.slots,
            self.before.buckets,
            self.before.places,
            self.checkpoint.next_batch(),
        )
        return replace(
            self.before,
            rules={rule.name: LaidRule(rule_parts(rule), places[rule.name]) for rule in self.rules},
        )


def change_of(
    checkpoint: Checkpoint, layout: Layout, rules: Sequence[Rule], reset: Collection[str]
) -> Change:
    """How to go from a layout to these rules.

    Args:
        checkpoint: the checkpoint.
        layout: what it knows.
        rules: of the job.
        reset: names of rules that start anew.

    Raises:
        StateError: a rule has changed that does not start anew.
    """
    batch = checkpoint.next_batch()
    planned = checkpoint.has_begun(batch)
    begun = {name: rule for name, rule in layout.rules.items() if rule.place.since < batch + planned}
    parts = {rule.name: rule_parts(rule) for rule in rules}
    kept = {name: rule for name, rule in begun.items() if name in parts and name not in reset}
    changed = {
        name: _differences(rule.parts, parts[name])
        for name, rule in kept.items()
        if rule.parts != parts[name]
    }
    if changed:
        raise StateError(_refusal(changed))
    same = set(begun) == set(kept) == set(parts)
    return Change(checkpoint, replace(layout, rules=kept), tuple(rules), planned, same)


def require_same(where: str, stored: Mapping[str, object], given: Mapping[str, object]) -> None:
    """Refuse settings that are not as the checkpoint knows them; all that differ are named.

    Raises:
        StateError: some differ.
    """
    if different := _different(stored, given):
        got = ", ".join(
            f"{name} {given.get(name, 'none')} instead of {stored.get(name, 'none')}" for name in different
        )
        raise StateError(
            f"{where} — must be as the checkpoint knows it; got {got}. Restore it, or start a new checkpoint with a sink of its own."
        )


def _different(stored: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    return [name for name in {**stored, **given} if stored.get(name) != given.get(name)]


def _differences(stored: Mapping[str, str], given: Mapping[str, str]) -> str:
    return ", ".join(
        f"a changed {name}: {given.get(name, 'none')}, was {stored.get(name, 'none')}"
        for name in _different(stored, given)
    )


def _refusal(changed: Mapping[str, str]) -> str:
    resets = " ".join(f"--reset-rule {name}" for name in changed)
    if len(changed) == 1:
        [(name, differences)] = changed.items()
        return f"rule {name} — must be as the checkpoint knows it; got {differences}. Restore it, give the rule a new name, or start it anew with {resets}."
    got = "; ".join(f"{name} with {differences}" for name, differences in changed.items())
    return f"rules {', '.join(changed)} — must be as the checkpoint knows them; got {got}. Restore them, give them new names, or start them anew with {resets}."

"""What becomes of a checkpoint when a job starts with other rules or settings than before.

They may change only between two batches. A batch that was planned but not finished is done again first, by
those of its rules that stay and with the settings of its plan. Every step leaves the checkpoint whole: if the
job is stopped between two steps, the next start goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_pace.core.plan.lower_rules import every_rule, readers_of
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import dealt_out
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import LaidRule, Layout, differing


@dataclass(frozen=True)
class Change:
    """From the rules that a checkpoint knows to those of the job.

    Attributes:
        before: the layout without the rules that go or start anew.
        after: the layout with the rules of the job. New ones begin with the first batch that is not planned.
        planned: whether a batch was planned and is not finished.
        same_rules: whether no rule comes, goes or starts anew.
    """

    before: Layout
    after: Layout
    planned: bool
    same_rules: bool

    def layouts(self, settings: dict[str, Any]) -> list[tuple[Layout, bool]]:
        """The layouts to run by, one after the other: (layout, whether only for the unfinished batch).

        Each must be in the checkpoint before a batch goes by it.

        Args:
            settings: the job's (`planned_settings` of `spark_pace.job_file`): later batches are planned with
                them.
        """
        last = (replace(self.after, planned=settings), False)
        if self.planned and not (self.same_rules and self.before.planned == settings):
            return [(self.before, True), last]
        return [last]


def change_of(
    checkpoint: Checkpoint, layout: Layout, rules: Sequence[Rule], reset: Collection[str]
) -> Change:
    """How to go from a layout to these rules.

    Args:
        checkpoint: the checkpoint.
        layout: its layout.
        rules: the rules of the job.
        reset: the names of rules that start anew, with those that read their matches.

    Raises:
        StateError: a rule has changed that does not start anew.
    """
    batch = checkpoint.next_batch()
    planned = checkpoint.has_begun(batch)
    since = batch + planned
    begun = {name: rule for name, rule in layout.rules.items() if rule.place.since < since}
    parts = {rule.name: rule_parts(rule) for rule in every_rule(rules)}
    reset = _with_readers(reset, rules)
    kept = {name: rule for name, rule in begun.items() if name in parts and name not in reset}
    changed = {name: rule for name, rule in kept.items() if rule.parts != parts[name]}
    if changed:
        differences = {name: _differences(rule.parts, parts[name]) for name, rule in changed.items()}
        raise StateError(_refusal(differences))
    before = replace(layout, rules=kept)
    places = dealt_out(rules, layout.slots, layout.buckets, before.places, since)
    after = replace(layout, rules={name: LaidRule(parts[name], places[name]) for name in parts})
    return Change(before, after, planned, same_rules=set(begun) == set(kept) == set(parts))


def without_reset(layout: Layout, rules: Sequence[Rule], reset: Collection[str]) -> Layout:
    """The layout without the rules that start anew; the arguments are those of `change_of`.

    Once it is in the checkpoint, they start anew with the next batch, also if the job is stopped before.
    """
    anew = _with_readers(reset, rules)
    return replace(layout, rules={name: rule for name, rule in layout.rules.items() if name not in anew})


def _with_readers(reset: Collection[str], rules: Sequence[Rule]) -> set[str]:
    """These rules, those that read their matches, and those that hand events on to any of them."""
    anew = readers_of(reset, rules)
    hands_on = [one for rule in every_rule(rules) if rule.name in anew for one in rule.reads if one.hands_on]
    return anew | {one.name for one in hands_on}


def _differences(stored: Mapping[str, str], given: Mapping[str, str]) -> str:
    names = differing(stored, given)
    return ", ".join(
        f"a changed {name}: {given.get(name, 'none')}, was {stored.get(name, 'none')}" for name in names
    )


def _refusal(changed: Mapping[str, str]) -> str:
    resets = " ".join(f"--reset-rule {name}" for name in changed)
    if len(changed) == 1:
        [(name, differences)] = changed.items()
        do = f"Restore it, give the rule a new name, or start it anew with {resets}."
        return f"rule {name} — must be as the checkpoint knows it; got {differences}. {do}"
    got = "; ".join(f"{name} with {differences}" for name, differences in changed.items())
    do = f"Restore them, give them new names, or start them anew with {resets}."
    return f"rules {', '.join(changed)} — must be as the checkpoint knows them; got {got}. {do}"

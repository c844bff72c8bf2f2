"""Rules that come and go in the rule file while their job runs, is killed, and is started again."""

from __future__ import annotations

import json
import os
import random
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_pace.errors import StateError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, offsets_in
from tests.long.chaos.beside import beside

EVERY_S = (4.0, 20.0)
_MOST = 3  # extra rules at once
_LOOK_S = 0.1
_FORMS = (
    """
    pattern: {sequence: [{a: "kind = 'a'"}, {c: "kind = 'c'"}]}
    where: c.x > a.x
    within: 30 s
    emit: {first: a.x, third: c.x}
""",
    """
    partition_by: [k]
    filter: id % 5 = 0
    fold:
      initial: low
      moves: [{from: low, when: x > prev(x), to: high}, {from: high, when: "kind = 'c'", to: low}]
    emit: {was: state.from, now: state.to, since: state.since}
""",
    """
    span: {every: 60 s, size: 90 s}
    operator: tests.long.chaos.job:total
    emit: {total: BIGINT, events_in_span: BIGINT}
""",
    """
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'b'"}, {b: "kind = 'a'"}]}
    within: 40 s
    context: next, selected
    emit: {opened_by: a.id}
""",
    """
    from: [keyed]
    pattern: {sequence: [{m: rule = 'keyed'}, {n: rule = 'keyed'}]}
    within: 30 s
    context: next, selected
""",
)
OVER_RULES = len(_FORMS) - 1  # the form of a rule over rules


def form_of(name: str) -> int:
    """Which form an extra rule has."""
    return int(name.removeprefix("extra_")) % len(_FORMS)


def with_extras(rules: str, names: list[str]) -> str:
    """The text of a rule file with some extra rules."""
    return rules + "".join(f"  - name: {name}{_FORMS[form_of(name)]}" for name in names)


@dataclass
class RuleChanges:
    """Adds and removes extra rules, by chance; half of those that are added were there before.

    Attributes:
        file: the rule file.
        rules: the text of the rules that stay.
        seed: of the chance.
        scaled: makes the times in the text of the rules what they must be.
        count: how often the file was changed.
        names: of all rules that were ever added.
    """

    file: Path
    rules: str
    seed: int
    scaled: Any
    count: int = 0
    names: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def running(self) -> AbstractContextManager[None]:
        """Change them while a block runs."""
        return beside(self._change, self.end)

    def end(self) -> None:
        """Change nothing more."""
        self._ended.set()

    def _change(self) -> None:
        chance = random.Random(self.seed)
        there: list[str] = []
        while not self._ended.wait(chance.uniform(*EVERY_S)):
            if there and (len(there) == _MOST or chance.random() < 0.4):
                there.remove(chance.choice(there))
            else:
                gone = [name for name in self.names if name not in there]
                is_old = gone and chance.random() < 0.5
                there.append(chance.choice(gone) if is_old else f"extra_{len(self.names)}")
                self.names += [] if is_old else there[-1:]
            self.count += 1
            new = self.file.with_suffix(".new")
            new.write_text(self.scaled(with_extras(self.rules, there)))
            os.replace(new, self.file)


@dataclass
class Notes:
    """What the checkpoint notes while the job runs; Spark removes old notes.

    Attributes:
        checkpoint: the checkpoint.
        offsets: what each batch has read up to, by its number.
        lives: of each extra rule that was taken over, its name and its first batch, the first batch of which
            it is not sure that it was there.
    """

    checkpoint: Checkpoint
    offsets: dict[int, list[Any]] = field(default_factory=dict)
    lives: dict[tuple[str, int], int] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def taken(self) -> AbstractContextManager[None]:
        """Take notes while a block runs, and once more behind it."""
        return beside(self._take, self._ended.set)

    def _take(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.look()
        self.look()

    def look(self) -> None:
        """Note what is new."""
        with suppress(OSError, StateError, ValueError):  # files come and go
            following = self.checkpoint.next_batch()  # before the layout: these batches were done with it
            layout = json.loads(self.checkpoint.layout_file.read_text())
            for name, rule in layout["rules"].items():
                if name.startswith("extra_"):
                    self.lives[name, rule["place"]["since"]] = following
            for batch in self.checkpoint.begun():
                if batch not in self.offsets or batch >= following:
                    self.offsets[batch] = offsets_in(self.checkpoint.offsets_of(batch).read_text())

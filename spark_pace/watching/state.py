"""The state of a job in one word, for people and programs."""

from __future__ import annotations

from typing import Literal

from spark_pace.watching.running import Running
from spark_pace.watching.seen import Seen

Word = Literal["runs", "finished", "stopped", "unknown"]


def state_word(seen: Seen, state: Running | None) -> Word:
    """`runs` on this machine, has `finished` its input, or is `stopped`; `unknown` without its checkpoint."""
    if state is not None and state.process is not None:
        return "runs"
    if seen.last is not None and seen.last["finished"]:
        return "finished"
    return "unknown" if state is None else "stopped"

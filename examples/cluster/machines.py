"""Machines of a cluster on this one: network namespaces of Linux on a bridge, each with its own address.

What runs in one reaches the others through the bridge alone. Its link can be taken down, as a network fails,
and held to a bandwidth. It can be given no sight of folders of this machine. This needs Linux and root.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from spark_pace.errors import UnfitError

_NET = "10.99.77"
_BRIDGE = "pace-br"
_BURST = "64kb"
_MOST_WAIT = "200ms"


class Machines:
    """Namespaces `pace-0`, `pace-1`, …; this machine is on the bridge, too, at `here`."""

    here = f"{_NET}.254"

    def __init__(self, count: int, hidden: Sequence[Path] = ()) -> None:
        """Make them.

        Args:
            count: how many.
            hidden: folders of which processes of a machine see nothing: an empty one each of its own.

        Raises:
            UnfitError: this is not root, or there are no namespaces.
        """
        if os.geteuid():
            must, do = "must be made by root", "Run this as root, or without machines of their own."
            raise UnfitError(f"network namespaces — {must}; got another user. {do}")
        self._count, self._hidden = count, [str(folder) for folder in hidden]
        self._remove()
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("address", "add", f"{self.here}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        for number in range(count):
            self._add(number)

    def __enter__(self) -> Machines:
        """The machines, which are there."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove them; what runs in them must have ended."""
        self._remove()

    def address(self, number: int) -> str:
        """The address of a machine."""
        return f"{_NET}.{number + 1}"

    def within(self, number: int, command: Sequence[str]) -> list[str]:
        """The command that runs a command on a machine, in one process."""
        if not self._hidden:
            return ["ip", "netns", "exec", f"pace-{number}", *command]
        hide = " && ".join(f'mount -t tmpfs none "{folder}"' for folder in self._hidden)
        script = f'{hide} && exec "$@"'
        return ["ip", "netns", "exec", f"pace-{number}", "sh", "-c", script, "sh", *command]

    def cut_off(self, number: int) -> None:
        """Take the link of a machine down: it runs on, and reaches nobody."""
        _ip("link", "set", f"pace-v{number}", "down")

    def join(self, number: int) -> None:
        """Take the link of a machine up again."""
        _ip("link", "set", f"pace-v{number}", "up")

    def hold_to(self, number: int, megabits: float) -> None:
        """Let so many millions of bits a second go to a machine, and as many come from it."""
        shape = ["root", "tbf", "rate", f"{megabits}mbit", "burst", _BURST, "latency", _MOST_WAIT]
        _run("tc", "qdisc", "replace", "dev", f"pace-v{number}", *shape)
        _run("ip", "netns", "exec", f"pace-{number}", "tc", "qdisc", "replace", "dev", "eth0", *shape)

    def sent(self, number: int) -> int:
        """The bytes that have left a machine by its link so far."""
        return int(Path(f"/sys/class/net/pace-v{number}/statistics/rx_bytes").read_text(encoding="ascii"))

    def _add(self, number: int) -> None:
        name, outside = f"pace-{number}", f"pace-v{number}"
        _ip("netns", "add", name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outside, "master", _BRIDGE, "up")
        for options in (
            ("address", "add", f"{self.address(number)}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-netns", name, *options)

    def _remove(self) -> None:
        """Remove what is there, also of an earlier run that was killed."""
        for number in range(self._count):
            with suppress(UnfitError):
                _ip("netns", "delete", f"pace-{number}")
            with suppress(UnfitError):
                _ip("link", "delete", f"pace-v{number}")
        with suppress(UnfitError):
            _ip("link", "delete", _BRIDGE)


def _ip(*options: str) -> None:
    _run("ip", *options)


def _run(*command: str) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        must, do = "must be installed", "Install iproute2."
        raise UnfitError(f"{command[0]} — {must}; got no such program. {do}") from error
    if answer.returncode:
        must, got = "must do its work", answer.stderr.strip() or f"exit code {answer.returncode}"
        raise UnfitError(f"{' '.join(command)} — {must}; got: {got}. Network namespaces need Linux and root.")

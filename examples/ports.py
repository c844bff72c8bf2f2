"""Ports for servers that must know theirs before they start, and keep it when they start again."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom

_FIRST, _LAST = 20_000, 32_000  # below those that Linux gives to whoever asks for any


def free_port(host: str = "127.0.0.1") -> int:
    """A port of this machine that is free, and that no connection of others is given meanwhile."""
    while True:
        with socket.socket() as free, suppress(OSError):
            free.bind((host, SystemRandom().randrange(_FIRST, _LAST)))
            return int(free.getsockname()[1])

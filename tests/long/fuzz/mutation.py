"""Inputs made from earlier ones: bytes and words changed, moved, repeated; two of them spliced."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

MOST_TIMES = 16_384
_ODD = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xae",
    b"\xf0\x9f\x99\x82", b"\x1b[2J",
    b"\r", b"\n", b"\t", b"\x0b", b"\x0c", b" ", b"-1", b"0", b"9223372036854775808", b"-9223372036854775809",
    b"1e999", b"1e", b".", b"NaN",
    b"..", b"/", b"\\", b"'", b'"', b"`", b"${env:HOME}", b"[/]", b"%s", b"\xc2\xb2", b"\xd9\xa3",
)  # fmt: skip

Change = Callable[[random.Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]


def mutated(chance: random.Random, pool: Sequence[bytes], words: Sequence[bytes], most_bytes: int) -> bytes:
    """A new input from one of the pool, mostly a near one."""
    text = pool[chance.randrange(len(pool))]
    while True:
        text = chance.choice(_CHANGES)(chance, text, pool, words)
        if chance.random() < 0.4:
            return text[:most_bytes]


def _slice(chance: random.Random, text: bytes) -> tuple[int, int]:
    """Mostly a short one."""
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + int(chance.paretovariate(0.7)))


def _insert(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(words) + text[at:]


def _insert_odd(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    return _insert(chance, text, pool, _ODD)


def _replace(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _slice(chance, text)
    return text[:start] + chance.choice(words) + text[end:]


def _swap_word(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One word that stands there for another."""
    here = text.find(word := chance.choice(words), chance.randrange(len(text) + 1))
    return text if here < 0 else text[:here] + chance.choice(words) + text[here + len(word) :]


def _delete(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _slice(chance, text)
    return text[:start] + text[end:]


def _change_byte(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :]


def _repeat(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A part many times over: depth, length, quadratic costs."""
    start, end = _slice(chance, text)
    times = min(int(chance.paretovariate(0.5)) + 1, MOST_TIMES // max(1, end - start))
    return text[:start] + text[start:end] * times + text[end:]


def _splice(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    other = chance.choice(pool)
    return text[: chance.randrange(len(text) + 1)] + other[chance.randrange(len(other) + 1) :]


def _copy_into(chance: random.Random, text: bytes, pool: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A part of one input somewhere into another: expressions within expressions, lines among lines."""
    other = chance.choice(pool)
    start, end = _slice(chance, other)
    at, to = _slice(chance, text)
    return text[:at] + other[start:end] + text[to:]


_CHANGES: tuple[Change, ...] = (
    _insert, _insert, _insert_odd, _replace, _replace, _swap_word, _swap_word,
    _delete, _change_byte, _repeat, _splice, _copy_into,
)  # fmt: skip

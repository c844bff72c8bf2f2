"""Reads the keys of one mapping: each with its kind of value, unknown ones with the nearest valid key."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence
from types import MappingProxyType

from spark_pace.rules.document.document import Broken, Listing, Mapping, Node, Scalar, describe
from spark_pace.rules.document.report import Place, Report, meant_by, nearest, quote


class Section:
    """The entries of a mapping. Every method reports what is wrong and then returns None (or the default)."""

    def __init__(
        self,
        mapping: Mapping,
        report: Report,
        known: Sequence[str],
        elsewhere: abc.Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take the mapping's keys, and report those that are not `known`.

        A misspelt key is reported, then read as the key that is meant. `elsewhere`: keys that other languages
        have, with what to write here.
        """
        self.place = mapping.place
        self.report = report
        self._entries = dict(mapping.entries)
        for key, (place, node) in mapping.entries.items():
            if key in elsewhere:
                report.add(place, "must be a known key", quote(key), elsewhere[key])
            elif key not in known:
                report.add(place, "must be a known key", quote(key), nearest(key, known))
                if (meant := meant_by(key, known)) is not None:
                    self._entries.setdefault(meant, (place, node))

    def has(self, key: str) -> bool:
        """Tell whether the key stands in the file."""
        return key in self._entries

    def key_place(self, key: str) -> Place:
        """The place of the key itself."""
        return self._entries[key][0]

    def node(self, key: str) -> Node | None:
        """What stands under the key, unless it is missing or already reported."""
        node = self._entries[key][1] if key in self._entries else None
        return None if isinstance(node, Broken) else node

    def require(self, key: str, example: str) -> bool:
        """Report a missing key."""
        if key not in self._entries:
            self.report.add(self.place, f"must have the key {quote(key)}", "none", f"Add {example}.")
        return key in self._entries

    def refuse(self, keys: Sequence[str], why: str) -> None:
        """Report each of the keys that stands here though it has no meaning here."""
        for key in keys:
            if key in self._entries:
                self.report.add(self._entries[key][0], "must be left out here", quote(key), why)

    def text(self, key: str, example: str) -> Scalar | None:
        """A text (numbers are not taken for text)."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return node
        self.report.add(node.place, "must be text", describe(node), f"Write for example {example}.")
        return None

    def choice(self, key: str, valid: Sequence[str], default: str) -> str:
        """One of some words; where it is reported as wrong, the one that is meant, or the default."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and node.text in valid:
            return node.text
        advice = nearest(node.text, valid) if isinstance(node, Scalar) else f"Use one of: {', '.join(valid)}."
        self.report.add(node.place, f"must be {_either(valid)}", describe(node), advice)
        return (meant_by(node.text, valid) if isinstance(node, Scalar) else None) or default

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.report.add(
            node.place, "must be true or false", describe(node), "Write true or false, without quotes."
        )
        return default

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number from `least` to `most`."""
        node = self.node(key)
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.report.add(
            node.place,
            f"must be a whole number from {least} to {most}",
            describe(node),
            "Correct the number.",
        )
        return None

    def mapping(self, key: str, example: str) -> Mapping | None:
        """A mapping."""
        node = self.node(key)
        if node is None or isinstance(node, Mapping):
            return node
        self.report.add(node.place, "must be a mapping", describe(node), f"Write for example {example}.")
        return None

    def texts(self, key: str, example: str) -> list[Scalar]:
        """A list of texts; wrong items are reported and left out."""
        node = self.node(key)
        if node is None:
            return []
        if not isinstance(node, Listing) or not node.items:
            got = "an empty list" if isinstance(node, Listing) else describe(node)
            self.report.add(node.place, "must be a list of texts", got, f"Write for example {example}.")
            return []
        found = []
        for item in node.items:
            if isinstance(item, Scalar) and isinstance(item.value, str) and item.value.strip():
                found.append(item)
            elif not isinstance(item, Broken):
                self.report.add(item.place, "must be text", describe(item), f"Write for example {example}.")
        return found


def as_mapping(node: Node | None, report: Report, example: str) -> Mapping | None:
    """The node if it is a mapping; reports it otherwise."""
    if isinstance(node, Mapping):
        return node
    if node is not None and not isinstance(node, Broken):
        report.add(node.place, "must be a mapping", describe(node), f"Write for example {example}.")
    return None


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]

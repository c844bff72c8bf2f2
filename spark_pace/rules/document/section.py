"""Reads the keys of a mapping, each with its kind of value, and reports unknown keys."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence
from types import MappingProxyType

from spark_pace.rules.document.document import Broken, Listing, Mapping, Node, Scalar, describe
from spark_pace.rules.document.report import Place, Report, meant_by, nearest, quote


class Section:
    """The keys of a mapping. Methods report a wrong value and then return None, or a default."""

    def __init__(
        self,
        mapping: Mapping,
        report: Report,
        known: Sequence[str],
        elsewhere: abc.Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take the mapping's keys, and report those that are not in `known`.

        A misspelt key is reported, and then read as the key that was probably meant. `elsewhere` has keys of
        other languages, each with the known key that it stands for, and is read as, or with the advice what
        to write instead.
        """
        self.place = mapping.place
        self.report = report
        self._written = mapping.entries
        self._entries = dict(mapping.entries)
        for key, (place, node) in mapping.entries.items():
            if key in known and key not in elsewhere:
                continue
            instead = elsewhere.get(key)
            meant = instead if instead in known else None
            if instead is None:
                instead, meant = nearest(key, known), meant_by(key, known)
            elif meant is not None:
                instead = f"Write {meant}."
            report.add(place, "must be a known key", quote(key), instead)
            if meant is not None:
                self._entries.setdefault(meant, (place, node))

    def has(self, key: str) -> bool:
        """True if the file has the key."""
        return key in self._entries

    def key_place(self, key: str) -> Place:
        """The place of the key itself."""
        return self._entries[key][0]

    def node(self, key: str) -> Node | None:
        """The node of the key; None if it is missing or was reported."""
        node = self._entries[key][1] if key in self._entries else None
        return None if isinstance(node, Broken) else node

    def require(self, key: str, example: str) -> bool:
        """True if the key is there; else it is reported as missing."""
        if key not in self._entries:
            self.report.add(self.place, f"must have the key {quote(key)}", "none", f"Add {example}.")
        return key in self._entries

    def refuse(self, keys: Sequence[str], why: str) -> None:
        """Report those of the keys that are there, because they have no meaning here.

        A key that is only meant by a misspelt one is left alone: the file does not have it.
        """
        for key in keys:
            if key in self._written:
                self.report.add(self._entries[key][0], "must be left out here", quote(key), why)

    def text(self, key: str, example: str) -> Scalar | None:
        """The value if it is a text; numbers are not."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return node
        self.report.add(node.place, "must be text", describe(node), f"Write for example {example}.")
        return None

    def choice(self, key: str, valid: Sequence[str], default: str) -> str:
        """The value if it is one of the valid words; else the one probably meant, or the default."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and node.text in valid:
            return node.text
        advice = nearest(node.text, valid) if isinstance(node, Scalar) else f"Use one of: {', '.join(valid)}."
        self.report.add(node.place, f"must be {_either(valid)}", describe(node), advice)
        return (meant_by(node.text, valid) if isinstance(node, Scalar) else None) or default

    def flag(self, key: str, default: bool, advice: str = "Write true or false, without quotes.") -> bool:
        """The value, which must be true or false; `advice` says what to write instead of another."""
        node = self.node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.report.add(node.place, "must be true or false", describe(node), advice)
        return default

    def whole(self, key: str, least: int, most: int) -> int | None:
        """The value, which must be a whole number from `least` to `most`."""
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
        """The value, which must be a mapping."""
        node = self.node(key)
        if node is None or isinstance(node, Mapping):
            return node
        self.report.add(node.place, "must be a mapping", describe(node), f"Write for example {example}.")
        return None

    def texts(self, key: str, example: str) -> list[Scalar]:
        """The items of the value, which must be a list of texts; wrong items are reported and left out."""
        node = self.node(key)
        if node is None:
            return []
        if not isinstance(node, Listing) or not node.items:
            got = "an empty list" if isinstance(node, Listing) else describe(node)
            name = node.value if isinstance(node, Scalar) else None
            if isinstance(name, str) and name.replace(".", "").isidentifier():
                example = f"{example.partition(':')[0]}: [{name}]"
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
    """The node if it is a mapping; else None, and that is reported."""
    if isinstance(node, Mapping):
        return node
    if node is not None and not isinstance(node, Broken):
        report.add(node.place, "must be a mapping", describe(node), f"Write for example {example}.")
    return None


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]

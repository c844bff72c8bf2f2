"""Parses YAML into a tree in which each node has its place in the file; collects the problems that are found.

The tree is built from PyYAML's parser events, with plain values as in YAML 1.2 (``on`` and ``yes`` are text).
Anchors, tags and second documents are refused; size and depth are limited. `Section` reads a mapping's keys.
"""

from __future__ import annotations

import difflib
import re
from collections import abc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from spark_pace.errors import Problem, one_line
from spark_pace.io.files.addresses import PLACES, objection
from spark_pace.io.files.local import RegularFile

_SHOWN_CHARACTERS = 80
_MOST_COMPARED = 200
MOST_PROBLEMS = 50  # more would not help anybody, and would cost time


@dataclass(frozen=True)
class Place:
    """A position in a file: line and column count from 1; `path` is like ``rules[0].within``."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        """The place as ``file:line:column path``, without unknown parts."""
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position} {self.path}" if self.path else position


class TooManyError(Exception):
    """Ends a check that has found too many problems; the report says so."""


@dataclass
class Report:
    """Collects problems, so that a check can go on and report up to `most` of them."""

    most: int = MOST_PROBLEMS
    _found: list[tuple[Place, Problem]] = field(default_factory=list)
    _more: tuple[Problem, ...] = ()

    def add(self, place: Place, must: str, got: str, do: str) -> None:
        """Add a problem.

        Raises:
            TooManyError: there are `most` already.
        """
        if len(self._found) == self.most:
            must = f"must have at most {self.most} problems to be checked to its end"
            self._more = (Problem(one_line(place.file), must, "more", "Correct these first."),)
            raise TooManyError
        self._found.append(
            (place, Problem(one_line(str(place)), one_line(must), one_line(got), one_line(do)))
        )

    def add_all(self, place: Place, problems: Iterable[Problem]) -> None:
        """Add problems that say themselves where they are: at a place, or behind it."""
        for problem in problems:
            self.add(place, problem.must, problem.got, problem.do)
            self._found[-1] = (place, problem)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems, file by file and from top to bottom.

        If the check was ended early, the last problem says that there are more.
        """
        files = list(dict.fromkeys(place.file for place, _ in self._found))
        ordered = sorted(
            self._found, key=lambda entry: (files.index(entry[0].file), entry[0].line, entry[0].column)
        )
        return (*(problem for _, problem in ordered), *self._more)

    @property
    def count(self) -> int:
        """The number of problems so far."""
        return len(self._found)

    @property
    def clean(self) -> bool:
        """True if there are no problems."""
        return not self._found


def quote(text: str) -> str:
    """The text in double quotes, on one line, cut if it is long."""
    return f'"{one_line(text, _SHOWN_CHARACTERS)}"'


def meant_by(word: str, valid: Sequence[str]) -> str | None:
    """The valid word most similar to a misspelt one; None if none is similar, or there are too many."""
    if len(word) > _SHOWN_CHARACTERS or len(valid) > _MOST_COMPARED:
        return None  # a comparison costs the product of the lengths
    return next(iter(difflib.get_close_matches(word, valid, n=1, cutoff=0.6)), None)


def nearest(word: str, valid: Iterable[str]) -> str:
    """Advice for a wrong word: the most similar valid one, or all valid ones."""
    choices = list(valid)
    if (meant := meant_by(word, choices)) is not None:
        return f"Did you mean {quote(meant)}?"
    if not choices:
        return "Nothing can be named here."
    return f"Use one of: {', '.join(quote(choice) if ',' in choice else choice for choice in choices)}."


MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 50_000
MAX_KEY_CHARACTERS = 200  # each node below a key repeats the key in its path
Value: TypeAlias = "str | int | float | bool | None"
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # possible through YAML's escapes
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Scalar:
    """A single value. `text` is its text; `value` is what YAML makes of it."""

    place: Place
    value: Value
    text: str
    # the column of the first character of `text`, if the file has the text literally; else None
    inline: int | None
    # the column where the lines of a text begin that is written behind "|"; None for others
    block: int | None = None

    def is_sparks(self, _offset: int) -> bool:
        """Tell whether what stands there is for Spark to read: nothing is, but in a query."""
        return False

    def at(self, offset: int) -> Place:
        """The place of the character `offset` of the text, or of the whole value if that is not known."""
        if self.block is not None:
            before = self.text[:offset]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
            return Place(self.place.file, self.place.line + line, self.block + column, self.place.path)
        if self.inline is None:
            return self.place
        return Place(self.place.file, self.place.line, self.inline + offset, self.place.path)


@dataclass(frozen=True)
class Listing:
    """A list of nodes."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Mapping:
    """Keys, each with its place and its node."""

    place: Place
    entries: dict[str, tuple[Place, Node]]


@dataclass(frozen=True)
class Broken:
    """A node that was reported as wrong; nothing more is reported about it."""

    place: Place


Node: TypeAlias = Scalar | Listing | Mapping | Broken


def describe(node: Node) -> str:
    """A node in words, for the "got …" of a problem."""
    if isinstance(node, Listing):
        return f"a list of {len(node.items)}" if node.items else "an empty list"
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Scalar) and node.value is not None:
        return quote(node.text) if isinstance(node.value, str) else node.text
    return "nothing"


def read_document(path: str | Path, report: Report) -> Node | None:
    """Read and parse a file; None if it cannot be read. Problems go to `report`."""
    text = _read_text(str(path), report)
    return None if text is None else parse_document(text, str(path), report)


def parse_document(text: str, file: str, report: Report) -> Node | None:
    """Parse a YAML text; None if it is no YAML. Problems go to `report`."""
    try:
        return _Builder(text, file, report).document()
    except _TooMuchError:
        return None
    except yaml.MarkedYAMLError as error:
        _report_syntax(error, file, report)
    except (ValueError, OverflowError):
        # PyYAML does not check the range of an escape such as "\\UFFFFFFFF", nor the digits of a version
        got = "an escape or a number out of range"
        report.add(Place(file), "must be valid YAML", got, "Write the character itself.")
    except yaml.reader.ReaderError as error:
        before, sign = text[: error.position], text[error.position]
        place = Place(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        report.add(place, "must be printable text", f"the character #x{ord(sign):04x}", "Remove it.")
    return None


def _read_text(file: str, report: Report) -> str | None:
    place = Place(file)
    try:
        with BufferedReader(RegularFile(file)) as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        got = (error.strerror or "an error").lower()
        report.add(place, "must be a file that can be read", got, "Check the path.")
        return None
    if len(content) > MAX_BYTES:
        report.add(place, "must be at most 1 MiB", "a larger file", "Split it into several files.")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        got = f"the byte 0x{content[error.start]:02x}"
        report.add(Place(file, line, column), "must be UTF-8 text", got, "Save it as UTF-8.")
        return None


def _report_syntax(error: yaml.MarkedYAMLError, file: str, report: Report) -> None:
    mark, problem = error.problem_mark or error.context_mark, error.problem or "an error"
    if problem == "found unexpected end of stream" and error.context_mark:
        mark, problem = error.context_mark, "a text whose quotation mark is not closed"
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    problem = problem.replace("\n", " ")
    if "'\\t'" in problem:
        report.add(place, "must be indented with spaces", "a tab", "Replace tabs by spaces.")
    else:
        report.add(
            place, "must be valid YAML", problem, "Correct the YAML; quote text that holds : # , [ ] { or }."
        )


class _Builder:
    """Builds the tree from parser events."""

    def __init__(self, text: str, file: str, report: Report) -> None:
        self._text = text
        self._lines = text.splitlines()
        self._file = file
        self._report = report
        self._nodes = 0
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.SafeLoader)

    def document(self) -> Node | None:
        next(self._events)  # the stream's start
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            self._report.add(
                Place(self._file), "must hold a mapping", "an empty file", "Write the keys that belong in it."
            )
            return None
        root = self._node(next(self._events), "", 0)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._report.add(
                self._place(event, ""), "must be one document", "a second one", 'Remove the line "---".'
            )
        return root

    def _place(self, event: Any, path: str) -> Place:
        return Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1, path)

    def _node(self, event: Any, path: str, depth: int) -> Node:
        place = self._place(event, path)
        of = {"alias *": event.anchor} if isinstance(event, yaml.AliasEvent) else {}
        of = of or {"anchor &": event.anchor, "tag ": event.tag}
        for what, name in of.items():
            if name:
                do = "Aliases, anchors and tags are not read here."
                self._report.add(place, "must be written out", f"the {what}{name}", do)
        if "alias *" in of:
            return Broken(place)
        if depth > MAX_DEPTH:
            self._report.add(
                place, f"must be at most {MAX_DEPTH} levels deep", "a deeper one", "Make it flat."
            )
            raise _TooMuchError
        self._nodes += 1
        if self._nodes > MAX_NODES:
            must = f"must be among the first {MAX_NODES} values of a file"
            self._report.add(place, must, "more", "Split it into several files.")
            raise _TooMuchError
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._listing(place, depth)
        return self._mapping(place, depth, in_braces=event.flow_style)

    def _scalar(self, event: Any, place: Place) -> Scalar | Broken:
        if odd := _UNREADABLE.search(event.value):
            self._report.add(
                place, "must be printable text", f"the character #x{ord(odd[0]):04x}", "Remove it."
            )
            return Broken(place)
        plain = event.style in (None, "")
        value = plain_value(event.value) if plain else event.value
        inline = place.column if plain else place.column + 1
        line = self._lines[place.line - 1] if place.line <= len(self._lines) else ""
        exact = event.style in (None, "", "'", '"') and line.startswith(event.value, inline - 1)
        block = self._block(place.line, event.value) if event.style == "|" else None
        return Scalar(place, value, event.value, inline if exact else None, block)

    def _block(self, line: int, text: str) -> int | None:
        """The column where the lines of a text begin that is written in the lines behind this one."""
        lines = text.splitlines()
        first = next((number for number, one in enumerate(lines) if one), None)
        if first is None or line + first >= len(self._lines):
            return None
        written = self._lines[line + first]
        return len(written) - len(lines[first]) + 1 if written.endswith(lines[first]) else None

    def _listing(self, place: Place, depth: int) -> Listing:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, f"{place.path}[{len(items)}]", depth + 1))
        return Listing(place, tuple(items))

    def _mapping(self, place: Place, depth: int, *, in_braces: bool) -> Mapping | Broken:
        entries, torn = dict[str, tuple[Place, Node]](), False
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, value = self._node(event, place.path, depth + 1), next(self._events)
            if in_braces and entries and ":" not in self._text[event.end_mark.index : value.start_mark.index]:
                if not torn:
                    self._report_torn(*list(entries.items())[-1])
                torn = True
                continue
            if not isinstance(key, Scalar) or len(key.text) > MAX_KEY_CHARACTERS:
                if not isinstance(key, Broken):
                    must = f"must be a plain key of at most {MAX_KEY_CHARACTERS} characters"
                    self._report.add(key.place, must, describe(key), "Write a name before the colon.")
                self._node(value, place.path, depth + 1)
                continue
            path = f"{place.path}.{key.text}" if place.path else key.text
            node = self._node(value, path, depth + 1)
            here = Place(self._file, key.place.line, key.place.column, path)
            if key.text in entries:
                first = entries[key.text][0].line
                self._report.add(
                    here, "must stand once", f"a second one; the first is in line {first}", "Remove one."
                )
            else:
                entries[key.text] = (here, node)
        return Broken(place) if torn else Mapping(place, entries)

    def _report_torn(self, key: str, entry: tuple[Place, Node]) -> None:
        """Report a text that YAML has ended at a comma, as in ``{a: x in (1, 2)}``: no key follows it."""
        must, do = "must stand in quotes if it holds a comma", f'Write {key}: "...", with all of the text.'
        self._report.add(entry[1].place, must, describe(entry[1]), do)


class _TooMuchError(Exception):
    """Ends the parsing of a document that is too deep or too long, after that was reported."""


def plain_value(text: str) -> Value:
    """The value of an unquoted scalar in YAML 1.2 (decimal numbers only)."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def check_address(path: Scalar, report: Report, schemes: tuple[str, ...] = PLACES) -> None:
    """Report an address that is none of a store, or that tells more than where something is."""
    address = path.text.removeprefix("file://")
    _, is_address, rest = address.partition("://")
    if not is_address:
        return
    prefix = rest.partition("/")[2]
    if wrong := objection(address, schemes):
        report.add(path.place, *wrong)
    elif any(part in ("", ".", "..") for part in prefix.rstrip("/").split("/")) and prefix:
        must = "must have a name between each two slashes"
        report.add(path.place, must, quote(path.text), "Correct the address.")


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

    def node(self, key: str, need: str = "") -> Node | None:
        """The node of the key; None if it is missing or was reported.

        `need` is an example for a key that must be there, else it is reported as missing.
        """
        if need:
            self.require(key, need)
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

    def text(self, key: str, example: str, need: str = "") -> Scalar | None:
        """The value if it is a text; numbers are not."""
        node = self.node(key, need)
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
        return as_mapping(self.node(key), self.report, example)

    def texts(self, key: str, example: str, *, alone: bool = False) -> list[Scalar]:
        """The items of the value, which must be a list of texts; wrong items are reported and left out.

        Where it may stand `alone`, a text counts as a list of it.
        """
        node = self.node(key)
        if node is None:
            return []
        if alone and isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return [node]
        if not isinstance(node, Listing) or not node.items:
            must = "must be text, or a list of texts" if alone else "must be a list of texts"
            self.report.add(node.place, must, describe(node), f"Write for example {example}.")
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

"""The keys of a job file: each is declared beside the field that it fills, and all are read in one way.

A field of a dataclass says by `key` what may stand under its key. `known` gives the keys of a dataclass, and
`read_keys` reads those that a file has. What is wrong is reported, and left out of what is read. Paths are
among them: of sources, tables and the checkpoint.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from spark_pace.errors import UnfitError
from spark_pace.io.files.addresses import PLACES, AnyPath, path_at
from spark_pace.job_file.secrets import Secrets
from spark_pace.rules.document import Scalar, Section, check_address, describe, nearest, quote
from spark_pace.rules.lengths import read_bounded, read_duration

SINKS = (*PLACES, "viewfs")  # which the writer of tables reaches
# delta-rs (1.6) decodes %20 and the like in a table's path, takes \\ for /, and aborts on the others
_MISTAKEN = re.compile(r"%[0-9A-Fa-f]{2}|[\\\[\]|^\x00-\x1f\x7f]")
# in an address it takes # and ? for the end of the path; on HDFS it does not find again what it encodes
_MISTAKEN_AT = re.compile(rf"{_MISTAKEN.pattern}|[#?]")
_MISTAKEN_ON_HDFS = re.compile(r"[^\w/:@!$&'()*+,;=.~-]", re.ASCII)


def resolve(text: str, folder: Path) -> str:
    """The absolute path of a path relative to `folder`; addresses such as ``s3://…`` stay as they are."""
    return text if "://" in text else str((folder / text).resolve())


def local_path(path: str, key: str) -> Path:
    """The absolute path, on this machine, of a path in the job file.

    Args:
        path: the path; ``file://`` may stand before it.
        key: the key of the job file that names it, for the error.

    Raises:
        SetupError: it is an address, such as ``s3://…``.
    """
    local = path.removeprefix("file://")
    if "://" in local:
        do = "Mount it, or choose another place."
        raise UnfitError(f"{key} — must be on a file system that is mounted here; got {path}. {do}")
    return Path(os.path.abspath(local))


def in_store(path: str) -> bool:
    """True if a path is the address of something in an object store or on HDFS, whose files jobs can read."""
    return path.startswith(tuple(f"{scheme}://" for scheme in PLACES))


def mistaken(sink: str) -> tuple[str, str, str] | None:
    """What of a sink's path the writer of tables mistakes: (what must hold, what came, what to do)."""
    scheme, is_address, rest = sink.partition("://")
    which = '"%20" and the like, \\, [, ], |, ^ and control characters'
    forbidden = _MISTAKEN
    if scheme in ("hdfs", "viewfs"):
        forbidden, which = _MISTAKEN_ON_HDFS, "spaces, letters beyond ASCII, and signs such as # ? % [ ]"
    elif is_address:
        forbidden, which = _MISTAKEN_AT, f"#, ?, {which}"
    found = forbidden.search(rest or sink)
    if found is None:
        return None
    must = f"must lead to a folder without {which}, which the writer of tables mistakes"
    return must, f"{quote(found[0])} in {quote(sink)}", "Choose another name."


def checkpoint_at(path: str, spark: Mapping[str, str]) -> AnyPath:
    """Where the checkpoint of a job lies. Spark knows S3 as ``s3a://`` only, so ``s3://`` becomes that.

    Args:
        path: what the job file says, with an absolute path.
        spark: the job's settings of Spark; those of `fs.s3a` reach the store, else the environment's do.

    Raises:
        SetupError: a variable of the environment that they name is missing, or nothing can lie there.
    """
    if not in_store(path):
        return local_path(path, "checkpoint")
    return path_at(re.sub("^s3:", "s3a:", path), Secrets().resolve_all(spark, "spark"))


T = TypeVar("T")
# what is wrong with a text: (what must hold, what came, what to do); None if nothing is
Objection = Callable[[str], "tuple[str, str, str] | None"]
_UNIT = "_us"  # at the end of a field's name, not of its key


def _nothing(_: Section, __: str) -> None:
    return None


@dataclass(frozen=True)
class Kind:
    """What may stand under a key.

    Attributes:
        example: how it is written.
        read: takes the keys and the name of the key; None where it is missing or wrong, which is reported. A
            key that is read by who knows more than it says gives nothing here.
    """

    example: str = ""
    read: Callable[[Section, str], Any] = _nothing

    def to(self, made: Callable[[Any], Any]) -> Kind:
        """The same, with a value that is made of what is read."""

        def read(section: Section, name: str) -> Any:
            found = self.read(section, name)
            return None if found is None else made(found)

        return Kind(self.example, read)


@dataclass(frozen=True)
class Key:
    """The key that fills a field.

    Attributes:
        name: of the key.
        kind: what may stand there.
        needed: True if the file must have it.
    """

    name: str
    kind: Kind
    needed: bool = False


def key(kind: Kind, default: Any = MISSING, name: str = "") -> Any:
    """A field that a key fills, with its default: a value, or the type dict.

    A file must have a key without a default whose kind has an example.
    """
    needed = default is MISSING and bool(kind.example)
    said = {"kind": kind, "name": name, "needed": needed}
    if default is dict:
        return field(default_factory=dict, metadata=said)
    return field(default=default, metadata=said)


def known(of: type) -> dict[str, Key]:
    """The keys of a dataclass, by the names of their fields."""
    keys = {}
    for one in dataclasses.fields(of):
        if "kind" in one.metadata:
            name = one.metadata["name"] or one.name.removesuffix(_UNIT)
            keys[one.name] = Key(name, one.metadata["kind"], one.metadata["needed"])
    return keys


def names(keys: Mapping[str, Key]) -> tuple[str, ...]:
    """The names of keys, in the order of their fields."""
    return tuple(key.name for key in keys.values())


def read_keys(section: Section, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Read keys, and return what is right, by the names of the fields; report what is wrong or missing."""
    for one in keys.values():
        if one.needed:
            section.require(one.name, f"{one.name}: {one.kind.example}")
    read = {name: one.kind.read(section, one.name) for name, one in keys.items()}
    return {name: value for name, value in read.items() if value is not None}


def filled(of: type[T], section: Section) -> T | None:
    """The dataclass with what its keys say; None without a right value that is needed."""
    keys = known(of)
    read = read_keys(section, keys)
    return of(**read) if all(name in read for name, one in keys.items() if one.needed) else None


def section_of(of: type, example: str) -> Kind:
    """A mapping that has the keys of a dataclass."""

    def read(section: Section, name: str) -> Any:
        mapping = section.mapping(name, f"{name}: {example}")
        return mapping and filled(of, Section(mapping, section.report, names(known(of))))

    return Kind(example, read)


def text(example: str, objection: Objection = lambda _: None) -> Kind:
    """A text, which may be a reason for an objection."""

    def read(section: Section, name: str) -> str | None:
        found = section.text(name, f"{name}: {example}")
        if found is not None and (wrong := objection(found.text)):
            section.report.add(found.place, *wrong)
        return None if found is None else found.text

    return Kind(example, read)


def place(example: str, schemes: tuple[str, ...] = PLACES, objection: Objection = lambda _: None) -> Kind:
    """A path, relative to the folder of the job file and absolute once it is read, or an address."""

    def read(section: Section, name: str) -> str | None:
        found = section.text(name, f"{name}: {example}")
        if found is None:
            return None
        check_address(found, section.report, schemes)
        path = resolve(found.text, Path(found.place.file).parent)
        if wrong := objection(path):
            section.report.add(found.place, *wrong)
        return path

    return Kind(example, read)


def texts(example: str, once: str = "", objection: Objection = lambda _: None) -> Kind:
    """A list of texts; `once` says what each names, if to name it again is wrong."""

    def read(section: Section, name: str) -> tuple[str, ...] | None:
        found: list[str] = []
        for item in section.texts(name, f"{name}: {example}"):
            wrong = objection(item.text)
            if once and not wrong and item.text in found:
                wrong = f"must name {once} once", quote(item.text), "Remove one."
            if wrong:
                section.report.add(item.place, *wrong)
            elif item.text not in found:
                found.append(item.text)
        return tuple(found) or None

    return Kind(example, read)


def settings(example: str, of_name: Objection = lambda _: None, of_value: Objection = lambda _: None) -> Kind:
    """A mapping of single values, each read as text."""

    def read(section: Section, name: str) -> dict[str, str]:
        mapping = section.mapping(name, f"{name}: {example}")
        found: dict[str, str] = {}
        for setting, (there, node) in (mapping.entries if mapping else {}).items():
            if wrong := of_name(setting):
                section.report.add(there, *wrong)
            if not isinstance(node, Scalar) or node.value is None:
                do = "Write text, a number, true or false."
                section.report.add(node.place, "must be a single value", describe(node), do)
            elif wrong := of_value(node.text):
                section.report.add(node.place, *wrong)
            else:
                found[setting] = node.text
        return found

    return Kind(example, read)


def one_of(words: Sequence[str]) -> Kind:
    """One of some words; the first one where the key is missing."""
    return Kind(words[0], lambda section, name: section.choice(name, words, words[0]))


def flag() -> Kind:
    """True or false."""
    return Kind("true", lambda section, name: section.flag(name, False))


def whole(example: int, least: int, most: int) -> Kind:
    """A whole number, within bounds."""
    return Kind(str(example), lambda section, name: section.whole(name, least, most))


def single(example: str, must: str, read: Callable[[Any], Any], do: str) -> Kind:
    """A single value; `read` gives what is kept of it, None for one that is wrong."""

    def checked(section: Section, name: str) -> Any:
        node = section.node(name)
        found = read(node.value) if isinstance(node, Scalar) else None
        if node is not None and found is None:
            section.report.add(node.place, f"must be {must}", describe(node), do)
        return found

    return Kind(example, checked)


def duration(
    example: str, least: int = 0, bounds: tuple[int, int] | None = None, told: str = "", before: str = ""
) -> Kind:
    """A duration, in microseconds: at least `least`, or within bounds, which `told` has in words.

    `before` stands in the message before what it must be.
    """

    def read(section: Section, name: str) -> int | None:
        if bounds is not None:
            return read_bounded(section, name, example, bounds, told)
        node, must = section.node(name), f"{before}a duration such as {example}"
        return None if node is None else read_duration(node, section.report, must, least=least)

    return Kind(example, read)


def either(word: str, other: Kind) -> Kind:
    """A word, or something else."""

    def read(section: Section, name: str) -> Any:
        node = section.node(name)
        is_word = isinstance(node, Scalar) and node.text == word
        return word if is_word else other.read(section, name)

    return Kind(word, read)


def matching(pattern: str, must: str, do: str, got: str = "") -> Objection:
    """The objection to a text that is not of a pattern; `got` stands in place of one that may be secret."""
    fits = re.compile(pattern).fullmatch
    return lambda text: None if fits(text) else (must, got or quote(text), do)


def out_of(words: Sequence[str], must: str) -> Objection:
    """The objection to a text that is none of some words."""
    return lambda text: None if text in words else (must, quote(text), nearest(text, words))


def left_out(remedies: Mapping[str, str]) -> Objection:
    """The objection to the names of some settings in any case, each with what to do instead."""

    def objection(name: str) -> tuple[str, str, str] | None:
        do = remedies.get(name.lower())
        return None if do is None else ("must be left out", quote(name), do)

    return objection

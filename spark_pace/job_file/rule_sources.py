"""Where the rules of a job come from: rule files, folders of them, or a Delta table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spark_pace.rules.document.document import Mapping, Node, Scalar
from spark_pace.rules.document.report import Place, quote
from spark_pace.rules.document.section import Section

EXAMPLE = "rules: [rules.yaml]"
_OF_FILES = "Write rules: [rules.yaml, rules] for files and folders."
_NO_KEYS = dict.fromkeys(("file", "files", "folder", "path", "paths"), _OF_FILES)
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class RuleSources:
    """The rule files, in order, or the Delta table of rules; at least one of both is empty.

    Attributes:
        files: paths of files.
        table: the path or address of the table.
        place: where the job file names it.
    """

    files: tuple[str, ...] = ()
    table: str | None = None
    place: Place | None = None

    def stamp(self) -> tuple[int, ...]:
        """What changes with the table, if there is one."""
        if self.table is None:
            return ()
        from spark_pace.job_file.rule_table import table_stamp

        return table_stamp(self.table)

    def nodes(self, section: Section | None, fields: Section) -> tuple[Node, ...]:
        """The rules in the table, none without a table; problems are reported.

        Args:
            section: the section `events` of the job file, which must declare the attributes.
            fields: the keys of the job file.
        """
        if self.table is None or self.place is None:
            return ()
        if section is None or not section.has("schema"):
            do = 'Add events: {schema: "time TIMESTAMP, ...", event_time: time} to the job file.'
            fields.report.add(self.place, "must come with a schema of the events", "none", do)
            return ()
        from spark_pace.job_file.rule_table import rule_nodes

        return rule_nodes(self.table, self.place, fields.report)


def read_sources(fields: Section, path: Path) -> RuleSources:
    """Read the key `rules` of the job file at `path`."""
    node = fields.node("rules")
    if not isinstance(node, Mapping):
        return RuleSources(_read_files(fields, path))
    keys = Section(node, fields.report, ("table",), _NO_KEYS)
    keys.require("table", "table: rules")
    table = keys.text("table", "table: rules")
    if table is None:
        return RuleSources()
    return RuleSources((), table.text if "://" in table.text else str(path.parent / table.text), table.place)


def _read_files(fields: Section, path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for item in fields.texts("rules", EXAMPLE):
        for name in _names(item, path.parent, fields):
            resolved = str(path.parent / name)
            if Path(resolved).resolve() == path.resolve():
                do = "Put the rules into a file of their own."
                fields.report.add(item.place, "must name a rule file", "the job file itself", do)
            elif resolved in found:
                fields.report.add(item.place, "must name a file once", quote(name), "Remove one.")
            else:
                found.append(resolved)
    return tuple(found)


def _names(item: Scalar, folder: Path, fields: Section) -> list[str]:
    """The name itself, or if it is a folder the names of the rule files in it."""
    if not os.path.isdir(folder / item.text):
        return [item.text]
    try:
        names = sorted(os.listdir(folder / item.text))
    except OSError as error:
        got = (error.strerror or "an error").lower()
        fields.report.add(item.place, "must be a folder that can be read", got, "Check its rights.")
        return []
    found = [name for name in names if name.endswith(_ENDINGS) and not name.startswith(".")]
    if not found:
        must, got = "must be a folder with rule files (*.yaml, *.yml)", f"{quote(item.text)}, without one"
        fields.report.add(item.place, must, got, "Put one there, or name another folder.")
    return [str(Path(item.text) / name) for name in found]

"""The folder of a checkpoint: the names of its files, which batches have begun and ended, and short notes.

One note is Spark's, of a batch and of a query. The other says in what the files of a running job differ from
what runs: the job writes it, `spark-pace status` shows it, and a start removes it.

`ChunkFiles` are the large chunks that splitters carry from batch to batch. A splitter's task writes a chunk
before the slot's state names it. The driver removes it once no batch that may run again needs it. A file's
name is a checksum of its content, so a batch that runs again writes the same files, and a file that was
changed can be recognised.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

from spark_pace.core.frames import Sink
from spark_pace.errors import StateError
from spark_pace.io.files import files
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.io.files.files import RESTORE, damaged, digest

_DIGEST_BYTES = 16


class _Checked:
    """A file that computes the checksum of what is written to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def write(self, piece: Any, /) -> int:
        """Write a piece."""
        self.checksum.update(piece)
        return self._file.write(piece)

    def flush(self) -> None:
        """Do nothing; the file is flushed at its end."""


@dataclass(frozen=True)
class ChunkFiles:
    """The folder of chunks: a `spark_pace.core.frames.TableStore`.

    Attributes:
        folder: the folder, which is made with the first chunk.
    """

    folder: AnyPath

    def put(self, write: Callable[[Sink], None]) -> str:
        """Write a chunk, and return its name. Several processes may write the same chunk at once."""

        def fill(file: IO[bytes]) -> str:
            sink = _Checked(file)
            write(sink)
            return sink.checksum.hexdigest()

        return files.write_named(self.folder, fill)

    def get(self, name: str) -> memoryview:
        """The content of a chunk, mapped into memory.

        Raises:
            StateError: there is no such chunk.
        """
        try:
            return files.mapped(self.folder / name)
        except FileNotFoundError as error:
            raise damaged(self.folder / name, "no file") from error

    def require_whole(self, names: Iterable[str]) -> None:
        """Read these chunks, and compare each with the checksum in its name.

        Raises:
            StateError: a chunk is missing, or has another content.
        """
        for name in names:
            content: memoryview | bytes = b""
            with suppress(ValueError):  # it is empty
                content = self.get(name)
            if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest() != name:
                raise damaged(self.folder / name, "another content than its checksum is of")

    def remove(self, names: Iterable[str]) -> None:
        """Remove these chunks, if they still exist; what cannot be removed is left to the next start."""
        for name in names:
            with suppress(OSError):
                files.remove(self.folder / name)

    def remove_all_but(self, needed: Collection[str]) -> None:
        """Remove all other files of the folder, such as those of a batch that was never finished."""
        self.remove(set(files.names(self.folder)) - set(needed))


_QUERY = re.compile(rb'\{"id":"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"\}')
# Spark's note that a batch is done, for a query without a watermark of Spark's
COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'


def offsets_in(note: str) -> list[Any]:
    """The offset of each source in Spark's note of a batch; ValueError if the text is no such note.

    A note has a version, settings, then a line for each source. `recentProgress` has the offsets too, but
    only those of this run.
    """
    form, _, *offsets = note.splitlines()
    if form != "v1" or not offsets:
        raise ValueError("too few lines")
    return [json.loads(offset) for offset in offsets]


def first_offset_in(note: str) -> Any:
    """The offset at which Kafka was begun, in Spark's note of it; ValueError if the text is no such note."""
    form, _, offset = note.partition("\n")
    if form != "\0v1":
        raise ValueError("no version 1")
    return json.loads(offset)


def is_behind(later: Any, earlier: Any) -> bool:
    """True if offsets, or parts of them, are nowhere before others of the same sources."""
    if isinstance(earlier, dict):
        return all(is_behind(later[name], part) for name, part in earlier.items() if name in later)
    if isinstance(earlier, list):
        return len(later) == len(earlier) and all(map(is_behind, later, earlier))
    return not isinstance(earlier, int) or earlier <= later


def began_at(note: bytes) -> float | None:
    """When Spark began a batch, by its note, in seconds since 1970; None if the note does not say it."""
    try:
        return float(json.loads(note.splitlines()[1])["batchTimestampMs"]) / 1_000
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def is_commit(note: bytes) -> bool:
    """True if this is Spark's note that a batch is done, for a query without a watermark of Spark's."""
    form, _, text = note.partition(b"\n")
    try:
        return form == b"v1" and json.loads(text)["nextBatchWatermarkMs"] == 0
    except (ValueError, TypeError, KeyError):
        return False


def is_query(note: bytes) -> bool:
    """True if this is Spark's note of a query's id."""
    return _QUERY.fullmatch(note) is not None


class Checkpoint:
    """The folder of a checkpoint. Only this class knows the names of the files in it.

    The job writes these files when it starts, in this order:

    - ``.lock``: held by the job's process (`spark_pace.spark.checkpoint.lock`).
    - ``.lock-jvm``: held by the job's JVM (`spark_pace.spark.java.launch`).
    - ``source.json``: the kind of the job's source, and what identifies it, such as the ids of topics
      (`spark_pace.spark.sources.input`).
    - ``layout.json``: slots, buckets and rules (`spark_pace.spark.checkpoint.layout`).
    - ``metadata``: Spark's name of the query.

    Batch N then writes, in this order:

    - ``manifest.jsonl``: the files seen so far, if the job reads files (`spark_pace.spark.sources.manifest`).
    - ``log.json``: how far the log was read, if the job reads a Delta table
      (`spark_pace.spark.sources.manifest`).
    - ``clock.json``: the last tick of the clock, if the job reads Kafka and has one
      (`spark_pace.spark.sources.kafka`).
    - ``sources/0/0``: Spark's note of where a job that reads Kafka begins, before the first batch.
    - ``offsets/N``: Spark's note of what the batch reads. With it the batch has begun.
    - ``claims/N``: the same once more (`spark_pace.spark.checkpoint.lock`). In a store it is never written
      over.
    - ``lookup/N.json``: the versions of side tables for the batch, with copies of their content beside, if
      the job has side tables (`spark_pace.spark.stages.side_table_copies`).
    - ``waiting/``: chunks of the carry that are too large for a state (`ChunkFiles`).
    - ``state/``: Spark's store of the slots' states (`spark_pace.core.split.snapshot`).
    - ``levels/N+1``: the state of rules over rules for batch N + 1, if there are such rules
      (`spark_pace.spark.checkpoint.batch_begin`).
    - ``sequence/N+1.json``: what batch N + 1 begins with (`spark_pace.spark.checkpoint.batch_begin`).
    - the tables, which are outside the checkpoint.
    - ``commits/N``: Spark's note that the batch is done.

    In a store, the manifest is a prefix of parts, and the only lock is ``.lock``
    (`spark_pace.spark.checkpoint.lock`).

    Beside the batches, ``alerts/NAME.json`` says how far each target of alerts has come
    (`spark_pace.alerts.queue`), and ``files.json`` in what the job's files differ from what runs
    (`spark_pace.spark.checkpoint.checkpoint`).

    A batch then removes the files of ``waiting/`` that batch N - 1 needed and batches N and N + 1 do not.

    Attributes:
        path: the folder.
        lock_file: held locked by the job's process.
        jvm_lock_file: held locked by the job's JVM.
        source_file: the kind of the job's source and what identifies it.
        layout_file: slots, buckets and rules.
        files_note: in what the job's files differ from what runs.
        manifest_file: the input files seen so far.
        log_position_file: how far the log of a Delta table was read.
        clock_file: the last tick of the clock.
        metadata_file: Spark's name of the query.
        first_offset: Spark's note of where a job that reads Kafka begins.
        offsets: the folder with a file for each batch that has begun.
        commits: the folder with a file for each batch that is done.
        chunks: the large chunks that states name, in the folder `waiting`.
        side_tables: the folder with copies of side tables.
        sequences: the folder with a file for each batch but the first: the numbers that it begins with.
    """

    def __init__(self, path: AnyPath) -> None:
        """Name the files in a folder; those that other processes open by absolute paths."""
        self.path = path
        self.lock_file = path / ".lock"
        self.jvm_lock_file = path / ".lock-jvm"
        self.source_file = path / "source.json"
        self.layout_file = path / "layout.json"
        self.files_note = path / "files.json"
        self.manifest_file = path / "manifest.jsonl"
        self.log_position_file = path / "log.json"
        self.clock_file = path.absolute() / "clock.json"
        self.metadata_file = path / "metadata"
        self.first_offset = path / "sources" / "0" / "0"
        self.offsets = path / "offsets"
        self.commits = path / "commits"
        self.chunks = ChunkFiles(path.absolute() / "waiting")
        self.side_tables = path.absolute() / "lookup"
        self.sequences = path / "sequence"

    def __str__(self) -> str:
        """The path, for messages."""
        return str(self.path)

    def side_tables_of(self, batch_id: int) -> AnyPath:
        """The file with the version of each side table for a batch."""
        return self.side_tables / f"{batch_id}.json"

    def sequence(self, batch_id: int) -> AnyPath:
        """The file with the numbers that a batch begins with."""
        return self.sequences / f"{batch_id}.json"

    def level_state(self, batch_id: int) -> AnyPath:
        """The file with the state of rules over rules at the beginning of a batch."""
        return self.path / "levels" / str(batch_id)

    def alert_cursor(self, target: str) -> AnyPath:
        """The file that says how far a target of alerts has come."""
        return self.path / "alerts" / f"{target}.json"

    def forget_begin(self, batch_id: int) -> None:
        """Remove the files with what a batch began with. It is called long after the batch is done."""
        if batch_id >= 0:
            paths = [self.sequence(batch_id), self.level_state(batch_id), self.claim_of(batch_id)]
            files.remove(*paths)

    def offsets_of(self, batch_id: int) -> AnyPath:
        """Spark's note of what a batch reads."""
        return self.offsets / str(batch_id)

    def commit_of(self, batch_id: int) -> AnyPath:
        """Spark's note that a batch is done."""
        return self.commits / str(batch_id)

    def last_begun(self) -> int:
        """The last batch that has begun; -1 before the first.

        Raises:
            StateError: the batch before it is not known.
        """
        return _last(self.offsets)

    def last_done(self) -> int:
        """The last batch that is done; -1 before the first.

        Raises:
            StateError: the batch before it is not known.
        """
        return _last(self.commits)

    def next_batch(self) -> int:
        """The first batch that is not done; it may have begun.

        Raises:
            StateError: the batch before the last one done is not known.
        """
        return self.last_done() + 1

    def claim_of(self, batch_id: int) -> AnyPath:
        """What a batch reads, as the first job that ran it has noted."""
        return self.path / "claims" / str(batch_id)

    def claimed(self) -> list[int]:
        """The batches that are claimed, without those that are long done; in any order."""
        return _numbers(self.claim_of(0).parent)

    def offsets_digest(self, batch_id: int, note: bytes | None = None) -> str:
        """A checksum of Spark's note of what a batch reads, and of where the first batch began with Kafka.

        Args:
            batch_id: the batch.
            note: the note; None: as it lies here, in a store as it was claimed.
        """
        if note is None and isinstance(self.path, StorePath):
            note = files.read(self.claim_of(batch_id))
        began = None if batch_id else files.read(self.first_offset)
        return digest(self.note_of(batch_id) if note is None else note, digest(began or b""))

    def last_offsets(self) -> list[Any]:
        """The offset of each source after the last batch that has begun; empty before the first.

        Raises:
            StateError: Spark's note is damaged.
        """
        last = self.last_begun()
        return self.offsets_after(last) if last >= 0 else []

    def begun(self) -> list[int]:
        """The batches that have begun, without those whose notes Spark has removed; in any order."""
        return _numbers(self.offsets)

    def begun_at(self, batch_id: int) -> float | None:
        """When a batch began, in seconds since 1970; None if it has not, or Spark has removed its note."""
        found = files.stat(self.offsets_of(batch_id))
        return None if found is None else found.changed_ns / 1e9

    def offsets_after(self, batch_id: int, note: bytes | None = None) -> list[Any]:
        """The offset of each source after a batch that has begun.

        Args:
            batch_id: the batch.
            note: Spark's note of what it reads; None: as it lies here.

        Raises:
            StateError: Spark's note is damaged.
        """
        try:
            return offsets_in((self.note_of(batch_id) if note is None else note).decode("utf-8"))
        except ValueError as error:
            raise not_of_spark(self.offsets_of(batch_id), f"damaged text ({error})") from error

    def offsets_before(self, batch_id: int) -> list[Any]:
        """The offset of each source before a batch that has begun; before batch 0, of Kafka alone.

        Raises:
            StateError: Spark's note is damaged.
        """
        if batch_id:
            return self.offsets_after(batch_id - 1)
        began = files.read(self.first_offset)
        try:
            return [] if began is None else [first_offset_in(began.decode())]
        except ValueError as error:
            raise not_of_spark(self.first_offset, f"damaged text ({error})") from error

    def note_of(self, batch_id: int) -> bytes:
        """The content of Spark's note of what a batch reads; empty if it is not there."""
        return files.read(self.offsets_of(batch_id)) or b""


def not_of_spark(path: AnyPath, got: str = "another content") -> StateError:
    """The error for a note of Spark's that is damaged."""
    return StateError(f"{path} — must be as Spark wrote it; got {got}. {RESTORE}")


def _numbers(folder: AnyPath) -> list[int]:
    """The numbers of the files that a folder has for batches, in order."""
    stems = (name.removesuffix(".json") for name in files.names(folder))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def _last(log: AnyPath) -> int:
    """The greatest number among the files of a log; -1 if it has none.

    The file before it must be there too: Spark needs it. Spark removes older ones in any order.
    """
    numbers = _numbers(log)
    if numbers and numbers[-1] > 0 and numbers[-1] - 1 not in numbers[-2:]:
        got = f"none for batch {numbers[-1] - 1}"
        raise StateError(f"{log} — must have a file for each batch; got {got}. {RESTORE}")
    return numbers[-1] if numbers else -1


@dataclass(frozen=True)
class FilesNote:
    """What differs, in words.

    Attributes:
        rules: why the rules of the files are not those that run; empty if they are.
        keys: the keys of the job file, other than `rules`, that changed since the start.
        at: when the job has noticed it, in UTC.
    """

    rules: str
    keys: tuple[str, ...]
    at: str


def write_note(checkpoint: Checkpoint, note: FilesNote) -> None:
    """Keep what differs."""
    files.write_json(checkpoint.files_note, asdict(note))


def remove_note(checkpoint: Checkpoint) -> None:
    """Say that nothing differs."""
    files.remove(checkpoint.files_note)


def read_note(checkpoint: Checkpoint) -> FilesNote | None:
    """Read what a running job says of its files; None if they say what runs.

    Raises:
        StateError: the note is damaged.
    """
    stored = files.read_json(checkpoint.files_note)
    if stored is None:
        return None
    return FilesNote(stored["rules"], tuple(stored["keys"]), stored["at"])

"""What is the same of files wherever they lie: a folder of this machine, an object store or HDFS.

Errors of reading and writing are an `OSError` with a number, as of the system; a store that does not answer,
or refuses a request, is a `SetupError` that says what to do. Spark's process for sources lists files, so this
folder imports neither pyarrow nor the core.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from io import SEEK_CUR, SEEK_END, SEEK_SET, RawIOBase
from typing import TYPE_CHECKING, NamedTuple, Protocol

from spark_pace.errors import FullStoreError, SetupError, UnfitError, one_line

if TYPE_CHECKING:
    from typing_extensions import Buffer

LOOKED_AT_ALL_S = 60  # a look may leave out what is known or seems unchanged, for so long
PAGE = 1_000  # objects that a store lists by one request


class OtherFileError(Exception):
    """A file is there that was not to be there, or another one than was to be replaced."""


class Stat(NamedTuple):
    """By what a file is known again: its last change, in nanoseconds since 1970, and its bytes."""

    changed_ns: int
    size: int


class SoughtFile(RawIOBase, ABC):
    """A file that is far away, of which any part may be read next; the last piece that came is kept.

    All bytes are of the file that was there when it was opened.
    """

    def __init__(self, stat: Stat) -> None:
        """Begin at the begin of a file with this stamp."""
        super().__init__()
        self.changed_ns, self.size = stat
        self._at = self._piece_at = 0  # where the next byte is read; where the piece begins
        self._piece = memoryview(b"")

    @abstractmethod
    def _fetch(self, wanted: int) -> bytes:
        """A piece that begins at `_at`: of so many bytes, or of others where they come by themselves."""

    def readinto(self, buffer: Buffer) -> int:
        """Read as many bytes as fit, or as there are."""
        into = memoryview(buffer).cast("B")
        rest = into = into[: max(0, self.size - self._at)]
        while rest:
            begin = self._at - self._piece_at
            if not 0 <= begin < len(self._piece):
                self._piece, self._piece_at, begin = memoryview(self._fetch(len(rest))), self._at, 0
            part = self._piece[begin : begin + len(rest)]
            rest[: len(part)] = part
            rest = rest[len(part) :]
            self._at += len(part)
        return len(into)

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Read on at another place."""
        self._at = offset + {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self.size}[whence]
        return self._at


class Listing(Protocol):
    """The files of a source, look by look: those below a folder or a prefix, or one file of this machine.

    Each has a name: its path below there, with ``/`` in it. Names of which a part begins with ``.`` or ``_``
    are left out, as Spark's own files are.
    """

    def look(self, greatest: str) -> Iterator[str]:
        """Yield names, among them all that have come since the last look.

        A look may leave out what came meanwhile where the place does not tell of it cheaply; the next look
        after `LOOKED_AT_ALL_S` finds it. The first look finds all.

        Args:
            greatest: the greatest name that is known; empty if none is.

        Raises:
            SetupError: the place cannot be listed now.
        """

    def size(self, name: str) -> int:
        """The bytes of a file; 0 if it is gone."""


class Requests:
    """Counts the requests to object stores and HDFS that this process asks the libraries for them to make.

    Where a library itself repeats one that has failed, that is not known here.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self.so_far = 0

    def count(self, requests: int = 1) -> None:
        """Count requests that are about to be asked for."""
        with self._lock:
            self.so_far += requests

    def count_further_pages(self, objects: int) -> None:
        """Count the requests that a list of so many objects has taken behind its first one."""
        self.count(max(0, objects - 1) // PAGE)


REQUESTS = Requests()  # of this process


_TOLD = re.compile(r"<Code>([^<]*)</Code>(?:\s*<Message>([^<]*?)(?:\s+RequestId:[^<]*)?</Message>)?")
_STATUS = re.compile(r"status code: (\d{3}[^:<]*)")
_ASKED = re.compile(r"performing \w+ ([a-z]+://[^/\s]+)")
_PASSING = re.compile("408|409|429|5")  # a busy store, or one that fails itself
# how those tell it that are full, or whose user is over a quota: Ceph and versitygw, MinIO, HDFS
_FULL = re.compile(r"\b\w*(?:QuotaExceeded|StorageFull)(?:Exception)?\b")
_FULL_STATUS = re.compile(r"[Ss]tatus [Cc]ode: (507)\b")
_BROKEN = re.compile("HTTP error|IO error")  # the words for what fails below a store's own answers
# where machines of a cloud are asked for their credentials; an object may have a folder of that name
_OF_THE_MACHINE = re.compile(r"performing \w+ [a-z]+://[^/\s]+/latest/(?:api|meta-data)/")
# how delta-rs sets out the causes of an error, in colours
_BECAUSE = re.compile(r"\s*(?:\x1b\[\d*m)?↳(?:\x1b\[\d*m)?\s*")
_COLORS = re.compile(r"\x1b\[\d*m")
_IS_GONE = re.compile(r"NoSuchKey|BlobNotFound|NotFound error|Object at location .* not found")
_OF_A_STORE = re.compile(r"Generic \w+ error|object store|necessary privileges|non-2xx status")


def told_by(error: Exception) -> str:
    """The text of an error of delta-rs in one line, without its colours."""
    return " ".join(_COLORS.sub("", _BECAUSE.sub(": ", str(error).strip())).split())


def is_of_a_store(text: str) -> bool:
    """True for the text of an error by which delta-rs tells that a request to a store failed."""
    return _OF_A_STORE.search(text) is not None


def is_of_lost_object(text: str) -> bool:
    """True for the text of an error by which delta-rs tells that an object is not there."""
    return _IS_GONE.search(text) is not None


def full_store(address: str, text: str) -> FullStoreError | None:
    """The error for a store that has no room, by what a client of it says; None if it says something else."""
    found = _FULL.search(text) or _FULL_STATUS.search(text)
    if not found:
        return None
    must = "must be in a store that has room for what the job writes"
    do = "Make room there, or raise the quota, and start the job again: it goes on where it stopped."
    got = f"one that is full, or over its quota ({found[found.lastindex or 0]})"
    return FullStoreError(f"{address} — {must}; got {got}. {do}")


def breaks_off(text: str) -> bool:
    """True for the text of an error by which the library tells that an answer is not whole."""
    return _BROKEN.search(text) is not None and _STATUS.search(text) is None


def store_failure(address: str, text: str) -> SetupError:
    """The error for what the library of stores says of a request that failed."""
    if full := full_store(address, text):
        return full
    must = "must be a place in a store that answers and that this job may read"
    told, status, asked = (pattern.search(text) for pattern in (_TOLD, _STATUS, _ASKED))
    got = ": ".join(filter(None, told.groups())) if told else status[1] if status else text
    got = one_line(got.strip()).rstrip(".")
    if _OF_THE_MACHINE.search(text):
        do = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the settings of fs.s3a under `spark`."
        return UnfitError(f"{address} — {must}; got no credentials. {do}")
    if status and status[1][:3] in ("401", "403"):
        do = "Correct the credentials, or the rights that they have."
        return UnfitError(f"{address} — {must}; got: {got}. {do}")
    passes = _PASSING.match(status[1]) if status else _BROKEN.search(text)
    if not passes:
        do = "Correct the address, the region or the endpoint."
        return UnfitError(f"{address} — {must}; got: {got}. {do}")
    if not status:
        got = f"no answer at {asked[1]}" if asked else "an answer that breaks off"
    return SetupError(f"{address} — {must}; got: {got}. Start the store, or correct the endpoint.")


# how hdfs-native tells what a name node has answered: a class of Java, a text and where it was raised
_ANSWER = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "((?:[^"\\]|\\.)*)')
# how delta-rs tells it, which has the same library
_ANSWER_IN_TABLE = re.compile(r"RPC error: (?:[\w$]+\.)*([\w$]+) (.*?)(?: at org\.apache\.|$)")
_OF_TABLE = "HdfsObjectStore error: "
_OWN = re.compile(r'\w+\("((?:[^"\\\[]|\\.)*)')  # how it tells an error of its own


class OpenFileError(OSError):
    """A file is being written, so that not all of it can be read."""


_ADVICE: tuple[tuple[str, type[SetupError], str], ...] = (  # by the first expression that is found
    (
        "AccessControlException",
        UnfitError,
        "Name a user who may by HADOOP_USER_NAME, or change the rights of the folder.",
    ),
    ("QuotaExceededException", FullStoreError, "Make room, or raise the quota, and start the job again."),
    (
        "SafeModeException",
        SetupError,
        "Wait until the name node has left its safe mode, and start the job again.",
    ),
    (
        "OpenFileError",
        SetupError,
        "Write it under a name that begins with a dot, rename it then, and start the job again.",
    ),
    (
        "DataTransferError|data transfer error|BlocksNotFound|OperationFailed"
        "|could only be (?:written|replicated)",
        SetupError,
        "Start data nodes that have room, and then the job again.",
    ),
    (
        "StandbyException|RetriableException|ObserverRetryOnActiveException|OSError|IO error",
        SetupError,
        "Start the name node, or correct the host and the port.",
    ),
    (
        "InvalidArgument|UrlParseError|invalid argument",
        UnfitError,
        "Add the port, or name the service in the files of HADOOP_CONF_DIR.",
    ),
    ("", UnfitError, "Correct the address, or the cause, which the name node's log may tell."),
)


def hdfs_failure(address: str, error: Exception) -> SetupError:
    """The error for what the library of HDFS says of a request that failed, which may pass if that may."""
    must = "must be a place on HDFS that answers and that this job may use"
    name, text = _answer(error)
    got = one_line(f"{name}: {text}" if name else text).rstrip(". :")
    told = f"{[one.__name__ for one in type(error).__mro__]} {error}"
    kind, do = next((kind, do) for words, kind, do in _ADVICE if re.search(words, told))
    return kind(f"{address} — {must}; got: {got}. {do}")


def hdfs_table_failure(address: str, text: str) -> SetupError:
    """The error for what delta-rs says, in one line, of a request to HDFS that failed."""
    return hdfs_failure(address, RuntimeError(text.rpartition(_OF_TABLE)[2]))


def _answer(error: Exception) -> tuple[str | None, str]:
    """(the class of Java that a name node has raised or None, the first line of the text)."""
    found = _ANSWER.search(str(error)) or _ANSWER_IN_TABLE.match(str(error))
    if found is None:
        own = _OWN.match(str(error))
        return None, (own[1] if own else str(error)).partition("\n")[0]
    text = found[2].replace('\\"', '"').replace("\\'", "'")
    return found[1], re.split(r"\\n|\n", text)[0]

"""What an object store or HDFS answers, as an error that says what to do."""

from __future__ import annotations

import re

from spark_pace.errors import FullStoreError, SetupError, UnfitError, one_line

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
_PASSING_ANSWERS = {
    *("SafeModeException", "StandbyException", "RetriableException", "ObserverRetryOnActiveException"),
}
_OF_DATA_NODES = re.compile(
    r"DataTransferError|data transfer error|BlocksNotFound|OperationFailed"
    r"|could only be (?:written|replicated)"
)
_OF_THE_ADDRESS = re.compile("InvalidArgument|UrlParseError|invalid argument")
_ANSWERS: dict[str, tuple[type[SetupError], str]] = {
    "AccessControlException": (
        UnfitError,
        "Name a user who may by HADOOP_USER_NAME, or change the rights of the folder.",
    ),
    "NSQuotaExceededException": (
        FullStoreError,
        "Remove files, or raise the quota, and start the job again.",
    ),
    "DSQuotaExceededException": (FullStoreError, "Make room, or raise the quota, and start the job again."),
    "InvalidPathException": (UnfitError, "Correct the address."),
    "SafeModeException": (
        SetupError,
        "Wait until the name node has left its safe mode, and start the job again.",
    ),
}


class OpenFileError(OSError):
    """A file is being written, so that not all of it can be read."""


def is_of_nothing(error: Exception) -> bool:
    """True if there is nothing of that name, because what is called as its folder is a file."""
    return "(is not a directory)" in str(error)


def hdfs_may_answer(error: Exception) -> bool:
    """True if the same request may succeed some seconds later."""
    name, _ = _answer(error)
    return (
        name in _PASSING_ANSWERS
        or isinstance(error, OSError)
        or _OF_DATA_NODES.search(str(error)) is not None
    )


def hdfs_failure(address: str, error: Exception) -> SetupError:
    """The error for what the library of HDFS says of a request that failed."""
    must = "must be a place on HDFS that answers and that this job may use"
    name, text = _answer(error)
    got = one_line(f"{name}: {text}" if name else text).rstrip(". :")
    kind: type[SetupError] = SetupError
    if name in _ANSWERS:
        kind, do = _ANSWERS[name]
    elif isinstance(error, OpenFileError):
        do = "Write it under a name that begins with a dot, rename it then, and start the job again."
    elif _OF_DATA_NODES.search(str(error)):
        do = "Start data nodes that have room, and then the job again."
    elif hdfs_may_answer(error):
        do = "Start the name node, or correct the host and the port."
    elif _OF_THE_ADDRESS.match(str(error)):
        kind, do = UnfitError, "Add the port, or name the service in the files of HADOOP_CONF_DIR."
    elif name:
        kind, do = UnfitError, "Correct the address, or the cause, which the name node's log may tell."
    else:
        kind, do = UnfitError, "Correct the address."
    return kind(f"{address} — {must}; got: {got}. {do}")


def hdfs_table_failure(address: str, text: str) -> SetupError:
    """The error for what delta-rs says, in one line, of a request to HDFS that failed."""
    cause = text.rpartition(_OF_TABLE)[2]
    return hdfs_failure(address, OSError(cause) if cause.startswith("IO error") else RuntimeError(cause))


def _answer(error: Exception) -> tuple[str | None, str]:
    """(the class of Java that a name node has raised or None, the first line of the text)."""
    found = _ANSWER.search(str(error)) or _ANSWER_IN_TABLE.match(str(error))
    if found is None:
        own = _OWN.match(str(error))
        return None, (own[1] if own else str(error)).partition("\n")[0]
    text = found[2].replace('\\"', '"').replace("\\'", "'")
    return found[1], re.split(r"\\n|\n", text)[0]

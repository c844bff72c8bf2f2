"""What HDFS answers, as an error that says what to do."""

from __future__ import annotations

import re

from spark_pace.errors import FullStoreError, SetupError, UnfitError, one_line

# how the library tells what a name node has answered: a class of Java, a text and where it was raised
_ANSWER = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "((?:[^"\\]|\\.)*)')
# how delta-rs tells it, which has the same library
_ANSWER_IN_TABLE = re.compile(r"RPC error: (?:[\w$]+\.)*([\w$]+) (.*?)(?: at org\.apache\.|$)")
_OF_TABLE = "HdfsObjectStore error: "
_OWN = re.compile(r'\w+\("((?:[^"\\\[]|\\.)*)')  # how it tells an error of its own
_PASSING = ("SafeModeException", "StandbyException", "RetriableException", "ObserverRetryOnActiveException")
_OF_DATA_NODES = re.compile(
    r"DataTransferError|data transfer error|BlocksNotFound|OperationFailed"
    r"|could only be (?:written|replicated)"
)
_OF_THE_ADDRESS = re.compile("InvalidArgument|UrlParseError|invalid argument")
_DO = {
    "AccessControlException": "Name a user who may by HADOOP_USER_NAME, or change the rights of the folder.",
    "NSQuotaExceededException": "Remove files, or raise the quota, and start the job again.",
    "DSQuotaExceededException": "Make room, or raise the quota, and start the job again.",
    "InvalidPathException": "Correct the address.",
    "SafeModeException": "Wait until the name node has left its safe mode, and start the job again.",
}
_KINDS: dict[str, type[SetupError]] = {
    "AccessControlException": UnfitError,
    "NSQuotaExceededException": FullStoreError,
    "DSQuotaExceededException": FullStoreError,
    "InvalidPathException": UnfitError,
}


class OpenFileError(OSError):
    """A file is being written, so that not all of it can be read."""


def is_of_nothing(error: Exception) -> bool:
    """True if there is nothing of that name, because what is called as its folder is a file."""
    return "(is not a directory)" in str(error)


def passes(error: Exception) -> bool:
    """True if the same request may succeed some seconds later."""
    name, _ = _answer(error)
    return name in _PASSING or isinstance(error, OSError) or _OF_DATA_NODES.search(str(error)) is not None


def failure(address: str, error: Exception) -> SetupError:
    """The error for what the library says of a request that failed."""
    must = "must be a place on HDFS that answers and that this job may use"
    name, text = _answer(error)
    got = one_line(f"{name}: {text}" if name else text).rstrip(". :")
    kind: type[SetupError] = SetupError
    if name and name in _DO:
        kind, do = _KINDS.get(name, SetupError), _DO[name]
    elif isinstance(error, OpenFileError):
        do = "Write it under a name that begins with a dot, rename it then, and start the job again."
    elif _OF_DATA_NODES.search(str(error)):
        do = "Start data nodes that have room, and then the job again."
    elif passes(error):
        do = "Start the name node, or correct the host and the port."
    elif _OF_THE_ADDRESS.match(str(error)):
        kind, do = UnfitError, "Add the port, or name the service in the files of HADOOP_CONF_DIR."
    elif name:
        kind, do = UnfitError, "Correct the address, or the cause, which the name node's log may tell."
    else:
        kind, do = UnfitError, "Correct the address."
    return kind(f"{address} — {must}; got: {got}. {do}")


def table_failure(address: str, text: str) -> SetupError:
    """The error for what delta-rs says, in one line, of a request that failed."""
    cause = text.rpartition(_OF_TABLE)[2]
    return failure(address, OSError(cause) if cause.startswith("IO error") else RuntimeError(cause))


def _answer(error: Exception) -> tuple[str | None, str]:
    """(the class of Java that a name node has raised or None, the first line of the text)."""
    found = _ANSWER.search(str(error)) or _ANSWER_IN_TABLE.match(str(error))
    if found is None:
        own = _OWN.match(str(error))
        return None, (own[1] if own else str(error)).partition("\n")[0]
    text = found[2].replace('\\"', '"').replace("\\'", "'")
    return found[1], re.split(r"\\n|\n", text)[0]

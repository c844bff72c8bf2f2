"""What HDFS answers, as an error that says what to do."""

from __future__ import annotations

import re

from spark_pace.errors import SetupError, UnfitError, one_line

# how the library tells what a name node has answered: a class of Java, a text and where it was raised
_ANSWER = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)", "((?:[^"\\]|\\.)*)')
_PASSING = ("SafeModeException", "StandbyException", "RetriableException", "ObserverRetryOnActiveException")
_OF_DATA_NODES = re.compile(
    r"DataTransferError|BlocksNotFound|OperationFailed|could only be (?:written|replicated)"
)
_ADDRESS = "Correct the address."
_DO = {
    "AccessControlException": "Name a user who may by HADOOP_USER_NAME, or change the rights of the folder.",
    "SafeModeException": "Wait until the name node has left its safe mode, and start the job again.",
    "NSQuotaExceededException": "Remove files, or raise the quota, and start the job again.",
    "DSQuotaExceededException": "Make room, or raise the quota, and start the job again.",
}


def passes(error: Exception) -> bool:
    """True if the same request may succeed some seconds later."""
    name, _ = _answer(error)
    if name is not None and name in _PASSING:
        return True
    return isinstance(error, OSError) or _OF_DATA_NODES.search(str(error)) is not None


def failure(address: str, error: Exception) -> SetupError:
    """The error for what the library says of a request that failed."""
    must = "must be a place on HDFS that answers and that this job may use"
    name, text = _answer(error)
    got = one_line(f"{name}: {text}" if name else text).rstrip(". ")
    kind: type[SetupError] = UnfitError
    do = _DO.get(name or "", _ADDRESS)
    if name in ("SafeModeException", "NSQuotaExceededException", "DSQuotaExceededException"):
        kind = SetupError
    elif _OF_DATA_NODES.search(str(error)):
        kind, do = SetupError, "Start data nodes that have room, and then the job again."
    elif isinstance(error, OSError) or name in _PASSING:
        kind, do = SetupError, "Start the name node, or correct the host and the port."
    return kind(f"{address} — {must}; got: {got}. {do}")


def _answer(error: Exception) -> tuple[str | None, str]:
    """(the class of Java that a name node has raised or None, the first line of the text)."""
    found = _ANSWER.search(str(error))
    if found is None:
        return None, str(error).partition("\n")[0]
    text = found[2].replace('\\"', '"').replace("\\'", "'")
    return found[1], re.split(r"\\n|\n", text)[0]

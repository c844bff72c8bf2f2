"""Texts of errors in users' code, made fit for a table: long ones lose their middle."""

from __future__ import annotations

import traceback
from types import TracebackType

from spark_pace.errors import one_line

MOST_CHARACTERS = 10_000  # in a reason or a key of the table `quarantine`


def shortened(text: str) -> str:
    """The text as valid Unicode; in one of more than `MOST_CHARACTERS` a note stands for the middle."""
    text = text.encode("utf-8", "backslashreplace").decode()  # a table takes no half of a surrogate pair
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters are left out here …\n{text[-half:]}"
    return text


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception, cut to `MOST_CHARACTERS`; if it cannot be shown, a sentence says so."""
    try:
        return shortened("".join(traceback.format_exception(error)))
    except Exception as why:  # Python calls the exception's own code for that
        return f"{type.__repr__(type(error))}: its text cannot be shown ({type.__repr__(type(why))})"


def raised_at(error: BaseException, function: str) -> str:
    """Where in the package of a rule's ``module:function`` an exception was raised: `` (path, line 3)``.

    It is the innermost line of that package, for what other libraries raise too; "" if no such line is known.
    """
    package, found = function.partition(":")[0].partition(".")[0], ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package:
            found = f" ({frame.f_code.co_filename}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def last_line(text: str) -> str:
    """The last line of words in a traceback, without the frame that Python draws around exception groups."""
    lines = [line.strip(" |") for line in text.splitlines() if any(letter.isalpha() for letter in line)]
    return one_line(lines[-1] if lines else text.strip())

"""The folder for the temporary files of Spark and of its JVM.

A process that is killed leaves its folder behind, which may hold gigabytes. The next start removes it: each
process holds its folder locked, so a folder that nobody holds belongs to nobody.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "spark-pace-session-"
_FOLDER = re.compile(re.escape(_PREFIX) + r"\w{8}", re.ASCII)


@cache
def session_folder() -> Path:
    """A new folder in the directory for temporary files, which is removed at the end of the process.

    Folders of processes that were killed are removed now.
    """
    temporary = tempfile.gettempdir()
    for entry in os.scandir(temporary):
        if _FOLDER.fullmatch(entry.name):
            with suppress(OSError):  # its process lives, or it is another user's
                _remove_if_free(entry.path)
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=temporary)
    with suppress(OSError):  # this file system has no locks: then nobody takes the folder for free
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = Path(temporary, os.path.basename(made)[1:])
    os.rename(made, folder)  # others look for folders of this name, and find it locked
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_if_free(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)

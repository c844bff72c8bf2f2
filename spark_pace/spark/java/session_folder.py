"""Makes the folder for temporary files of Spark and of its JVM.

A process that is killed leaves its folder behind, perhaps with gigabytes in it. The next start removes it:
each process holds a lock on its folder, so a folder without a lock has no owner.
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
    """Make the folder of this process, once; it is removed when the process ends.

    Folders of processes that were killed are removed first.
    """
    temporary = tempfile.gettempdir()
    for entry in os.scandir(temporary):
        if _FOLDER.fullmatch(entry.name):
            with suppress(OSError):  # its process is alive, or it belongs to another user
                _remove_if_free(entry.path)
    made = tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=temporary)
    with suppress(OSError):  # a file system without locks: then no process removes folders
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    folder = Path(temporary, os.path.basename(made)[1:])
    os.rename(made, folder)  # only now do others see it, and it is locked
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

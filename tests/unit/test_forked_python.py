"""Spark's Python processes are forked with their imports done, and are else as if Python had started them."""

from __future__ import annotations

import json
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from spark_pace.spark.stages.workers.command import LENGTH_BYTES
from spark_pace.spark.stages.workers.parent import fits

STARTS = """
import sys
from pathlib import Path
from spark_pace.spark.stages.workers.start import forking_python
print(forking_python(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""
SHOWN = """
import json, os, sys
loaded = "pandas" in sys.modules
print(json.dumps([__name__, sys.argv[1:], os.environ.get("SPARK_TRIED"), os.getcwd(), loaded]))
"""
BODIES = {
    "shown": SHOWN,
    "echo": "import sys; sys.stdout.write(sys.stdin.read().upper())",
    "exits": "import sys; sys.exit(3)",
    "fails": "raise ValueError('wrong')",
    "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "waits": "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()",
}
GIVEN = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}


@dataclass
class Started:
    """A process that has started the parent of others; `python` is the command for these."""

    process: subprocess.Popen[str]
    python: str
    environment: dict[str, str]

    def run(self, module: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, "-m", module, "one", "two"],
            input="quiet",
            capture_output=True,
            text=True,
            check=False,
            env={**self.environment, **more},
            timeout=60,
        )

    def waiting(self) -> tuple[subprocess.Popen[str], psutil.Process]:
        """A command and the process that was forked for it; both live."""
        command = subprocess.Popen(
            [self.python, "-m", "waits"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        assert command.stdout is not None
        return command, psutil.Process(int(command.stdout.readline()))

    def parent(self) -> psutil.Process:
        (parent,) = psutil.Process(self.process.pid).children()
        return parent


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Started]]:
    for name, body in BODIES.items():
        (tmp_path / f"{name}.py").write_text(body)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    started: list[subprocess.Popen[str]] = []

    def make() -> Started:
        process = subprocess.Popen(
            [sys.executable, "-c", STARTS, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        assert process.stdout is not None
        return Started(process, process.stdout.readline().strip(), environment)

    yield make
    for process in started:
        process.communicate()


def shown(answer: subprocess.CompletedProcess[str]) -> list[object]:
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)  # type: ignore[no-any-return]


def test_a_forked_process_has_its_arguments_environment_folder_and_files(
    start: Callable[[], Started],
) -> None:
    started = start()
    answer = started.run("shown", SPARK_TRIED="yes", **GIVEN)
    assert shown(answer) == ["__main__", ["one", "two"], "yes", os.getcwd(), True]
    assert started.run("echo").stdout == "QUIET"


def test_its_end_is_the_end_of_the_command(start: Callable[[], Started]) -> None:
    started = start()
    assert started.run("exits").returncode == 3
    failed = started.run("fails")
    assert failed.returncode == 1 and failed.stderr.endswith("ValueError: wrong\n")
    assert started.run("crashes").returncode == -signal.SIGKILL
    command, forked = started.waiting()
    assert forked.ppid() == started.parent().pid
    command.terminate()
    gone, _ = psutil.wait_procs([forked], timeout=60)
    assert gone == [forked]
    command.communicate()
    assert command.returncode == -signal.SIGTERM


def ask(started: Started, inputs: int, outputs: int) -> socket.socket:
    """The connection of a command that has asked for `waits`, and has not waited for an answer."""
    message = marshal.dumps((["-m", "waits"], {**started.environment, **GIVEN}, os.getcwd()))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(Path(started.python).parent / "workers"))
    length = len(message).to_bytes(LENGTH_BYTES, "big")
    socket.send_fds(connection, [length], [inputs, outputs, outputs])
    connection.sendall(message)
    return connection


def told(file: int) -> bytes:
    """What comes next; empty at the end."""
    assert select.select([file], [], [], 60)[0]
    return os.read(file, 1 << 10)


def test_a_command_that_is_gone_before_its_process_is_forked_leaves_none(
    start: Callable[[], Started],
) -> None:
    started = start()
    parent = started.parent()
    for gone_before in (False, True):
        given, inputs = os.pipe()
        outputs, written = os.pipe()
        parent.suspend()
        try:
            connection = ask(started, given, written)
            os.close(written)
            if gone_before:
                connection.close()
            parent.resume()
            if not gone_before:
                assert int(told(outputs)) > 0  # the process lives
                connection.close()
            while told(outputs):
                pass
        finally:
            parent.resume()
            for file in (given, inputs, outputs):
                os.close(file)
    assert started.parent() == parent
    assert shown(started.run("shown"))[-1] is True


def test_python_is_started_as_ever_where_the_environment_would_count(start: Callable[[], Started]) -> None:
    started = start()
    for more in ({"OMP_NUM_THREADS": "2"}, {"MALLOC_ARENA_MAX": "1"}):
        assert shown(started.run("shown", **more))[-1] is False


def test_python_is_started_as_ever_when_the_parent_is_gone(start: Callable[[], Started]) -> None:
    started = start()
    assert shown(started.run("shown"))[-1] is True
    started.parent().kill()
    assert shown(started.run("shown"))[-1] is False


def test_the_parent_outlives_a_command_and_its_process_that_end_at_once(
    start: Callable[[], Started],
) -> None:
    started = start()
    command, forked = started.waiting()
    parent = started.parent()
    parent.suspend()  # it hears of both ends together
    command.kill()
    command.communicate()
    end = os.pidfd_open(forked.pid)
    forked.kill()
    assert select.select([end], [], [], 60)[0]
    os.close(end)
    parent.resume()
    assert shown(started.run("shown"))[-1] is True
    assert started.parent() == parent


def test_the_parent_ends_with_the_process_that_has_started_it_and_after_what_it_has_forked(
    start: Callable[[], Started],
) -> None:
    started = start()
    command, forked = started.waiting()
    parent = started.parent()
    started.process.kill()
    started.process.wait()
    assert shown(started.run("shown"))[-1] is False
    assert parent.is_running() and forked.is_running()
    command.communicate()
    assert command.returncode == 0
    gone, _ = psutil.wait_procs([parent], timeout=60)
    assert gone == [parent]


@pytest.mark.parametrize(
    ("theirs", "fitting"),
    [
        ({"PYTHONPATH": "zip:/here"}, True),
        ({"PYTHONPATH": "/elsewhere"}, False),
        ({"PYTHONPATH": "/here", "PYTHONHASHSEED": "1"}, False),
        ({"PYTHONPATH": "/here", "PYTHONHASHSEED": "0", "SPARK_HOME": "/home"}, True),
        ({"PYTHONPATH": "/here", "TZ": "UTC"}, False),
    ],
)
def test_what_counts_in_an_environment(theirs: dict[str, str], fitting: bool) -> None:
    assert fits(theirs, {"PYTHONPATH": "/here", "PYTHONHASHSEED": "0"}) is fitting

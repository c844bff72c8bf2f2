"""`spark-pace run --keep-running`: starts a job again where it ends by a failure that may pass.

Each run is a process of its own, because a Python process can start only one JVM. It has a session of its
own, so a ctrl-C of the terminal reaches this process alone, which hands it on. It ends with this process,
however that ends: its standard input is a pipe from here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_pace.cli.log import say
from spark_pace.errors import ConfigError, exit_code, may_pass

MAY_PASS = os.EX_TEMPFAIL  # the exit code of a run that failed, where the next one may not
# for `python -c`, which looks for modules in the working folder first
_COMMAND = "import sys; sys.path.sort(key=bool, reverse=True); from spark_pace.cli.main import main; main()"
_LOOK_S = 0.1
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def keep_running_command(job: Path, reset_rules: Sequence[str]) -> int:
    """Do what `--keep-running` of `spark_pace.cli.main.run` says, and return the exit code.

    Raises:
        ConfigError: rules are to be reset: each start would do that anew.
    """
    if reset_rules:
        must, do = "must come without --reset-rule", "Reset the rule by a run of its own, once."
        raise ConfigError.of("--keep-running", must, f"--reset-rule {reset_rules[0]}", do)
    return KeptJob(job).run()


@dataclass
class KeptJob:
    """A job that is kept running.

    Attributes:
        job: the job file.
        first_s: the pause after a failure; after each further quick one it is twice as long.
        most_s: the longest pause.
        long_s: a run of at least so many seconds was not quick: after it the pauses begin anew.
    """

    job: Path
    first_s: float = 5.0
    most_s: float = 300.0
    long_s: float = 600.0
    _signal: signal.Signals | None = None
    _child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Run the job until it is done, stopped by a signal, or fails for good; return the exit code.

        Signals to stop are handed on to the job from here on; afterwards the process is to end.
        """
        for number in _STOPS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores one
                signal.signal(number, self._note)
        pause = self.first_s
        while True:
            began = time.monotonic()
            code = self._once()
            lasted = time.monotonic() - began
            failed = code < 0 or code == MAY_PASS
            if self._signal is not None or not failed:
                return 128 + self._signal if self._signal is not None and failed else code
            pause = self.first_s if lasted >= self.long_s else pause
            how = f"signal {-code} has ended it" if code < 0 else "it has failed"
            told = f"{how} after {lasted:.0f} s; next start in {pause:g} s"
            say(f"keep-running: {told}", sys.stderr)
            if (stopped := self._waited(pause)) is not None:
                return 128 + stopped
            pause = min(self.most_s, 2 * pause)

    def _note(self, number: int, _frame: object) -> None:
        self._signal = signal.Signals(number)
        self._hand_on()

    def _waited(self, seconds: float) -> signal.Signals | None:
        """Wait so long, or until a signal to stop, which is returned.

        It looks for the signal now and then: a handler that wakes who waits for an event would block for ever
        if it came just while that one takes the event's lock.
        """
        end = time.monotonic() + seconds
        while self._signal is None and time.monotonic() < end:
            threading.Event().wait(_LOOK_S)
        return self._signal

    def _once(self) -> int:
        """Run the job once; the exit code, negative if a signal has ended the process."""
        command = [sys.executable, "-c", _COMMAND, "run", "--kept", str(self.job)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
            self._child = child
            self._hand_on()
            return child.wait()

    def _hand_on(self) -> None:
        """Send the job the signal to stop, if there was one; it knows no end of a terminal."""
        if self._child is not None and self._signal is not None:
            self._child.send_signal(signal.SIGTERM if self._signal == signal.SIGHUP else self._signal)


def kept_run(job: Path) -> int:
    """Run a job that another process keeps running; stop it once that process has ended."""
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    from spark_pace.cli.run import run_command

    return run_command(job)


def code_of_kept(error: Exception) -> int:
    """The exit code of a run that failed: `MAY_PASS` if that may pass."""
    return MAY_PASS if may_pass(error) else exit_code(error)


def _stop_at_end_of_input() -> None:
    """Wait for the end of standard input, which the other process holds open; then stop this one."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)

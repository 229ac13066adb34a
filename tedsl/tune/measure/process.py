"""A piece of work in a process of its own: forked, so that it has everything that this one has, closures included.

The system ends it at its time limit, by an alarm that no endless loop can miss, and when this process dies, however that
happens. What it writes to its output is kept for the message of a failure. What it returns is written to a file in memory, so
that it never waits for a reader.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import BinaryIO

from tedsl.amounts import LONGEST, MOST
from tedsl.errors import TedslError
from tedsl.record import record
from tedsl.target.machine import keep_processors
from tedsl.tune.measure.outcome import Failure

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
_SAID = 300  # characters of its output that a message quotes
_LATE = 5.0  # seconds after which a process that has missed its alarm is killed


class Failed(Exception):
    """Raised by work that has found out why it fails."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@record
class Ended:
    """How a process ended: with a value, or with a failure. seconds: that it took."""

    value: object
    failure: Failure | None
    seconds: float


class Process:
    """A forked process that works. kind: of the failure for what the work raises.

    limit: seconds after which the system ends it, or LONGEST if that is less. cores: the processors on which it may run; empty:
    all. memory: bytes that it may take in addition to what it begins with.
    """

    def __init__(self, work: Callable[[], object], kind: str, limit: float, cores: Sequence[int] = (), memory: int = 0) -> None:
        self._limit, self._memory, self._begun = min(limit, LONGEST), memory, time.monotonic()
        self._result, self._output = _memory_file("result"), _memory_file("output")
        self._notice, notify = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of threads that the child lacks: those of tedsl's pool start anew, and a child that waits for
            # another one ends at its limit.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if not self._pid:
            self._work_and_exit(work, kind, cores, parent)
        os.close(notify)
        with suppress(OSError):  # the child has done it
            os.setpgid(self._pid, self._pid)

    # --- in the parent --------------------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """The file that is closed on the other side when the process has ended."""
        return self._notice

    @property
    def overdue(self) -> float:
        """The time at which the process is to be killed, by the monotonic clock: it has missed its alarm."""
        return self._begun + self._limit + _LATE

    def finish(self) -> Ended:
        """Waits for the end of the process, and says how it ended."""
        if not _ready([self], self.overdue - time.monotonic()):
            self._end()
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        seconds = time.monotonic() - self._begun
        try:
            return self._ended(status, seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the process, and those that it started, and forgets it. Does nothing after `finish`."""
        if self._pid:
            self._end()
            with suppress(ChildProcessError):  # an interrupt came when it had been waited for
                os.waitpid(self._pid, 0)
            self._pid = 0
        if self._notice >= 0:
            os.close(self._notice)
            self._notice = -1
            self._result.close()
            self._output.close()

    def _end(self) -> None:
        for end in (os.killpg, os.kill):  # it may not have a group yet
            with suppress(ProcessLookupError):
                end(self._pid, signal.SIGKILL)

    def _ended(self, status: int, seconds: float) -> Ended:
        self._result.seek(0)
        data = self._result.read()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 and data:
            value, failure, seconds = pickle.loads(data)
            return Ended(value, failure, seconds)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGKILL) and seconds >= self._limit:
            return Ended(None, Failure("timeout", f"took longer than {self._limit:g} s"), seconds)
        return Ended(None, Failure("crash", f"the process {_how(status)}{self._said()}"), seconds)

    def _said(self) -> str:
        """The end of what the process has written, in brackets."""
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").split()
        text = " ".join(lines)
        return f" ({'...' * (len(text) > _SAID)}{text[-_SAID:]})" if text else ""

    # --- in the child ---------------------------------------------------------------------------------------------------

    def _work_and_exit(self, work: Callable[[], object], kind: str, cores: Sequence[int], parent: int) -> None:
        status = 1
        try:
            self._settle(cores, parent)
            begun = time.monotonic()
            value, failure = _done(work, kind)
            self._result.write(pickle.dumps((value, failure, time.monotonic() - begun)))
            self._result.flush()
            status = 0
        finally:
            os._exit(status)  # neither handlers of the program nor its buffered output belong to this process

    def _settle(self, cores: Sequence[int], parent: int) -> None:
        """Makes the process end with its parent and at its limit, keep its output for itself, and take what it may."""
        os.setpgid(0, 0)  # Ctrl-C at a terminal goes to the parent alone
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, self._limit)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it has died before
            os._exit(1)
        faulthandler.disable()
        for number in (1, 2):
            os.dup2(self._output.fileno(), number)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self._memory:
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            limit = min(address_space_taken() + self._memory, MOST)
            resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
        if cores:
            keep_processors()
            os.sched_setaffinity(0, cores)


class Processes:
    """The processes of one measurement, all of which `close` ends, whenever an interrupt came."""

    def __init__(self) -> None:
        self._started: set[Process] = set()

    def start(self, work: Callable[[], object], kind: str, limit: float, cores: Sequence[int], memory: int) -> Process:
        """Starts a process, with the arguments of Process."""
        with _uninterrupted():
            process = Process(work, kind, limit, cores, memory)
            self._started.add(process)
        return process

    def finish(self, process: Process) -> Ended:
        """Waits for the end of one of these processes, and says how it ended."""
        ended = process.finish()
        self._started.discard(process)
        return ended

    def close(self) -> None:
        """Ends all processes."""
        while self._started:
            process = next(iter(self._started))
            process.kill()
            self._started.discard(process)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Context manager in which Ctrl-C waits for the end of the block, where a process that is being forked is known."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            before(*waiting[0])


def _done(work: Callable[[], object], kind: str) -> tuple[object, Failure | None]:
    try:
        return work(), None
    except Failed as known:
        return None, known.failure
    except TedslError as error:
        return None, Failure(kind, str(error))
    except MemoryError:
        return None, Failure("crash", "there is not enough memory")
    except BaseException as error:  # what a template raises is its own affair
        return None, Failure(kind, f"{type(error).__name__}: {error}")


def _memory_file(name: str) -> BinaryIO:
    """A file that no folder has."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create(f"tedsl {name}"), "w+b")
    return os.fdopen(os.dup(tempfile.TemporaryFile().fileno()), "w+b")


def address_space_taken() -> int:
    """The bytes of addresses that this process has taken."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exited with status {os.WEXITSTATUS(status)}"


def wait_for(processes: Sequence[Process], until: float = math.inf) -> list[Process]:
    """Waits until one of `processes` has ended or is overdue, and returns those; none, if it is `until` before by the clock."""
    ended = _ready(processes, min(until, *[process.overdue for process in processes]) - time.monotonic())
    return ended or [process for process in processes if process.overdue <= time.monotonic()]


def _ready(processes: Sequence[Process], seconds: float) -> list[Process]:
    """Those of `processes` that have ended, when one has or `seconds` have passed."""
    poll = select.poll()  # select knows the first 1024 files of a program alone
    for process in processes:
        poll.register(process.fileno())
    ended = {number for number, _ in poll.poll(max(0.0, seconds) * 1e3)}
    return [process for process in processes if process.fileno() in ended]

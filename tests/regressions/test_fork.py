"""Processes forked while other threads are busy."""

import os
import threading
import time

import numpy as np
import pytest

import tedsl
from tedsl import te

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's own, of fork with threads


def kernel():
    a = te.placeholder((32,), name="A")
    b = te.compute((32,), lambda i: te.exp(a[i]) + 1, name="B")
    return tedsl.build(te.create_schedule(b.op), [a, b])


def build_and_leave():
    """In the child: 0 if a build and a call work."""
    status = 1
    try:
        got = np.zeros(32, "float32")
        kernel()(np.zeros(32, "float32"), got)
        status = 0 if (got == 2).all() else 2
    finally:
        os._exit(status)


def status_of(child, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"


def test_a_process_forked_while_another_thread_builds_can_build():
    kernel()  # all is imported: Python's own locks of imports are not ours to mend
    stop = threading.Event()

    def builder():
        while not stop.is_set():
            kernel()

    thread = threading.Thread(target=builder)
    thread.start()
    try:
        for k in range(5):
            time.sleep(0.02 + 0.003 * k)
            child = os.fork()
            if child == 0:
                build_and_leave()
            assert status_of(child, 20) == 0
    finally:
        stop.set()
        thread.join()

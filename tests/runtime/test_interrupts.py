"""Ctrl-C amid a build: it ends the build, and no destructor prints that it was interrupted."""

import subprocess
import sys

PROGRAM = """
import signal, sys, weakref
import tedsl
from tedsl import te
from tedsl.target.executable import Pages

interrupt = lambda: signal.raise_signal(signal.SIGINT)
A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1, name="B")


class Destructor:
    def __del__(self):
        interrupt()
        print("whole", end=" ")


class Callback:
    pass


def in_callback():
    dropped = Callback()
    weakref.finalize(dropped, lambda: [interrupt(), print("whole", end=" ")])


def build(action, spin=True):
    def step(func):
        action()
        while spin:
            pass
        return func
    try:
        with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(1, step)]}):
            tedsl.build(te.create_schedule(B.op), [A, B])
        print("built")
    except KeyboardInterrupt:
        print("interrupted")
    assert signal.getsignal(signal.SIGINT) is handler


handler = signal.default_int_handler
signal.signal(signal.SIGINT, handler)  # a shell starts what runs in the background with interrupts ignored
build(Destructor)
build(in_callback)
build(interrupt)
module, release = tedsl.build(te.create_schedule(B.op), [A, B]), Pages.release
Pages.release = lambda pages: [interrupt(), print("whole", end=" ")]
try:
    del module
    while True:
        pass
except KeyboardInterrupt:
    print("interrupted")
Pages.release = release
handler = lambda number, frame: print("seen", end=" ")
signal.signal(signal.SIGINT, handler)
build(interrupt, spin=False)
"""


def test_an_interrupt_waits_for_the_end_of_a_destructor_and_ends_the_build():
    """It was printed as "Exception ignored in: <function ModuleRef.__del__>", and the build went on."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert run.stderr == "" and run.returncode == 0
    assert run.stdout.splitlines() == [
        "whole interrupted", "whole interrupted", "interrupted", "whole interrupted", "seen built"]

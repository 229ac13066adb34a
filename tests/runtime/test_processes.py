"""Processes that functions of parallel loops start: the signals that they block, kernels that they call, how they end."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, subprocess, sys, threading, time
import numpy as np
import tedsl
from tedsl import te, tir

A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] + 1, name="B")
s = te.create_schedule(B.op)
s[B].parallel(B.op.axis[0])
inner = tedsl.build(s, [A, B])
main, acts, act = threading.get_ident(), {}, None


@tedsl.register_func("act")
def once(i):
    if i == 32:
        begun.set()
    if i == 0:
        assert begun.wait(60)  # or its caller would take the worker's part, too
    if i == (0 if act.startswith("caller") else 63):
        assert (threading.get_ident() == main) == act.startswith("caller")
        acts[act.split()[1]](i)
    return 0


def status_of(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


def mask(i):
    print(act, sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))), end=" ")
    child = subprocess.Popen(["sleep", "20"])
    child.terminate()
    print(child.wait(10), flush=True)


def forks(then):
    def function(i):
        child = os.fork()
        if not child:
            return then()
        print(act, status_of(child), flush=True)
    return function


def kernel():
    b = np.zeros(64, "float32")
    inner(np.ones(64, "float32"), b)
    threads = len(os.listdir("/proc/self/task"))
    os._exit(0 if (b == 2).all() and threads == 1 else 10 + threads)


def term():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
    os._exit(0)


def fail():
    sys.excepthook = lambda *error: print(error[0].__name__, "in the child")
    raise KeyError("x")


acts = {"mask": mask, "kernel": forks(kernel), "term": forks(term), "exits": forks(lambda: sys.exit(3)),
        "returns": forks(lambda: None), "fails": forks(fail)}
ib = tir.ir_builder.create()
buffer = tir.decl_buffer((64,), "int32", "O")
out = ib.buffer_ptr(buffer)
with ib.for_range(0, 64, "i", kind="parallel") as i:
    out[i] = tir.call_packed("act", i)
outer = tedsl.build(tir.PrimFunc([buffer], ib.get()))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
here = os.getpid()
for act in PLAN:
    begun = threading.Event()
    try:
        outer(np.zeros(64, "int32"))
    except BaseException as error:
        if os.getpid() == here:
            raise
        print(type(error).__name__, str(error).splitlines()[0] if error.args else "", flush=True)
        os._exit(5)
    assert os.getpid() == here, "the child goes on with a part of the loop"
"""


def said(*plan):
    run = subprocess.run([sys.executable, "-c", PROGRAM.replace("PLAN", repr(plan))], capture_output=True, text=True,
                         timeout=120, env=os.environ | {"TEDSL_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"})
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout.splitlines()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or not os.path.isdir("/proc/self/task"), reason="needs fork and /proc")


def test_processes_of_a_parallel_loop_have_the_mask_of_its_caller():
    """A worker blocks all signals; the function that it calls blocks SIGUSR1 (10) alone, as the caller of the kernel does."""
    assert said("worker mask", "caller mask", "worker term") == [
        "worker mask [10] -15", "caller mask [10] -15", "worker term -15"]


def test_a_kernel_in_a_process_forked_inside_of_a_parallel_loop_runs_serially():
    assert said("worker kernel", "caller kernel", "worker kernel") == ["worker kernel 0", "caller kernel 0", "worker kernel 0"]


def test_the_end_of_a_function_that_forked_on_a_worker_is_the_end_of_the_child():
    """It has no caller to return to: its thread is the only one. It would wait for ever for the next loop."""
    assert said("worker returns", "worker exits", "worker fails") == [
        "worker returns 0", "worker exits 3", "KeyError in the child", "worker fails 1"]


def test_a_child_that_returns_to_the_caller_of_a_loop_has_only_a_part_of_it():
    first, second = said("caller returns")
    assert first == "ArgumentError call_packed: act forked inside of a parallel loop and returned in the child, which has " \
                    "only a part of the loop"
    assert second == "caller returns 5"

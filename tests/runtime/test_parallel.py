"""The thread pool: every iteration once, on as many threads as asked, also nested, busy, failing and after a fork."""

import ctypes
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.codegen.llvm.linking import jit
from tedsl.errors import ArgumentError
from tedsl.runtime import parallel

ROOT = pathlib.Path(__file__).parents[2]
BODY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(scope="module")
def launch():
    address = jit.runtime_address("tedsl_parallel_launch")
    return ctypes.CFUNCTYPE(ctypes.c_int32, BODY, ctypes.c_void_p, ctypes.c_int64)(address)


@pytest.fixture(params=[1, 2, 3, 7])
def threads(request):
    before = parallel.get_num_threads()
    parallel.state_address()
    parallel.set_num_threads(request.param)
    yield request.param
    parallel.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 100, 2**62 + 5])
def test_the_iterations_are_cut_into_equal_chunks_in_order(launch, threads, count):
    seen = []
    status = launch(BODY(lambda env, begin, end: seen.append((begin, end)) or 0), None, count)
    assert status == 0
    seen.sort()
    assert len(seen) == min(threads, count)
    if count:
        assert seen[0][0] == 0 and seen[-1][1] == count
        assert all(a[1] == b[0] for a, b in itertools.pairwise(seen))
        lengths = {end - begin for begin, end in seen}
        assert max(lengths) - min(lengths) <= 1


def test_many_regions_of_changing_size_lose_nothing(launch, threads):
    total = ctypes.c_int64(0)
    lock = threading.Lock()

    def body(env, begin, end):
        with lock:
            total.value += end - begin
        return 0

    callback = BODY(body)
    expected = 0
    for k in range(2000):
        expected += k % 11
        launch(callback, None, k % 11)
    assert total.value == expected


def test_regions_after_a_sleep_wake_the_workers(launch, threads):
    for _ in range(5):
        seen = []
        launch(BODY(lambda env, begin, end, seen=seen: seen.append(end - begin) or 0), None, 20)
        assert sum(seen) == 20
        time.sleep(0.02)


def test_a_caller_does_not_sleep_while_a_worker_takes_a_little_longer():
    """A caller that sleeps for 50 us may be woken beside its worker, and both share a processor from then on."""
    import resource

    def uneven(out):
        build = tir.ir_builder.create()
        out = build.buffer_ptr(out)
        with build.for_range(0, 2, name="i", kind="parallel") as i:
            out[i] = 1.0
            with build.for_range(0, 20000 + i * 100000, name="k"):
                out[i] = out[i] * 0.5 + 1.0
        return build.get()

    y = te.extern((2,), [], lambda ins, outs: uneven(outs[0]), name="y", dtype="float32")
    kernel = tedsl.build(te.create_schedule(y.op), [y])
    result, before = np.zeros(2, "float32"), parallel.get_num_threads()
    parallel.set_num_threads(2)
    try:
        kernel(result)
        slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        for _ in range(200):
            kernel(result)
        slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - slept
    finally:
        parallel.set_num_threads(before)
    np.testing.assert_allclose(result, [2, 2], rtol=1e-6)
    assert slept < 100


LATE = """
import ctypes, os, threading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from tedsl.codegen.llvm.linking import jit
body = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
launch = ctypes.CFUNCTYPE(ctypes.c_int32, body, ctypes.c_void_p, ctypes.c_int64)(jit.runtime_address("tedsl_parallel_launch"))
both, seen = threading.Barrier(2), set()
launch(body(lambda env, begin, end: seen.add(threading.get_native_id()) or both.wait(60) * 0), None, 2)
worker, = seen - {threading.get_native_id()}
os.sched_setscheduler(worker, os.SCHED_IDLE, os.sched_param(0))
parts = []
for _ in range(6):
    launch(body(lambda env, begin, end: parts.append((begin, end, threading.get_native_id() == worker)) or 0), None, 2)
print(parts)
"""


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="the scheduling policy is Linux's")
def test_a_caller_takes_the_chunks_that_no_worker_begins():
    """A worker that another program keeps off its processor held up every region for milliseconds."""
    said = subprocess.run([sys.executable, "-c", LATE], env=os.environ | {"TEDSL_NUM_THREADS": "2"}, check=True,
                          capture_output=True, text=True, cwd=ROOT).stdout
    assert said.strip() == str([(0, 1, False), (1, 2, False)] * 6)


def test_each_iteration_is_executed_once_by_workers_that_come_late(threads):
    """The caller and a worker may reach for a chunk at once, and a worker for one of a region that is over."""
    n = te.var("n")
    seen = te.placeholder((n,), dtype="int64", name="seen")
    more = te.compute((n,), lambda i: seen[i] + 1, name="more")
    schedule = te.create_schedule(more.op)
    schedule[more].parallel(more.op.axis[0])
    with tedsl.transform.PassContext(config={"tir.noalias": False}):
        kernel = tedsl.build(schedule, [seen, more])
    counts = np.zeros(12, "int64")
    for turn in range(20000):
        part = counts[:turn % 12]
        kernel(part, part)
        if turn % 50 == 0:
            time.sleep(0.0002)
    assert counts.tolist() == [20000 // 12 * (11 - k) + max(0, 20000 % 12 - 1 - k) for k in range(12)]


def test_the_status_of_any_chunk_comes_back(launch, threads):
    assert launch(BODY(lambda env, begin, end: 17 if end == 9 else 0), None, 9) == 17
    assert launch(BODY(lambda env, begin, end: 3 if begin == 0 else 0), None, 9) == 3
    assert launch(BODY(lambda env, begin, end: 0), None, 9) == 0


def test_a_nested_region_runs_serially_on_its_caller(launch, threads):
    inner, here = [], []
    nested = BODY(lambda env, begin, end: inner.append((begin, end, threading.get_ident())) or 0)

    def body(env, begin, end):
        here.append(threading.get_ident())
        return launch(nested, None, 5)

    launch(BODY(body), None, 2)
    if threads > 1:
        assert sorted(inner) == sorted((0, 5, ident) for ident in here)


def test_concurrent_callers_each_get_all_their_iterations(launch, threads):
    sums = [0] * 4

    def work(k):
        part = []
        for _ in range(200):
            launch(BODY(lambda env, begin, end: part.append(end - begin) or 0), None, 10)
        sums[k] = sum(part)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sums == [2000] * 4


def test_a_forked_child_makes_its_own_workers(launch, threads):
    launch(BODY(lambda env, begin, end: 0), None, 10)
    child = os.fork()
    if child == 0:
        seen, all_there = [], threading.Barrier(threads)
        launch(BODY(lambda env, begin, end: seen.append(threading.get_native_id()) or all_there.wait(60) * 0), None, 10)
        os._exit(0 if len(set(seen)) == threads else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "256"])
def test_a_wrong_number_of_threads_is_named(given, monkeypatch):
    monkeypatch.setattr(parallel, "_wanted", None)
    monkeypatch.setenv("TEDSL_NUM_THREADS", given)
    with pytest.raises(ArgumentError, match="TEDSL_NUM_THREADS is"):
        parallel.get_num_threads()


@pytest.mark.parametrize("given", [0, 256, 1.0, True, "2"])
def test_set_num_threads_refuses_what_is_no_count(given):
    before = parallel.get_num_threads()
    with pytest.raises(ArgumentError, match="from 1 to 255"):
        parallel.set_num_threads(given)
    assert parallel.get_num_threads() == before


def test_the_environment_decides_and_the_process_ends_while_workers_sleep():
    code = ("from tedsl.runtime import parallel\nfrom tedsl.codegen.llvm.linking import jit\nimport ctypes\n"
            "B = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)\n"
            "launch = ctypes.CFUNCTYPE(ctypes.c_int32, B, ctypes.c_void_p, ctypes.c_int64)("
            "jit.runtime_address('tedsl_parallel_launch'))\n"
            "seen = []\nlaunch(B(lambda e, b, n: seen.append(b) or 0), None, 10)\nprint(sorted(seen))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
                          env={**os.environ, "TEDSL_NUM_THREADS": "3"})
    assert done.stdout.strip() == "[0, 4, 7]"

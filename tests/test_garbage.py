"""Garbage is not collected while loops are made and compiled, and is again afterwards."""

import gc
import os
import threading

import pytest

import tedsl
from tedsl import te
from tedsl.garbage import no_collection


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def program():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    return te.create_schedule(B.op), [A, B]


@pytest.mark.parametrize("work", [tedsl.build, tedsl.lower])
@pytest.mark.parametrize("fails", [False, True])
def test_no_collection_during_a_build(work, fails):
    seen = []

    def look(func):
        seen.append(gc.isenabled())
        if fails:
            raise ZeroDivisionError
        return func

    with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(1, look)]}):
        if fails:
            with pytest.raises(ZeroDivisionError):
                work(*program())
        else:
            work(*program())
    assert seen == [False]
    assert gc.isenabled()


def test_what_a_program_switched_off_stays_off():
    gc.disable()
    tedsl.build(*program())
    assert not gc.isenabled()


def test_one_inside_of_another():
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_collects_though_another_thread_built_while_it_was_made():
    inside, done = threading.Event(), threading.Event()

    def pause():
        with no_collection():
            inside.set()
            done.wait()

    thread = threading.Thread(target=pause)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        os._exit(int(gc.isenabled()))
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1

"""Finished schedules that lowering refuses: directive, stage, reason, and what to do instead."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError

pytestmark = pytest.mark.usefixtures("strict")  # the words of `build`, from the loops that `lower` makes


def chain():
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((16, 16), lambda i, j: B[i, j] * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def refusal(s, args):
    with pytest.raises(LoweringError) as caught:
        tedsl.lower(s, args)
    return str(caught.value)


# --- memory outside of its kernel -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("scope, tag", [("local", "threadIdx.x"), ("shared", "threadIdx.x"), ("shared", "blockIdx.x")])
def test_memory_of_threads_that_is_filled_outside_of_their_kernel(scope, tag):
    A, B, C, s = chain()
    s[B].set_scope(scope)
    s[C].bind(C.op.axis[0], te.thread_axis(tag))
    words = refusal(s, [A, C])
    assert f"B is kept in {scope} memory" in words
    assert "it is computed by B without threads and read by the threads of C" in words
    assert f"from: s[B].set_scope('{scope}')" in words
    assert 's[B].set_scope("global")' in words
    s[B].compute_at(s[C], C.op.axis[0])
    if scope == "shared" and tag == "blockIdx.x":
        s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    a, c = np.ones((16, 16), "float32"), np.zeros((16, 16), "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, 4)


def test_memory_of_threads_that_is_read_outside_of_their_kernel():
    A, B, C, s = chain()
    s[B].set_scope("shared")
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    words = refusal(s, [A, C])
    assert "it is computed by the threads of B and read by C without threads" in words


def test_memory_of_another_kernel():
    A, B, C, s = chain()
    s[B].set_scope("shared")
    for T in (B, C):
        s[T].bind(T.op.axis[0], te.thread_axis("threadIdx.x"))
    assert "computed by the threads of B and read by the threads of C" in refusal(s, [A, C])
    s[B].set_scope("global")
    tedsl.lower(s, [A, C])


def test_without_threads_local_memory_is_any_memory():
    A, B, C, s = chain()
    s[B].set_scope("local")
    tedsl.lower(s, [A, C])


# --- effects ----------------------------------------------------------------------------------------------------------------

def effects(shape=14, reads=lambda B, i: B[i] + B[i + 2]):
    """B calls a function that may have effects; C reads B."""
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: tir.call_extern("float32", "next_number", A[i]), name="B")
    C = te.compute((shape,), lambda i: reads(B, i), name="C")
    return A, B, C, te.create_schedule(C.op)


def test_effects_of_an_inlined_stage_that_is_read_twice():
    A, B, C, s = effects()
    s[B].compute_inline()
    words = refusal(s, [A, C])
    assert "B calls next_number, which may have effects, and is written into C: more than one call for an element" in words
    assert "s[B].compute_root()" in words and "call_pure_extern" in words


@pytest.mark.parametrize("shape, read", [(32, lambda B, i: B[i // 2]), (16, lambda B, i: B[0])])
def test_effects_of_an_inlined_stage_of_which_an_element_is_read_twice(shape, read):
    A, B, C, s = effects(shape, read)
    s[B].compute_inline()
    assert "more than one call" in refusal(s, [A, C])


def test_effects_of_a_stage_with_a_halo():
    A, B, C, s = effects()
    outer, _ = s[C].split(C.op.axis[0], 7)
    s[B].compute_at(s[C], outer)
    assert "is computed at loop i.outer of C: more than one call for an element" in refusal(s, [A, C])


def test_effects_of_a_tile_that_is_moved_inwards():
    A, B, C, s = effects()
    s[B].split(B.op.axis[0], 7, tail="shift_inwards")
    assert 'i is split with tail="shift_inwards": more than one call' in refusal(s, [A, C])


def test_effects_that_happen_once():
    """Tiles without a halo, one reading of each element, the root."""
    A, B, C, s = effects(16, lambda B, i: B[i] * 2.0)
    outer, _ = s[C].split(C.op.axis[0], 8)
    s[B].compute_at(s[C], outer)
    tedsl.lower(s, [A, C])
    s[B].compute_inline()
    tedsl.lower(s, [A, C])
    A, B, C, s = effects()
    tedsl.lower(s, [A, C])


def test_a_function_without_effects_may_be_called_often():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: tir.call_pure_extern("float32", "fabsf", A[i]), name="B")
    C = te.compute((14,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    tedsl.lower(s, [A, C])

"""Schedules half-way: `lower` shows their loops and warns in the words of `build`, which refuses them, and their module."""

import warnings

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tedsl.ir.func import REFUSED

BX, TX = "blockIdx.x", "threadIdx.x"


def product():
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, te.create_schedule(C.op)


def bind_elements(s, C):
    for axis, tag in zip(s[C].op.axis, (BX, TX)):
        s[C].bind(axis, te.thread_axis(tag))


def local_before_compute_at():
    A, B, C, s = product()
    s.cache_write(C, "local")
    bind_elements(s, C)
    return s, [A, B, C]


def shared_before_compute_at():
    A, B, C, s = product()
    s.cache_read(A, "shared", [C])
    bind_elements(s, C)
    return s, [A, B, C]


def local_on_several_threads():
    A, B, C, s = product()
    kept = s.cache_write(C, "local")
    bind_elements(s, C)
    s[kept].compute_at(s[C], s[C].op.axis[0])
    outer, _ = s[kept].split(s[kept].op.axis[1], 2)
    s[kept].bind(outer, te.thread_axis(TX))
    return s, [A, B, C]


def sums():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, te.create_schedule(B.op)


def predicate_before_bind():
    A, B, s = sums()
    s[B].set_store_predicate(te.thread_axis(TX).var.equal(0))
    return s, [A, B]


def predicate_over_elements():
    A, B, s = sums()
    thread = te.thread_axis(TX)
    s[B].bind(B.op.axis[0], thread)
    s[B].set_store_predicate(thread.var.equal(0))
    return s, [A, B]


def sums_over_blocks():
    A, B, s = sums()
    s[B].bind(B.op.reduce_axis[0], te.thread_axis(BX))
    return s, [A, B]


def sums_over_blocks_and_threads():
    A, B, s = sums()
    outer, inner = s[B].split(B.op.reduce_axis[0], 4)
    s[B].bind(outer, te.thread_axis(BX))
    s[B].bind(inner, te.thread_axis(TX))
    return s, [A, B]


def size_of_no_argument():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * m, name="B")
    return te.create_schedule(B.op), [A, B]


def forgotten_input():
    A, B, C, s = product()
    return s, [A, C]


def one_too_far(step=1):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i + step], name="B")
    return te.create_schedule(B.op), [A, B]


def one_too_near():
    return one_too_far(-1)


def unrolled_without_a_number():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])
    return s, [A, B]


def threads_in_two_numbers():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[C].bind(C.op.axis[0], te.thread_axis(BX))
    s[B].bind(B.op.axis[1], te.thread_axis(BX))
    return s, [A, C]


def race_of_threads():
    A, B, s = sums()
    kept = s.cache_read(A, "shared", [B])
    s[B].bind(B.op.axis[0], te.thread_axis(BX))
    s[kept].compute_at(s[B], B.op.axis[0])
    s[kept].bind(s[kept].op.axis[1], te.thread_axis(TX))
    return s, [A, B]


def reader_outside():
    A, B, C, s = product()
    kept = s.cache_read(A, "shared", [C])
    s.cache_read(kept, "local", [C])
    s[kept].compute_at(s[C], C.op.axis[0])
    return s, [A, B, C]


def reader_at_an_outer_loop():
    A, B, C, s = product()
    kept = s.cache_read(A, "shared", [C])
    s[s.cache_read(kept, "local", [C])].compute_at(s[C], C.op.axis[0])
    s[kept].compute_at(s[C], C.op.axis[1])
    return s, [A, B, C]


HALF_WAY = [(local_before_compute_at, "C.local is kept in local memory", "C.local["),
            (shared_before_compute_at, "A.shared is kept in shared memory", "A.shared["),
            (local_on_several_threads, "belongs to one thread", "C.local["),
            (predicate_before_bind, "that is not a thread", "if (threadIdx.x == 0)"),
            (predicate_over_elements, "no thread stores the elements of threadIdx.x = 1", "if (threadIdx.x == 0)"),
            (sums_over_blocks, "blockIdx.x would race", "tvm_thread_allreduce"),
            (sums_over_blocks_and_threads, "blockIdx.x would race", "tvm_thread_allreduce"),
            (size_of_no_argument, "the loops use m, and no argument gives it a value", "cast(float32, m: int32)"),
            (forgotten_input, "the program reads B, which is not among the arguments", "B: Pointer(float32)["),
            (one_too_far, "the index i + 1 goes from 1 to n", "A_2[((i + 1)*stride)]"),
            (one_too_near, "goes from -1 to n - 2", "A_2["),
            (unrolled_without_a_number, "its extent n is not a constant", '(i: int32, 0, n) "unroll"'),
            (threads_in_two_numbers, "neither is proved to be the larger number", "max(n, m)"),
            (race_of_threads, "they would race", "A.shared["),
            (reader_outside, "A.shared.local stands outside that loop", "A.shared[((ax0_1*8) + ax1_1)] = (float32*)A_2["),
            (reader_at_an_outer_loop, "A.shared.local stands outside that loop", "A.shared[ax1_1] = (float32*)A_2[")]
CASES = pytest.mark.parametrize("program, words, text", HALF_WAY, ids=[program.__name__ for program, *_ in HALF_WAY])


def read(s, args):
    """The module that `lower` shows, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = tedsl.lower(s, args)
    return module, [str(warning.message) for warning in caught]


def refusal(call):
    with pytest.raises(LoweringError) as caught:
        call()
    return str(caught.value)


def test_a_forgotten_input_is_said_once():
    assert len(read(*forgotten_input())[1]) == 1


@CASES
def test_lower_shows_the_loops_and_warns_in_the_words_of_build(program, words, text):
    module, said = read(*program())
    assert text in str(module)
    refused = refusal(lambda: tedsl.build(*program()))  # for all reasons, of which each has a warning
    assert words in said[0] and words in refused and "'tedsl.strict': True" in said[0]
    assert len(said) > 1 or said[0].startswith(f"lower: build refuses these loops: {refused}\n")
    assert len(said) == len(set(said))


@CASES
def test_what_is_shown_is_never_compiled_or_run(program, words, text):
    module, _ = read(*program())
    for call in (lambda: tedsl.build(module), lambda: tedsl.build(module["main"]), lambda: tedsl.build([module]),
                 lambda: tedsl.build(read(module, None)[0]), lambda: tedsl.build(tedsl.tir.transform.Simplify()(module)),
                 lambda: run(module["main"], ())):
        assert words in refusal(call)


@CASES
def test_a_context_makes_lower_strict(program, words, text):
    with tedsl.transform.PassContext(config={"tedsl.strict": True}):
        assert words in refusal(lambda: tedsl.lower(*program()))


@pytest.mark.parametrize("step", [1, -1, 3])
def test_loops_without_their_mark_are_checked_as_those_of_any_function(step):
    """The words may be taken off; the accesses are then those of a function written by hand, and no memory is left."""
    (func,) = read(*one_too_far(step))[0].functions.values()
    bare = func.replace(attrs={key: value for key, value in func.attrs.items() if key != REFUSED})
    try:
        kernel = tedsl.build(bare)
    except LoweringError:
        return
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    with pytest.raises(tedsl.errors.TedslError):
        kernel(a, b)


def test_what_can_run_is_shown_without_a_word():
    A, B, C, s = product()
    kept = s.cache_write(C, "local")
    bind_elements(s, C)
    s[kept].compute_at(s[C], s[C].op.axis[1])
    module, said = read(s, [A, B, C])
    assert not said and REFUSED not in module["main"].attrs
    a, b = np.random.default_rng(0).random((2, 8, 8), "float32")
    c = np.zeros((8, 8), "float32")
    tedsl.build(module)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_each_finding_has_the_directive_behind_it():
    _, said = read(*threads_in_two_numbers())
    assert len(said) > 1 and all("\n  from: s[" in words for words in said)


def test_reads_too_far_of_constant_sizes_are_refused_at_once():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i + 1], name="B")
    assert "it is 4 at i = 3" in refusal(lambda: tedsl.lower(te.create_schedule(B.op), [A, B]))


def test_statements_written_by_hand_are_refused_at_once():
    data, free = tir.decl_buffer((4,), name="data"), te.var("free", "float32")
    func = tir.PrimFunc([data], tir.BufferStore(data, free, [tir.const(0, "int32")]))
    assert "the loops use free" in refusal(lambda: tedsl.lower(func))

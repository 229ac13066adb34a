"""double_buffer: memory that is filled for the next iteration while this one is used."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import meaning, whole_numbers


def rows(n, m=12):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].double_buffer()
    return A, B, C, s


def split_loop(n):
    return tedsl.transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": n}})


def test_the_mark():
    A, B, C, s = rows(5)
    assert loops(s, [A, C]) == dedent("""\
        for (i: int32, 0, 5) {
          realize(B: Buffer(B_1: Pointer(float32), float32, [5, 12], []), [i:(i + 1), 0:12], True) {
            attr [B] "double_buffer_scope" = 1;
            for (j: int32, 0, 12) {
              B[i, j] = (A[i, j] + 1f32)
            }
            for (j_1: int32, 0, 12) {
              C[i, j_1] = (B[i, j_1]*2f32)
            }
          }
        }
        """)


def test_the_first_filling_comes_before_the_loop_and_the_last_use_after_it():
    A, B, C, s = rows(5)
    assert loops(s, [A, C], passes=True) == dedent("""\
        allocate(B: Pointer(global float32), float32, [24]), storage_scope = global {
          for (j: int32, 0, 12) {
            B[j] = ((float32*)A_2[j] + 1f32)
          }
          for (i.outer: int32, 0, 4) {
            attr [B] "double_buffer_write" = 1;
            for (j_1: int32, 0, 12) {
              B[((floormod((i.outer + 1), 2)*12) + j_1)] = ((float32*)A_2[(((i.outer*12) + j_1) + 12)] + 1f32)
            }
            for (j_2: int32, 0, 12) {
              C_2[((i.outer*12) + j_2)] = ((float32*)B[((floormod(i.outer, 2)*12) + j_2)]*2f32)
            }
          }
          for (j_3: int32, 0, 12) {
            C_2[(j_3 + 48)] = ((float32*)B[j_3]*2f32)
          }
        }
        """)


def test_two_iterations_in_a_step_make_the_halves_constants():
    A, B, C, s = rows(5)
    with split_loop(2):
        assert loops(s, [A, C], passes=True) == dedent("""\
            allocate(B: Pointer(global float32), float32, [24]), storage_scope = global {
              for (j: int32, 0, 12) {
                B[j] = ((float32*)A_2[j] + 1f32)
              }
              for (i.outer: int32, 0, 2) {
                attr [B] "double_buffer_write" = 1;
                for (j_1: int32, 0, 12) {
                  B[(j_1 + 12)] = ((float32*)A_2[(((i.outer*24) + j_1) + 12)] + 1f32)
                }
                for (j_2: int32, 0, 12) {
                  C_2[((i.outer*24) + j_2)] = ((float32*)B[j_2]*2f32)
                }
                attr [B] "double_buffer_write" = 1;
                for (j_3: int32, 0, 12) {
                  B[j_3] = ((float32*)A_2[(((i.outer*24) + j_3) + 24)] + 1f32)
                }
                for (j_4: int32, 0, 12) {
                  C_2[(((i.outer*24) + j_4) + 12)] = ((float32*)B[(j_4 + 12)]*2f32)
                }
              }
              for (j_5: int32, 0, 12) {
                C_2[(j_5 + 48)] = ((float32*)B[j_5]*2f32)
              }
            }
            """)


@pytest.mark.parametrize("split", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 9])
def test_any_number_of_iterations(n, split):
    A, _, C, s = rows(n)
    with split_loop(split):
        check_both(s, [A, C], {A: whole_numbers((n, 12))})


@pytest.mark.parametrize("split", [0, 1, 2, 4])
def test_symbolic_numbers_of_iterations_none_among_them(split):
    n = te.var("n")
    A, _, C, s = rows(n)
    with split_loop(split):
        check_calls(s, [A, C], [({A: whole_numbers((k, 12))}, {n: k}) for k in (0, 1, 2, 3, 4, 5, 8, 9)])


def test_a_reduction_adds_up_in_the_half_that_it_fills():
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((6, 4), lambda i, j: B[i] * 2.0 + j, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].double_buffer()
    check_both(s, [A, C], {A: whole_numbers((6, 8))})


def test_a_chain_of_double_buffers():
    A = te.placeholder((7, 8), name="A")
    B = te.compute((7, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((7, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((7, 8), lambda i, j: C[i, j] - B[i, j], name="D")
    s = te.create_schedule(D.op)
    for stage in (B, C):
        s[stage].compute_at(s[D], D.op.axis[0])
        s[stage].double_buffer()
    check_both(s, [A, D], {A: whole_numbers((7, 8))})


def test_both_outputs_of_a_stage():
    A = te.placeholder((5, 8), name="A")
    B, C = te.compute((5, 8), lambda i, j: (A[i, j] + 1.0, A[i, j] * 3.0), name="P")
    D = te.compute((5, 8), lambda i, j: B[i, j] - C[i, j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    s[B].double_buffer()
    assert loops(s, [A, D], passes=True).count("double_buffer_write") == 2
    check_both(s, [A, D], {A: whole_numbers((5, 8))})


def test_tiles_that_do_not_divide_under_vectors():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 16)
    s[C].vectorize(inner)
    s[B].compute_at(s[C], outer)
    s[B].vectorize(s[B].split(B.op.axis[0], 8)[1])
    s[B].double_buffer()
    check_calls(s, [A, C], [({A: whole_numbers((k,))}, {n: k}) for k in (0, 1, 15, 16, 17, 50, 64)])


def test_inside_a_parallel_loop():
    A = te.placeholder((30, 8), name="A")
    B = te.compute((30, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((30, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].parallel(outer)
    s[B].compute_at(s[C], inner)
    s[B].double_buffer()
    check_both(s, [A, C], {A: whole_numbers((30, 8))})


def test_a_blocked_matmul_with_cached_inputs():
    n = 20
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AA, BB = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    yo, xo, yi, xi = s[C].tile(*C.op.axis, 8, 8)
    ko, ki = s[C].split(k, 6)
    s[C].reorder(yo, xo, ko, ki, yi, xi)
    for cache in (AA, BB):
        s[cache].compute_at(s[C], ko)
        s[cache].double_buffer()
    given = {A: whole_numbers((n, n)), B: whole_numbers((n, n), seed=1)}
    check_both(s, [A, B, C], given)
    assert "double_buffer_write" in loops(s, [A, B, C], passes=True)


def test_a_loop_of_one_iteration_needs_no_second_copy():
    A, _, C, s = rows(1)
    text = loops(s, [A, C], passes=True)
    assert "double_buffer" not in text and "[12]" in text


def test_at_the_root_there_is_no_next_iteration():
    A, B, C, s = rows(5)
    s[B].compute_root()
    with pytest.raises(LoweringError, match=r"B is double-buffered and computed at the root(.|\n)*call s\[B\].compute_at"):
        loops(s, [A, C])


def test_parallel_iterations_do_not_follow_one_another():
    A, B, C, s = rows(5)
    s[C].parallel(C.op.axis[0])
    with pytest.raises(LoweringError, match=r"at loop i of C, which is parallel(.|\n)*from: (.|\n)*split i"):
        loops(s, [A, C])


def test_what_is_computed_in_the_same_iteration_is_not_there_yet():
    A = te.placeholder((7, 8), name="A")
    B = te.compute((7, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((7, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((7, 8), lambda i, j: C[i, j] - 1.0, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[D], D.op.axis[0])
    s[C].compute_at(s[D], D.op.axis[0])
    s[C].double_buffer()
    with pytest.raises(LoweringError, match=r"C is double-buffered at loop i of D, and reads B(.|\n)*double-buffer B too"):
        loops(s, [A, D])


def test_arrays_that_may_overlap_are_filled_in_their_own_iteration():
    A, _, C, s = rows(5)
    with tedsl.transform.PassContext(config={"tir.noalias": False}):
        assert "double_buffer_write" not in loops(s, [A, C], passes=True)
        kernel = tedsl.build(s, [A, C])
    data = whole_numbers((6, 12))
    expected = meaning([C], {A: data[:5].copy()})[C]
    kernel(data[:5], result := np.zeros((5, 12), "float32"))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("n, step", [(16, 4), (20, 6), (8, 8)])
def test_tiles_in_shared_memory_of_threads(n, step):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis((0, 4), "threadIdx.x")
    AA, CL = s.cache_read(A, "shared", [C]), s.cache_write(C, "local")
    by, yi = s[C].split(C.op.axis[0], 4)
    s[C].bind(by, block)
    s[C].bind(yi, thread)
    s[CL].compute_at(s[C], yi)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], step)
    s[CL].reorder(ko, ki, s[CL].op.axis[1])
    s[AA].compute_at(s[CL], ko)
    s[AA].bind(s[AA].split(s[AA].op.axis[0], nparts=4)[0], thread)
    s[AA].double_buffer()
    check_both(s, [A, B, C], {A: whole_numbers((n, n)), B: whole_numbers((n, n), seed=1)})

"""storage_align: the strides of a stage's memory."""

from textwrap import dedent

import pytest

from tedsl import te
from tedsl.errors import LoweringError
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def two_stages(*shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A(*i) + 1.0, name="B")
    C = te.compute(shape, lambda *i: B(*i) * 2.0, name="C")
    return A, B, C, te.create_schedule(C.op)


def test_rows_start_at_multiples():
    A, B, C, s = two_stages(4, 30)
    s[B].storage_align(B.op.axis[0], 32, 0)
    assert loops(s, [A, C]) == dedent("""\
        attr [B: Buffer(B_1: Pointer(float32), float32, [4, 30], [])] "buffer_dim_align" =\
 @tir.tvm_tuple(0, 32, 0, dtype=handle);
        realize(B, [0:4, 0:30], True) {
          for (i0: int32, 0, 4) {
            for (i1: int32, 0, 30) {
              B[i0, i1] = (A[i0, i1] + 1f32)
            }
          }
          for (i0_1: int32, 0, 4) {
            for (i1_1: int32, 0, 30) {
              C[i0_1, i1_1] = (B[i0_1, i1_1]*2f32)
            }
          }
        }
        """)
    assert loops(s, [A, C], passes=True) == dedent("""\
        allocate(B: Pointer(global float32), float32, [128]), storage_scope = global {
          for (i0: int32, 0, 4) {
            for (i1: int32, 0, 30) {
              B[((i0*32) + i1)] = ((float32*)A_2[((i0*30) + i1)] + 1f32)
            }
          }
          for (i0_1: int32, 0, 4) {
            for (i1_1: int32, 0, 30) {
              C_2[((i0_1*30) + i1_1)] = ((float32*)B[((i0_1*32) + i1_1)]*2f32)
            }
          }
        }
        """)


@pytest.mark.parametrize("factor, offset, stride", [(32, 0, 32), (32, 1, 33), (16, 14, 30), (7, 3, 31), (1, 0, 30)])
def test_the_stride_is_offset_modulo_factor(factor, offset, stride):
    A, B, C, s = two_stages(3, 30)
    s[B].storage_align(B.op.axis[0], factor, offset)
    text = loops(s, [A, C], passes=True)
    assert f"[{3 * stride}]" in text and f"B[((i0*{stride}) + i1)] =" in text
    check_both(s, [A, C], {A: whole_numbers((3, 30))})


def test_several_dimensions_build_on_one_another():
    A, B, C, s = two_stages(2, 3, 5)
    i, j, k = B.op.axis
    s[B].storage_align(i, 16, 3)
    s[B].storage_align(j, 4, 1)
    s[B].storage_align(k, 2, 0)
    assert "B[(((i0*51) + (i1*13)) + (i2*2))] =" in loops(s, [A, C], passes=True)  # 2; 10 -> 13; 39 -> 51
    check_both(s, [A, C], {A: whole_numbers((2, 3, 5))})


def test_the_later_word_on_one_axis_holds():
    A, B, C, s = two_stages(4, 30)
    s[B].storage_align(B.op.axis[0], 32, 0)
    s[B].storage_align(B.op.axis[0], 8, 1)
    assert "B[((i0*33) + i1)] =" in loops(s, [A, C], passes=True)


@pytest.mark.parametrize("n, m", [(1, 1), (3, 16), (2, 17), (5, 31)])
def test_symbolic_shapes(n, m):
    N, M = te.var("n"), te.var("m")
    A, B, C, s = two_stages(N, M)
    s[B].storage_align(B.op.axis[0], 16, 0)
    s[B].vectorize(s[B].split(B.op.axis[1], 8)[1])
    check_calls(s, [A, C], [({A: whole_numbers((n, m))}, {N: n, M: m})])


def test_a_region_inside_a_loop_of_its_reader():
    A, B, C, s = two_stages(10, 30)
    outer, _ = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    s[B].storage_align(B.op.axis[0], 16, 1)
    assert "[132]" in loops(s, [A, C], passes=True)  # 4 rows of 33
    check_both(s, [A, C], {A: whole_numbers((10, 30))})


def test_cached_inputs_and_outputs():
    A = te.placeholder((20, 30), name="A")
    C = te.compute((30, 20), lambda i, j: A[j, i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    CC = s.cache_write(C, "local")
    s[AA].storage_align(s[AA].op.axis[0], 2, 1)
    s[CC].storage_align(s[CC].op.axis[0], 8, 0)
    check_both(s, [A, C], {A: whole_numbers((20, 30))})


def test_memory_that_is_an_argument_is_the_callers():
    A, B, C, s = two_stages(4, 30)
    s[B].storage_align(B.op.axis[0], 32, 0)
    with pytest.raises(LoweringError, match=r"B is aligned, and B is an argument(.|\n)*drop B from the arguments"):
        loops(s, [A, B, C])

"""The loops as text: small programs, one idea each."""

from textwrap import dedent

import pytest

from tedsl import te
from tedsl.ir.expr import Var
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule

A = te.placeholder((10,), name="A")
M = te.placeholder((8, 6), name="M")


def body(s, args):
    """The text of the loops, without the head of the function."""
    text = str(lower_schedule(s, args))
    lines = text.split("buffer_map", 1)[1].split("{\n", 1)[1].splitlines()[:-1]
    return dedent("\n".join(lines)) + "\n"


def elementwise():
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    return B, create_schedule(B.op)


def row_sum():
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((8,), lambda i: te.sum(M[i, k], axis=k), name="B")
    return B, create_schedule(B.op)


def test_the_head_of_the_function():
    n, m = te.var("n"), te.var("m")
    source = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(source[i, k], axis=k), name="B")
    assert str(lower_schedule(create_schedule(B.op), [source])) == dedent("""\
        primfn(A_1: handle) -> ()
          attr = {"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True}
          buffers = {A: Buffer(A_2: Pointer(float32), float32, [n: int32, m: int32],\
 [stride: int32, stride_1: int32], type="auto")}
          buffer_map = {A_1: A} {
          realize(B: Buffer(B_1: Pointer(float32), float32, [n], []), [0:n], True) {
            for (i: int32, 0, n) {
              B[i] = 0f32
              for (k: int32, 0, m) {
                B[i] = (B[i] + A[i, k])
              }
            }
          }
        }""")


def test_a_split_that_does_not_come_out_even_guards_the_store():
    B, s = elementwise()
    s[B].split(B.op.axis[0], factor=4)
    assert body(s, [A, B]) == dedent("""\
        for (i.outer: int32, 0, 3) {
          for (i.inner: int32, 0, 4) {
            if @tir.likely((((i.outer*4) + i.inner) < 10), dtype=bool) {
              B[((i.outer*4) + i.inner)] = (A[((i.outer*4) + i.inner)] + 1f32)
            }
          }
        }
        """)


def test_a_split_that_comes_out_even_needs_no_guard():
    B, s = elementwise()
    s[B].split(B.op.axis[0], nparts=2)
    assert body(s, [A, B]) == dedent("""\
        for (i.outer: int32, 0, 2) {
          for (i.inner: int32, 0, 5) {
            B[((i.outer*5) + i.inner)] = (A[((i.outer*5) + i.inner)] + 1f32)
          }
        }
        """)


def test_a_loop_of_one_iteration_is_not_printed():
    B, s = elementwise()
    s[B].split(B.op.axis[0], factor=16)
    assert body(s, [A, B]) == dedent("""\
        for (i.inner: int32, 0, 10) {
          B[i.inner] = (A[i.inner] + 1f32)
        }
        """)


def test_fused_loops_divide_and_take_the_rest():
    k = te.compute((8, 6), lambda i, j: M[i, j] * 2.0, name="B")
    s = create_schedule(k.op)
    s[k].fuse(*k.op.axis)
    assert body(s, [M, k]) == dedent("""\
        for (i.j.fused: int32, 0, 48) {
          B[floordiv(i.j.fused, 6), floormod(i.j.fused, 6)] = (M[floordiv(i.j.fused, 6), floormod(i.j.fused, 6)]*2f32)
        }
        """)


def test_the_init_stands_before_the_outermost_loop_of_the_reduction_in_loops_of_its_own():
    B, s = row_sum()
    i, (k,) = s[B].op.axis[0], s[B].op.reduce_axis
    outer, inner = s[B].split(i, factor=4)
    s[B].reorder(outer, k, inner)
    s[B].vectorize(inner)
    assert body(s, [M, B]) == dedent("""\
        for (i.outer: int32, 0, 2) {
          for (i.inner.init: int32, 0, 4) "vectorized" {
            B[((i.outer*4) + i.inner.init)] = 0f32
          }
          for (k: int32, 0, 6) {
            for (i.inner: int32, 0, 4) "vectorized" {
              B[((i.outer*4) + i.inner)] = (B[((i.outer*4) + i.inner)] + M[((i.outer*4) + i.inner), k])
            }
          }
        }
        """)


def test_annotations_and_pragmas():
    B, s = elementwise()
    outer, inner = s[B].split(B.op.axis[0], factor=5)
    s[B].parallel(outer)
    s[B].unroll(inner)
    s[B].pragma(outer, "auto_unroll_max_step", 16)
    assert body(s, [A, B]) == dedent("""\
        attr [IterVar(i.outer: int32, (nullptr), "DataPar", "")] "pragma_auto_unroll_max_step" = 16;
        for (i.outer, 0, 2) "parallel" {
          for (i.inner: int32, 0, 5) "unroll" {
            B[((i.outer*5) + i.inner)] = (A[((i.outer*5) + i.inner)] + 1f32)
          }
        }
        """)


def test_non_temporal_stores_are_an_attribute_of_the_stage():
    B, s = elementwise()
    s[B].nontemporal()
    assert body(s, [A, B]) == dedent("""\
        attr [B] "nontemporal" = 1;
        for (i: int32, 0, 10) {
          B[i] = (A[i] + 1f32)
        }
        """)


def test_a_tile_computes_the_halo_that_it_reads():
    rows = te.compute((8, 6), lambda i, j: M[i, j] * 2.0, name="R")
    out = te.compute((6, 6), lambda i, j: rows[i, j] + rows[i + 1, j] + rows[i + 2, j], name="O")
    s = create_schedule(out.op)
    outer, _ = s[out].split(out.op.axis[0], factor=3)
    s[rows].compute_at(s[out], outer)
    assert body(s, [M, out]) == dedent("""\
        for (i.outer: int32, 0, 2) {
          realize(R: Buffer(R_1: Pointer(float32), float32, [8, 6], []), [(i.outer*3):((i.outer*3) + 5), 0:6], True) {
            for (i: int32, 0, 5) {
              for (j: int32, 0, 6) {
                R[((i.outer*3) + i), j] = (M[((i.outer*3) + i), j]*2f32)
              }
            }
            for (i.inner: int32, 0, 3) {
              for (j_1: int32, 0, 6) {
                O[((i.outer*3) + i.inner), j_1] = ((R[((i.outer*3) + i.inner), j_1] + R[(((i.outer*3) + i.inner) + 1), j_1])\
 + R[(((i.outer*3) + i.inner) + 2), j_1])
              }
            }
          }
        }
        """)


def test_a_producer_of_padded_reads_is_guarded_where_its_region_leaves_the_tensor():
    B = te.compute((8,), lambda i: M[i, 0] + 1.0, name="B")
    C = te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, i < 9), B[i - 1], 0.0), name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=5)
    s[B].compute_at(s[C], outer)
    text = body(s, [M, C])
    assert "if @tir.likely(((((i.outer*5) - 1) + i) >= 0), dtype=bool) {" in text
    assert "if @tir.likely(((((i.outer*5) - 1) + i) < 8), dtype=bool) {" in text


def test_an_inlined_formula_is_written_into_its_readers():
    B, _ = elementwise()
    C = te.compute((9,), lambda i: B[i] * B[i + 1], name="C")
    s = create_schedule(C.op)
    s[B].compute_inline()
    assert body(s, [A, C]) == dedent("""\
        for (i: int32, 0, 9) {
          C[i] = ((A[i] + 1f32)*(A[(i + 1)] + 1f32))
        }
        """)
    assert s[B].op.body[0] is B.op.body[0], "the schedule itself is not changed"


def test_a_tuple_reduction_computes_every_value_before_it_stores_one():
    choose = lambda x, y, at: te.if_then_else(x[1] >= y[1], x[at], y[at])
    argmax = te.comm_reducer(lambda x, y: (choose(x, y, 0), choose(x, y, 1)),
                             lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    k = te.reduce_axis((0, 6), name="k")
    index, value = te.compute((8,), lambda i: argmax((k.var, M[i, k]), axis=k), name="B")
    lines = [line.strip() for line in body(create_schedule(index.op), [M, index, value]).splitlines() if "=" in line]
    assert lines == [
        "B.v0[i] = -1",
        "B.v1[i] = -3.40282e+38f32",
        "let B.v0.new: int32 = @tir.if_then_else((B.v1[i] >= M[i, k]), B.v0[i], k, dtype=int32)",
        "let B.v1.new: float32 = @tir.if_then_else((B.v1[i] >= M[i, k]), B.v1[i], M[i, k], dtype=float32)",
        "B.v0[i] = B.v0.new",
        "B.v1[i] = B.v1.new",
    ]


def test_the_where_of_a_reduction_guards_the_update_only():
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((8,), lambda i: te.sum(M[i, k], axis=k, where=k.var > i), name="B")
    assert body(create_schedule(B.op), [M, B]) == dedent("""\
        for (i: int32, 0, 8) {
          B[i] = 0f32
          for (k: int32, 0, 6) {
            if (k > i) {
              B[i] = (B[i] + M[i, k])
            }
          }
        }
        """)


def test_a_scalar_has_no_loops():
    B = te.compute((), lambda: M[1, 2] + 1.0, name="B")
    assert body(create_schedule(B.op), [M, B]) == "B[] = (M[1, 2] + 1f32)\n"


def test_a_reduction_without_iterations_only_initializes():
    empty = te.placeholder((8, 0), name="E")
    k = te.reduce_axis((0, 0), name="k")
    B = te.compute((8,), lambda i: te.sum(empty[i, k], axis=k), name="B")
    assert body(create_schedule(B.op), [empty, B]) == dedent("""\
        for (i: int32, 0, 8) {
          B[i] = 0f32
        }
        """)


def test_symbolic_loops_round_up_and_guard():
    n = te.var("n")
    source = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: source[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=32)
    assert body(s, [source, B]) == dedent("""\
        for (i.outer: int32, 0, floordiv((n + 31), 32)) {
          for (i.inner: int32, 0, 32) {
            if @tir.likely((((i.outer*32) + i.inner) < n), dtype=bool) {
              B[((i.outer*32) + i.inner)] = (A[((i.outer*32) + i.inner)] + 1f32)
            }
          }
        }
        """)


def test_a_symbolic_extent_that_is_a_multiple_needs_no_guard():
    n = te.var("n")
    source = te.placeholder((n * 8,), name="A")
    B = te.compute((n * 8,), lambda i: source[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    text = body(s, [source, B])
    assert "likely" not in text
    assert "for (i.outer: int32, 0, (n*2)) {" in text


def test_only_the_guard_of_the_axis_remains_where_it_covers_an_outer_part():
    B, s = elementwise()
    outer, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].split(outer, factor=2)
    assert body(s, [A, B]).count("likely") == 1


def test_an_inner_part_that_runs_too_far_is_guarded_itself():
    k = te.reduce_axis((0, 10), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = create_schedule(B.op)
    _, inner = s[B].split(s[B].op.reduce_axis[0], factor=5)
    s[B].split(inner, factor=3)
    assert "if @tir.likely((((k.inner.outer*3) + k.inner.inner) < 5), dtype=bool) {" in body(s, [A, B])


def test_the_text_depends_on_the_program_alone():
    def make():
        k = te.reduce_axis((0, 6), name="k")
        B = te.compute((8,), lambda i: te.sum(M[i, k], axis=k), name="B")
        C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
        s = create_schedule(C.op)
        s[B].compute_at(s[C], C.op.axis[0])
        return str(lower_schedule(s, [M, C]))

    assert len({make() for _ in range(3)}) == 1


def test_lowering_twice_gives_the_same_text_and_its_own_variables():
    B, s = elementwise()
    first, second = lower_schedule(s, [A, B]), lower_schedule(s, [A, B])
    assert str(first) == str(second)
    assert isinstance(first.body.loop_var, Var)
    assert first.body.loop_var is not second.body.loop_var


@pytest.mark.parametrize("name", ["main", "my_kernel"])
def test_the_name_of_the_function(name):
    B, s = elementwise()
    assert lower_schedule(s, [A, B], name).name == name

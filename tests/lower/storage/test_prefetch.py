"""prefetch: hints for the cache. Results do not depend on them."""

import re
from textwrap import dedent

import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tedsl.ir.text import text
from tedsl.passes.storage.inject_prefetch import inject_prefetch
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def scaled(n, m):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    return A, B, te.create_schedule(B.op)


def region(s, args):
    """The lines that print a prefetch, after its region was found."""
    func = inject_prefetch(tedsl.driver.schedule_to_module(s, args)["main"])
    return [line.strip() for line in text(func).splitlines() if "prefetch(" in line]


def test_the_row_after_this_one():
    A, B, s = scaled(8, 100)
    s[B].prefetch(A, B.op.axis[0], 1)
    assert loops(s, [A, B]) == dedent("""\
        for (i: int32, 0, 8) {
          attr [A] "prefetch_scope" = 1;
          for (j: int32, 0, 100) {
            B[i, j] = (A[i, j]*2f32)
          }
        }
        """)
    assert region(s, [A, B]) == ["prefetch(A, [(i + 1):((i + 1) + 1), 0:100])"]
    assert loops(s, [A, B], passes=True) == dedent("""\
        for (i: int32, 0, 8) {
          for (prefetch.A.1: int32, 0, 7) {
            @tir.prefetch(@tir.address_of((float32*)A_2[min((((i*100) + (prefetch.A.1*16)) + 100), 799)],\
 dtype=handle), 0, 3, 1, dtype=int32)
          }
          for (j: int32, 0, 100) {
            B_2[((i*100) + j)] = ((float32*)A_2[((i*100) + j)]*2f32)
          }
        }
        """)
    check_both(s, [A, B], {A: whole_numbers((8, 100))})


def test_the_instruction():
    A, B, s = scaled(8, 100)
    s[B].prefetch(A, B.op.axis[0], 2)
    assert "call void @llvm.prefetch.p0(ptr" in tedsl.build(s, [A, B]).get_source("ll")


def test_a_halo_is_part_of_the_region():
    A = te.placeholder((12, 12), name="A")
    B = te.compute((10, 12), lambda i, j: A[i, j] + A[i + 2, j], name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, B.op.axis[0], 3)
    assert region(s, [A, B]) == ["prefetch(A, [(i + 3):((i + 3) + 3), 0:12])"]
    check_both(s, [A, B], {A: whole_numbers((12, 12))})


def test_tiles_of_a_matmul():
    n = 18
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    yo, xo, yi, xi = s[C].tile(*C.op.axis, 4, 8)
    ko, ki = s[C].split(k, 4)
    s[C].reorder(yo, xo, ko, yi, ki, xi)
    s[C].vectorize(xi)
    s[C].prefetch(A, ko, 1)
    s[C].prefetch(B, ko, 1)
    assert len(region(s, [A, B, C])) == 2
    check_both(s, [A, B, C], {A: whole_numbers((n, n)), B: whole_numbers((n, n), seed=1)})


def test_symbolic_shapes_and_negative_offsets():
    n, m, ahead = te.var("n"), te.var("m"), te.var("ahead")
    for offset in (1, -1, 1000, ahead):
        A, B, s = scaled(n, m)
        s[B].prefetch(A, B.op.axis[0], offset)
        arguments = [A, B] if offset is not ahead else [A, B, ahead]
        known = {} if offset is not ahead else {ahead: 2}
        calls = [({A: whole_numbers((p, q)), **known}, {n: p, m: q}) for p, q in ((0, 3), (3, 0), (1, 1), (5, 33))]
        check_calls(s, arguments, calls)


def test_what_follows_a_row_is_the_next_row():
    A, B, s = scaled(8, 100)
    jo, _ = s[B].split(B.op.axis[1], 16)
    s[B].prefetch(A, jo, 7)
    assert "A_2[min((((i*100) + (j.outer*16)) + 112), 799)]" in loops(s, [A, B], passes=True)
    check_both(s, [A, B], {A: whole_numbers((8, 100))})


def test_a_stage_of_the_program_is_prefetched_too():
    A = te.placeholder((9, 20), name="A")
    B = te.compute((9, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((9, 20), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].prefetch(B, C.op.axis[0], 1)
    s[B].storage_align(B.op.axis[0], 32, 0)
    assert "B[min((((i_1*32) + (prefetch.B.1*16)) + 32), 275)]" in loops(s, [A, C], passes=True)  # rows of 20 in 32
    check_both(s, [A, C], {A: whole_numbers((9, 20))})


def test_places_that_depend_on_data_are_not_asked_for():
    A, index = te.placeholder((9,), name="A"), te.placeholder((6,), "int32", name="I")
    B = te.compute((6,), lambda i: A[index[i]], name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, B.op.axis[0], 1)
    assert "prefetch" not in loops(s, [A, index, B], passes=True)
    check_both(s, [A, index, B], {A: whole_numbers((9,)), index: abs(whole_numbers((6,), "int32"))})


def test_a_loop_over_two_dimensions_reads_a_part_of_one_long_row():
    A = te.placeholder((6, 4, 12), name="A")
    k = te.reduce_axis((0, 6), "k")
    B = te.compute((4, 12), lambda i, j: te.sum(A[k, i, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    block, lane = s[B].split(s[B].fuse(*B.op.axis), factor=16)
    s[B].reorder(block, k, lane)
    s[B].prefetch(A, block, 1)
    (line,) = region(s, [A, B])  # all columns of every row that a block touches were asked for, a number that LLVM did not know
    assert line.startswith("prefetch(A, [0:6, 0:1, ") and line.endswith("16)])") and "div" not in line, line
    check_both(s, [A, B], {A: whole_numbers((6, 4, 12))})


def test_a_tensor_that_is_not_read_there_is_refused():
    A = te.placeholder((9, 20), name="A")
    B = te.compute((9, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((9, 20), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].prefetch(A, C.op.axis[0], 1)
    with pytest.raises(LoweringError, match="C prefetches A at loop i, and A is not read inside that loop"):
        loops(s, [A, C])


def test_a_tensor_that_is_computed_there_is_refused():
    A = te.placeholder((9, 20), name="A")
    B = te.compute((9, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((9, 20), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].prefetch(B, C.op.axis[0], 1)
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(LoweringError, match="B is computed inside that loop"):
        loops(s, [A, C])


def test_threads_inside_the_loop_are_part_of_the_region():
    for tag in ("vthread", "threadIdx.x"):
        A, B, s = scaled(8, 100)
        s[B].bind(B.op.axis[1], te.thread_axis(tag))
        s[B].prefetch(A, B.op.axis[0], 1)
        assert region(s, [A, B]) == ["prefetch(A, [(i + 1):((i + 1) + 1), 0:100])"]
        check_both(s, [A, B], {A: whole_numbers((8, 100))})


def test_places_of_a_result_that_are_written_later():
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((8, 64), lambda i, j: A[i, j] * B[i], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    chunk, _ = s[B].split(B.op.reduce_axis[0], factor=32)
    s[B].prefetch(A, chunk, 0, into=C)
    text = loops(s, [A, C])
    assert 'attr [C] "prefetch_into" = 1;\n' in text and 'attr [A] "prefetch_scope" = 0' in text
    assert region(s, [A, C]) == ["prefetch(C, [i:(i + 1), (k.outer*32):((k.outer*32) + 32)], writes)"]
    assert "C_2[((i*64) + (k.outer*32)) + (prefetch.C.1*16))], dtype=handle), 1, 3, 1" in \
        loops(s, [A, C], passes=True).replace("(((", "((")
    check_both(s, [A, C], {A: whole_numbers((8, 64))})
    assert re.search(r"@llvm\.prefetch\.p0\(ptr %\S+, i32 1, i32 3, i32 1\)", tedsl.build(s, [A, C]).get_source("ll"))
    assert "prefetching C to be written, as A, 0 ahead" in str(s)


def test_an_array_without_dimensions():
    A = te.placeholder((), name="A")
    B = te.compute((8,), lambda i: A() * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, B.op.axis[0], 1)
    check_both(s, [A, B], {A: whole_numbers(())})


def spread_over(inner):
    """Rows of A that 6 results read each, in steps of `inner` elements; the next row is asked for bit by bit."""
    A = te.placeholder((8, 256), name="A")
    k = te.reduce_axis((0, 256), "k")
    B = te.compute((8, 6), lambda i, j: te.sum(A[i, k] * (j + 1.0), axis=k), name="B")
    s = te.create_schedule(B.op)
    i, j = B.op.axis
    ko, ki = s[B].split(k, inner)
    s[B].reorder(i, j, ko, ki)
    s[B].prefetch(A, i, 1, spread=True)
    return A, B, s


def test_a_row_bit_by_bit():
    A, B, s = spread_over(128)
    assert "for i in 0..8 (prefetching A 1 ahead bit by bit)" in str(s[B])
    printed = loops(s, [A, B], passes=True).splitlines()
    asks = [at for at, line in enumerate(printed) if "tir.prefetch" in line]
    assert len(asks) == 2  # 16 lines in 6 * 2 iterations
    assert [printed[at].strip().split(" ")[0] for at in (asks[0] - 1, asks[-1] + 1)] == ["for", "for"]
    assert "for (k.outer" in printed[asks[0] - 1]
    assert "for (k.inner" in printed[asks[-1] + 1]
    assert "min(((j*4) + (k.outer*2)), 15)*16)" in printed[asks[0]]
    check_both(s, [A, B], {A: whole_numbers((8, 256))})


def test_no_more_iterations_than_lines():
    A, B, s = spread_over(64)  # 6 * 4 are more than 16: three lines for each result
    printed = loops(s, [A, B], passes=True).splitlines()
    asks = [at for at, line in enumerate(printed) if "tir.prefetch" in line]
    assert len(asks) == 3
    assert "for (j" in printed[asks[0] - 1]
    check_both(s, [A, B], {A: whole_numbers((8, 256))})


def test_short_rows_are_asked_for_by_lines():
    A = te.placeholder((6, 32, 8), name="A")
    k, l = te.reduce_axis((0, 32), "k"), te.reduce_axis((0, 8), "l")
    B = te.compute((6, 4), lambda i, j: te.sum(A[i, k, l] * (j + 1.0), axis=[k, l]), name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, B.op.axis[0], 1, spread=True)
    assert loops(s, [A, B], passes=True).count("tir.prefetch") == 4  # 16 lines of two rows each, for four results
    check_both(s, [A, B], {A: whole_numbers((6, 32, 8))})


def test_bit_by_bit_without_loops_or_extents_is_at_once():
    A, B, s = scaled(8, 100)
    s[B].vectorize(B.op.axis[1])
    s[B].prefetch(A, B.op.axis[0], 1, spread=True)
    assert region(s, [A, B]) == ["prefetch(A, [(i + 1):((i + 1) + 1), 0:100])"]
    n = te.var("n")
    A, B, s = scaled(8, n)
    s[B].prefetch(A, B.op.axis[0], 1, spread=True)
    assert region(s, [A, B]) == ["prefetch(A, [(i + 1):((i + 1) + 1), 0:n])"]
    check_calls(s, [A, B], [({A: whole_numbers((8, 5))}, {n: 5})])

"""Pragmas that change loops: parallel regions, parts of loops, regions that are skipped."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ScheduleError
from tedsl.ir.evaluate import run
from tedsl.ir.walk.visitor import post_order
from tedsl.runtime.parallel import get_num_threads
from tests.lower.end_to_end import check_both, check_calls, loops
from tests.lower.programs import whole_numbers


def scaled(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    return A, B, te.create_schedule(B.op)


# --- parallel regions ---------------------------------------------------------------------------------------------------

def launched(n, inner):
    """The program that TVM's users write: a region, in it a strided parallel loop, a barrier after that."""
    A, B, s = scaled(n)
    xo, xi = s[B].split(B.op.axis[0], factor=4)
    outer, each = s[B].split(xo, factor=inner)
    s[B].parallel(each)
    s[B].pragma(outer, "parallel_launch_point")
    s[B].pragma(each, "parallel_stride_pattern")
    s[B].pragma(each, "parallel_barrier_when_finish")
    s[B].vectorize(xi)
    return A, B, s


@pytest.mark.parametrize("n", [1, 52, 103, 500])
def test_a_launch_point_with_a_strided_loop(n):
    A, B, s = launched(n, 13)
    check_both(s, [A, B], {A: whole_numbers((n,))})


def test_a_launch_point_over_a_symbolic_extent():
    n = te.var("n")
    A, B, s = launched(n, 13)
    check_calls(s, [A, B], [({A: whole_numbers((k,))}, {n: k}) for k in (0, 1, 5, 52, 211)])


def test_iterations_are_dealt_out_in_turn():
    A, B, s = scaled(103)
    s[B].parallel(B.op.axis[0])
    s[B].pragma(B.op.axis[0], "parallel_stride_pattern")
    source = tedsl.build(s, [A, B]).get_source("tir")
    threads = min(get_num_threads(), 103)
    assert threads == 1 or (f'for (i.task: int32, 0, {threads}) "parallel"' in source and "for (i.step: int32, 0, " in source)
    check_both(s, [A, B], {A: whole_numbers((103,))})


# --- loop_partition_hint ------------------------------------------------------------------------------------------------

def test_a_loop_of_constant_extent_is_split_when_asked():
    A, B, s = scaled(50)
    outer, _ = s[B].split(B.op.axis[0], 8)
    assert "likely" in str(tedsl.lower(s, [A, B]))
    s[B].pragma(outer, "loop_partition_hint")
    text = str(tedsl.lower(s, [A, B]))
    assert "for (i.outer: int32, 0, 6)" in text and "likely" not in text.split("0, 6)")[1].split("}")[0]
    check_both(s, [A, B], {A: whole_numbers((50,))})


def test_a_choice_of_the_users_splits_the_loop_too():
    A, C = te.placeholder((7,), name="A"), te.placeholder((13,), name="C")
    B = te.compute((20,), lambda i: te.if_then_else(i < 7, A[i], C[i - 7]), name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "loop_partition_hint")
    body = str(tedsl.lower(s, [A, C, B])).split("buffer_map", 1)[1].split("{\n", 1)[1]
    assert dedent(body.rsplit("\n}", 1)[0]) == dedent("""\
        for (i: int32, 0, 7) {
          B_2[i] = (float32*)A_2[i]
        }
        for (i_1: int32, 0, 13) annotations = {"partition_tail": 1} {
          B_2[(i_1 + 7)] = (float32*)C_2[i_1]
        }""")
    check_both(s, [A, C, B], {A: whole_numbers((7,)), C: whole_numbers((13,), seed=1)})


# --- debug_skip_region --------------------------------------------------------------------------------------------------

def test_a_region_that_is_skipped_is_nothing():
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((6,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule([B.op, C.op])
    s[B].pragma(B.op.axis[0], "debug_skip_region")
    assert loops(s, [A, B, C], passes=True) == dedent("""\
        for (i: int32, 0, 6) {
          C_2[i] = ((float32*)A_2[i] + 1f32)
        }
        """)
    data, first, second = whole_numbers((6,)), np.full(6, 77, "float32"), np.zeros(6, "float32")
    tedsl.build(s, [A, B, C])(data, first, second)
    np.testing.assert_array_equal(first, 77)
    np.testing.assert_array_equal(second, data + 1)
    run(tedsl.driver.schedule_to_module(s, [A, B, C])["main"], [data, first, second])
    np.testing.assert_array_equal(first, 77)


@pytest.mark.parametrize("value, shown", [(None, "1"), (3, "3"), ("fast", '"fast"')])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_pragmas_of_users_stay_on_the_loop(target, value, shown):
    A, B, s = scaled(8)
    with pytest.warns(UserWarning, match=r"no pass of tedsl knows this pragma; the loop keeps it as the attribute pragma_mine"):
        s[B].pragma(B.op.axis[0], "mine", value)
    assert f'"pragma_mine" = {shown}' in str(tedsl.lower(s, [A, B]))
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build(s, [A, B], target=target)(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_a_pass_of_the_user_finds_its_pragma():
    A, B, s = scaled(8)
    with pytest.warns(UserWarning, match="pragma_mine"):
        s[B].pragma(B.op.axis[0], "mine", 3)
    seen = []

    def look(func):
        seen.extend(node.value.value for node in post_order(func.body)
                    if isinstance(node, tir.AttrStmt) and node.attr_key == "pragma_mine")
        return func

    with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(1, look)]}):
        tedsl.lower(s, [A, B])
    assert seen == [3]


def test_a_pragma_that_is_nearly_known():
    A, B, s = scaled(8)
    with pytest.warns(UserWarning, match="did you mean unroll"):
        s[B].pragma(B.op.axis[0], "unrol")


@pytest.mark.parametrize("scope", ["", "global", "shared", "local", "warp", "texture", "local.L1", "wmma.matrix_a", "local.l0a",
                                   "global.texture", "global:tag", "shared:tag"])
def test_scopes(scope):
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((6,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    assert s[B].set_scope(scope) is s[B]
    assert s[B].scope == scope
    check_both(s, [A, C], {A: whole_numbers((6,))})


@pytest.mark.parametrize("scope", ["lokal", "wmma", "localx", "shared_", "Global"])
def test_unknown_scopes_are_refused(scope):
    A, B, s = scaled(8)
    with pytest.raises(ScheduleError, match=f"there is no memory scope '{scope}'(.|\n)*choose one of global, shared, local"):
        s.cache_read(A, scope, [B])

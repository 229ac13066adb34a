"""The programs that TE users start with, as their tutorials have them."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te

rng = np.random.default_rng(0)


def test_row_sum_prints_its_loops():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = topi.sum(A, axis=1)
    assert str(tedsl.lower(te.create_schedule(B.op), [A], simple_mode=True)) == dedent("""\
        primfn(A_1: handle) -> ()
          attr = {"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True}
          buffers = {A: Buffer(A_2: Pointer(float32), float32, [n: int32, m: int32], [stride: int32, stride_1: int32], \
type="auto")}
          buffer_map = {A_1: A} {
          allocate(A_red: Pointer(global float32), float32, [n]), storage_scope = global;
          for (ax0: int32, 0, n) {
            A_red[ax0] = 0f32
            for (k1: int32, 0, m) {
              A_red[ax0] = ((float32*)A_red[ax0] + (float32*)A_2[((ax0*stride) + (k1*stride_1))])
            }
          }
        }""")


STAGES = ["a", "b", "T_add", "T_multiply", "T_elemwise_sum", "T_divide", "T_divide_red"]


def elemwise_sum_program():
    a, b = te.placeholder((100, 10, 10), name="a"), te.placeholder((10, 10), name="b")
    e = topi.elemwise_sum([a + b, a * b])
    f = e / 2.0
    return a, b, topi.sum(f)


def test_stages_are_shown_with_their_operations():
    _, _, g = elemwise_sum_program()
    s = te.create_schedule(g.op)
    assert [stage.op.name for stage in s.stages] == STAGES
    shown = str(s.stages)
    assert shown.startswith("[stage(a, placeholder(a, [100, 10, 10])), stage(b, placeholder(b, [10, 10])), stage(T_add, ")
    assert str(s.stages[2]) != repr(s.stages[2])
    assert repr(s.stages[2]) == (
        "stage(T_add, compute(T_add, body=[(a[ax0, ax1, ax2] + b[ax1, ax2])], axis=[iter_var(ax0, range(min=0, ext=100)), "
        "iter_var(ax1, range(min=0, ext=10)), iter_var(ax2, range(min=0, ext=10))], reduce_axis=[], tag=broadcast, attrs={}))")
    assert [stage.op.tag for stage in s.stages[2:]] == ["broadcast", "broadcast", "elemwise", "elemwise", "comm_reduce"]


@pytest.mark.parametrize("schedule_reduce", [topi.generic.schedule_reduce, topi.x86.schedule_reduce, topi.cuda.schedule_reduce],
                         ids=["generic", "x86", "cuda"])
def test_elemwise_sum(schedule_reduce):
    a, b, g = elemwise_sum_program()
    x, y = rng.random((100, 10, 10), "float32"), rng.random((10, 10), "float32")
    result = np.empty((), "float32")
    tedsl.build(schedule_reduce(g), [a, b, g], "llvm")(x, y, result)
    np.testing.assert_allclose(result, ((x + y + x * y) / 2).sum(), rtol=1e-5)


def test_generic_schedule_inlines_and_keeps_every_stage():
    _, _, g = elemwise_sum_program()
    s = topi.generic.schedule_reduce([g])
    assert [stage.op.name for stage in s.stages] == STAGES
    assert str(s).count("computed inline") == 4


def test_broadcast_add_and_operators_are_one():
    x, y = te.placeholder((3, 1, 4), name="x"), te.placeholder((5, 1), name="y")
    data = rng.random((3, 1, 4), "float32"), rng.random((5, 1), "float32")
    for made in (topi.broadcast_add(x, y), x + y):
        result = np.empty((3, 5, 4), "float32")
        tedsl.build(topi.x86.schedule_broadcast([made]), [x, y, made])(*data, result)
        np.testing.assert_array_equal(result, data[0] + data[1])


def test_the_target_chooses():
    a, b, g = elemwise_sum_program()
    with tedsl.target.Target("llvm"):
        assert "vectorized" in str(topi.testing.get_reduce_schedule("llvm")(g))
    assert topi.testing.get_injective_schedule("llvm") is topi.x86.schedule_injective
    assert topi.testing.get_broadcast_schedule("cuda") is topi.cuda.schedule_injective
    assert topi.testing.dispatch("nvptx", {"gpu": 1, "generic": 2}) == 1
    assert topi.testing.dispatch("llvm", {"gpu": 1, "generic": 2}) == 2
    assert topi.testing.get_reduce_schedule("opencl") is topi.cuda.schedule_reduce
    for kind in ("cuda", "rocm", "opencl", "vulkan", "metal"):
        with tedsl.target.Target(kind):
            assert "threadIdx.x" in str(topi.schedules.schedule(g))

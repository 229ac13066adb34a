"""Functions for a device are split into a host function that launches and kernels, each a function of its own."""

import re
from textwrap import dedent

import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.ir.text import text
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline
from tedsl.passes.device.split_kernels import split_kernels
from tedsl.runtime.signature import signature_of

TARGET = tedsl.Target("cuda")


def bound(s, tensor, threads=32):
    outer, inner = s[tensor].split(s[tensor].op.axis[0], threads)
    s[tensor].bind(outer, te.thread_axis("blockIdx.x"))
    s[tensor].bind(inner, te.thread_axis("threadIdx.x"))


def split(s, args, **config):
    with tedsl.transform.PassContext(config=config):
        func = tedsl.lower(s, args)["main"]
        return split_kernels(device_pipeline(TARGET, PassConfig())(func), TARGET)


def words(stmt):
    """The text of a statement without the types of its variables."""
    return re.sub(r": (int32|Pointer\(float32\))", "", text(stmt)).strip()


def two_stages(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    return s, A, B, C


def test_each_launch_becomes_a_kernel_and_memory_between_them_a_workspace():
    s, A, B, C = two_stages(te.var("n"))
    bound(s, B)
    bound(s, C)
    made = split(s, [A, C])
    assert words(made.host.body) == dedent("""\
        let B = @tir.call_packed("device_api.allocate", max((4i64*cast(int64, n)), 0i64), dtype=handle)
         {
          @tir.call_packed("main_kernel0", A, B, n, floordiv((n + 31), 32), 32, dtype=int32)
          @tir.call_packed("main_kernel1", C, B, n, floordiv((n + 31), 32), 32, dtype=int32)
          @tir.call_packed("device_api.free", B, dtype=int32)
        }""")
    first, second = made.kernels
    assert [p.name for p in first.params] == ["A", "B", "n"]
    assert [p.name for p in second.params] == ["C", "B", "n"]
    assert words(second.body) == dedent("""\
        attr [IterVar(blockIdx.x, (nullptr), "ThreadIndex", "blockIdx.x")] "thread_extent" = floordiv((n + 31), 32);
        attr [IterVar(threadIdx.x, (nullptr), "ThreadIndex", "threadIdx.x")] "thread_extent" = 32;
        if @tir.likely((((blockIdx.x*32) + threadIdx.x) < n), dtype=bool) {
          C[((blockIdx.x*32) + threadIdx.x)] = ((float32*)B[((blockIdx.x*32) + threadIdx.x)]*2f32)
        }""")


def test_the_attributes_of_a_kernel():
    s, A, B, C = two_stages(64)
    bound(s, B)
    bound(s, C)
    kernel = split(s, [A, C]).kernels[0]
    assert kernel.attrs["calling_conv"] == 2
    assert kernel.attrs["tir.device_thread_axis"] == ("blockIdx.x", "threadIdx.x")
    assert kernel.attrs["target"] is TARGET
    assert not kernel.buffer_map


def test_the_host_function_knows_what_its_kernels_write():
    s, A, B, C = two_stages(64)
    bound(s, B)
    bound(s, C)
    signature = signature_of(split(s, [A, C]).host)
    assert [param.written for param in signature.params] == [False, True]


def test_variables_of_host_loops_are_arguments():
    n = te.var("n")
    A = te.placeholder((8, n), name="A")
    B = te.compute((8, n), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[1], 32)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    made = split(s, [A, B])
    assert [p.name for p in made.kernels[0].params] == ["A", "B", "n", "i"]
    assert "for (i: int32, 0, 8)" in text(made.host.body)


def test_dynamic_shared_memory_is_the_last_argument():
    A = te.placeholder((4, 20), name="A")
    B = te.compute((4, 20), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 20), lambda i, j: B[i, 19 - j], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].set_scope("shared.dyn")
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    assert '"main_kernel0", A, C, 4, 20, 80i64' in words(split(s, [A, C]).host.body)


@pytest.mark.parametrize("stages, accessed, computed", [("", "A, B, C", "B, C"), ("B", "B, C", "C"), ("C", "A, B", "B")])
def test_the_host_does_not_touch_the_memory_of_the_device(stages, accessed, computed):
    s, A, B, C = two_stages(64)
    for name in stages:
        bound(s, {"B": B, "C": C}[name])
    with pytest.raises(LoweringError, match=r"accessed outside of its threads(.|\n)*did you forget to bind") as raised:
        split(s, [A, C])
    assert set(accessed.split(", ")) == set(str(raised.value).split(", and ")[1].split(" are ")[0].split(", "))
    assert f"bind the loops that compute {computed} to threads: s[{computed[0]}].bind(loop" in str(raised.value)


def test_handwritten_loops_without_threads_say_what_is_missing():
    x = te.placeholder((4, 20), name="x")
    out = topi.cumsum(x, axis=1)
    with pytest.raises(LoweringError, match=r"accessed outside of its threads(.|\n)*did you forget to bind"):
        split(te.create_schedule(out.op), [x, out])


def test_an_assertion_in_a_kernel_is_refused():
    ib = tir.ir_builder.create()
    A = tir.decl_buffer((8,), "float32", "A")
    data = ib.buffer_ptr(A)
    tx = te.thread_axis("threadIdx.x")
    ib.scope_attr(tx, "thread_extent", 8)
    ib.emit(lambda body: tir.AssertStmt(data[tx] > 0.0, tir.StringImm("not positive"), body))
    data[tx] = 1.0
    func = tir.PrimFunc([A], ib.get())
    with pytest.raises(LoweringError, match=r"inside of a kernel, which cannot raise(.|\n)*disable_assert"):
        split_kernels(device_pipeline(TARGET, PassConfig())(tedsl.lower(func)["main"]), TARGET)

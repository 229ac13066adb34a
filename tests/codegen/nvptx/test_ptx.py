"""PTX of kernels: NVIDIA's assembler takes it, and its instructions are those that the schedule asks for."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tedsl.target import Target
from tests.codegen.nvptx.assembler import ARCHS, assemble, count
from tests.codegen.nvptx.kernels import device_code
from tests.passes.threads.programs import tiled_matmul, vector_add


def elementwise(formula, dtype="float32", of=None, n=1000):
    A, B = te.placeholder((n,), dtype, "A"), te.placeholder((n,), dtype, "B")
    C = te.compute((n,), lambda i: formula(A[i], B[i]), name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=128)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B, C]


def four_wide(n=1024, dtype="float32"):
    A = te.placeholder((n,), dtype, "A")
    B = te.compute((n,), lambda i: A[i] + te.const(1, dtype), name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=256)
    thread, lane = s[B].split(thread, factor=4)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].vectorize(lane)
    return s, [A, B]


@pytest.mark.parametrize("arch", ARCHS)
def test_tiled_product(arch, tmp_path):
    code = device_code(*tiled_matmul(64, 64, 64, threads=8), arch)
    assert f".target {arch}" in code.text and ".reqntid 8, 8, 1" in code.text
    assert code.functions[0].shared == 2 * 256 * 4 and code.functions[0].fixed_block == (8, 8, 1)
    image, registers = assemble(code.text, arch, tmp_path)
    assert registers <= 96  # 16 sums, eight operands, and those that are loaded ahead
    if arch != "sm_70":  # the disassembler no longer knows it
        assert count(image, "FFMA") == 128 and count(image, "BAR") == 2 and count(image, "LDS", "128") == 8


@pytest.mark.parametrize("n", [1000, 1024])
def test_vector_add(n, tmp_path):
    code = device_code(*vector_add(n, 256))
    (function,) = code.functions
    assert function.name == "main_kernel0" and function.axes == ("blockIdx.x", "threadIdx.x")
    assert [(p.name, p.array, p.written) for p in function.parameters] == [
        ("A", True, False), ("B", True, False), ("C", True, True)]
    assemble(code.text, "sm_80", tmp_path)
    assert not re.search(r"(mul|mad)\.lo\.s64", code.text)
    assert ("bra" in code.text) == (n % 256 != 0)


def test_four_floats_at_once(tmp_path):
    code = device_code(*four_wide())
    image, _ = assemble(code.text, "sm_80", tmp_path)
    assert count(image, "LDG", "128") == count(image, "STG", "128") == 1


@pytest.mark.parametrize("arch", ARCHS)
def test_every_function(arch, tmp_path):
    """All functions of one argument and their kin, in float32 and float64."""
    names = ["exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "tanh", "sigmoid", "erf", "sqrt", "rsqrt", "sin", "cos",
             "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round",
             "nearbyint"]
    binary = [te.power, te.max, te.min] if hasattr(te, "power") else [te.max, te.min]
    for dtype in ("float32", "float64"):
        for name in names:
            code = device_code(*elementwise(lambda x, y, name=name: getattr(te, name)(x) + y, dtype), arch)
            assert "call" not in code.text
            if name in ("exp", "sin", "round"):
                assemble(code.text, arch, tmp_path)
        for function in binary:
            device_code(*elementwise(function, dtype), arch)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int16", "int64", "uint32", "uint64"])
def test_every_dtype(dtype, arch, tmp_path):
    code = device_code(*elementwise(lambda x, y: x * y + x, dtype), arch)
    assemble(code.text, arch, tmp_path)
    code = device_code(*elementwise(lambda x, y: (x + y).astype("float32").astype("int32").astype(dtype), dtype), arch)
    assemble(code.text, arch, tmp_path)


def test_bool_arguments(tmp_path):
    code = device_code(*elementwise(lambda x, y: te.all(x, y), "bool"))
    assemble(code.text, "sm_80", tmp_path)


def test_sizes_of_the_call(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    code = device_code(s, [A, B])
    assert next((p.name, str(p.dtype)) for p in code.functions[0].parameters if not p.array) == ("n", "int32")
    assemble(code.text, "sm_80", tmp_path)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_unknown_devices_are_refused():
    with pytest.raises(ArgumentError, match="no device 'sm_33'"):
        device_code(*vector_add(64), "sm_33")


def test_callbacks_are_refused():
    from tedsl import tir

    with pytest.raises(LoweringError, match="C function 'draw'"):
        device_code(*elementwise(lambda x, y: tir.call_pure_extern("float32", "draw", x) + y))


def test_intrinsics_that_would_end_the_process_are_refused():
    from tedsl import tir

    one = tir.const(1, "uint32")
    with pytest.raises(LoweringError, match=r"llvm\.sin\.f32"):
        device_code(*elementwise(lambda x, y: tir.call_llvm_pure_intrin("float32", "llvm.sin.f32", one, x) + y))


def test_targets_of_devices():
    target = Target("cuda -arch=sm_90")
    assert target.triple == "nvptx64-nvidia-cuda" and target.arch == "sm_90" and target.cpu == "sm_90" and target.has_fma
    assert Target("nvptx").cpu == "sm_70" and tedsl.target.Target("cuda").feature_string == "+ptx63"


# --- registers ----------------------------------------------------------------------------------------------------------


def test_long_sums_stay_between_their_barriers(tmp_path):
    """Moved behind the last barrier, where the sums are used, they would need a register for everything that they add."""
    A, W = te.placeholder((64, 64), name="A"), te.placeholder((128, 64), name="W")
    k = te.reduce_axis((0, 128), "k")
    B = te.compute((64, 64), lambda i, j: te.sum(W[k, i] * A[j, k // 2], axis=k), name="B")
    s = te.create_schedule(B.op)
    shared = s.cache_read(W, "shared", [B])
    local = s.cache_write(B, "local")
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[B], B.op.axis[1])
    outer, inner = s[local].split(s[local].op.reduce_axis[0], factor=64)
    s[local].unroll(outer)
    s[local].unroll(inner)
    s[shared].compute_at(s[local], outer)
    s[shared].bind(shared.op.axis[0], te.thread_axis("threadIdx.x"))
    code = device_code(s, [A, W, B])
    order = re.findall(r"fma\.rn\.f32|bar\.sync", code.text)
    assert order.index("fma.rn.f32") < len(order) - order[::-1].index("bar.sync") - 1
    _, registers = assemble(code.text, "sm_80", tmp_path)
    assert registers < 128


@pytest.mark.parametrize("arch, native", [("sm_70", False), ("sm_80", True), ("sm_90", True)])
def test_bfloat16_is_rounded_by_one_instruction(arch, native, tmp_path):
    text = device_code(*elementwise(lambda a, b: a * b, "bfloat16"), arch).text
    assert text.count("cvt.rn.bf16") == int(native) and ("setp.nan.f32" in text) == (not native)
    wide = device_code(*four_wide(dtype="bfloat16"), arch).text
    assert ("cvt.rn.bf16" in wide) == native
    if llvm.llvm_version_info[0] >= 22:  # older ones round one number at a time
        assert ("cvt.rn.bf16x2.f32" in wide) == native
    if arch != "sm_70":
        assemble(wide, arch, tmp_path)


@pytest.mark.parametrize("dtype, n", [("int8", 7), ("bool", 5), ("float16", 7)])
def test_shared_memory_is_as_large_as_what_its_loads_read(dtype, n, monkeypatch):
    """LLVM joins the loads of a vector up to the alignment of the variable, beyond its own last element."""
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    A = te.placeholder((n,), dtype, "A")
    B = te.compute((2 * n,), lambda i: A[i // 2], name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    s[B].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
    shared = s.cache_read(A, "shared", [B])
    s[shared].compute_at(s[B], B.op.axis[0])
    kernel = tedsl.build(s, [A, B], "cuda")
    bytes_, = map(int, re.findall(r"\.shared .*\[(\d+)\];", kernel.imported_modules[0].get_source("ptx")))
    assert bytes_ % 16 == 0
    values, out = np.arange(1, n + 1).astype(dtype), tedsl.nd.empty((2 * n,), dtype, tedsl.cuda(0))
    kernel(tedsl.nd.array(values, tedsl.cuda(0)), out)
    np.testing.assert_array_equal(out.numpy(), np.repeat(values, 2))


def test_branches_that_both_have_loops():
    """They hold a fence of one thread on processors, for which LLVM aborts here."""
    a, b = tir.decl_buffer((64,), name="a"), tir.decl_buffer((64,), name="b")
    ib = tir.ir_builder.create()
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    thread = te.thread_axis("threadIdx.x")
    ib.scope_attr(thread, "thread_extent", 8)
    for first in (True, False):
        with (ib.if_scope(x[thread.var] > 0) if first else ib.else_scope(), ib.for_range(0, 8, name="k") as k):
            y[thread.var * 8 + k] = x[k] * (2.0 if first else 3.0)
    assert "st.global" in tedsl.build(tir.PrimFunc([a, b], ib.get()), target="cuda").imported_modules[0].get_source("ptx")

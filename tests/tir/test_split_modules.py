"""Modules that SplitHostDevice has split are built: kernels stand in functions of their own, which the host calls."""

import contextlib

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError
from tedsl.passes.device.join_kernels import join_kernels

T = tir.transform


def two_kernels(n):
    """B in memory of the device between two launches; rows of C are turned in shared memory."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    C = te.compute((n,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule(C.op)
    shared = s.cache_read(B, "shared", [C])
    for stage in (B, C):
        block, thread = s[stage].split(stage.op.axis[0], 32)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    s[shared].compute_at(s[C], block)
    s[shared].bind(s[shared].op.axis[0], te.thread_axis("threadIdx.x"))
    return tedsl.lower(s, [A, C], name="f")


def split(mod):
    marked = T.Apply(lambda func: func.with_attr("target", tedsl.target.Target("cuda")))(mod)
    return tedsl.transform.Sequential([T.ThreadSync("shared"), T.SplitHostDevice()])(marked)


@pytest.mark.parametrize("n", [1, 33, 64, te.var("n")], ids=str)
def test_a_split_module_is_built_as_the_whole_one(n):
    mod = two_kernels(n)
    parts = split(mod)
    assert list(parts) == ["f", "f_kernel0", "f_kernel1"] and parts["f_kernel1"].attrs["calling_conv"] == 2
    texts = [tedsl.build(one, target="cuda").imported_modules[0].get_source("ptx") for one in (parts, mod)]
    assert texts[0] == texts[1] and ".visible .entry f_kernel1(" in texts[0]
    a = np.arange(70 if isinstance(n, tir.Var) else n, dtype="float32")
    host, device = tedsl.IRModule({"f": parts["f"]}), tedsl.IRModule(dict(list(parts.items())[1:]))
    for given in (parts, [host, device], {"llvm": parts}):
        c = np.zeros_like(a)
        tedsl.build(given)(a, c) if isinstance(given, dict) else tedsl.build(given, target="llvm")(a, c)
        np.testing.assert_array_equal(c, (a + 1) * 2)


def test_a_module_written_by_hand_is_checked_as_a_whole():
    """A kernel that reads beyond its array is refused, as in a function that is not split."""
    n, blocks = tir.Var("n", "int32"), te.thread_axis("blockIdx.x")
    A = tir.decl_buffer((n,), name="A")
    pointer = tir.Var("p", tedsl.ir.PointerType(tedsl.ir.PrimType("float32")))
    index = blocks.var + 1
    launch = tir.AttrStmt(blocks, "thread_extent", n, tir.Store(pointer, tir.Load("float32", pointer, index) + 1, index))
    kernel = tir.PrimFunc([pointer], launch, attrs={"calling_conv": 2, "global_symbol": "beyond"})
    call = tir.Evaluate(tir.call_packed("beyond", A.data, n))
    host = tir.PrimFunc([A], call).with_attr("global_symbol", "f")
    with pytest.raises(LoweringError, match=r"the read of A\[blockIdx\.x \+ 1\] is outside"):
        tedsl.build(tedsl.IRModule({"f": host, "beyond": kernel}), target="llvm")


def test_kernels_that_are_not_called_as_they_are():
    parts = dict(split(two_kernels(40)).items())
    with pytest.raises(LoweringError, match=r"the kernel f_kernel0 is called by no function(.|\n)*whole module"):
        tedsl.build(tedsl.IRModule({name: func for name, func in parts.items() if name != "f"}))
    kernel = parts["f_kernel0"]
    wide = kernel.replace(params=(*kernel.params, *(tir.Var(f"more{k}", "int32") for k in range(5))))
    with pytest.raises(LoweringError, match="takes 7 arguments, and is called with"):
        tedsl.build(tedsl.IRModule({**parts, "f_kernel0": wide}))
    plain = {"g": tedsl.lower(te.create_schedule(te.compute((3,), lambda i: i).op), [])["main"]}
    assert join_kernels(plain) == plain


def copied(n):
    """A copy of n numbers, whose kernel has the name of any other copy's."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return dict(split(tedsl.lower(s, [A, B], name="f")).items())


def test_parts_of_several_splits_are_checked_together():
    """A host with the kernel of another program, and a kernel that takes the arrays in another order."""
    small, large = copied(64), copied(1 << 20)
    with pytest.raises(LoweringError, match=r"the read of A\[(.|\n)*is outside: A has the indices 0 to 63"):
        tedsl.build(tedsl.IRModule({"f": small["f"], "f_kernel0": large["f_kernel0"]}), target="llvm")
    A, B = te.placeholder((8,), name="A"), te.placeholder((64,), name="B")
    C = te.compute((64,), lambda i: B[i] + A[0], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    parts = dict(split(tedsl.lower(s, [A, B, C], name="f")).items())
    kernel = parts["f_kernel0"]
    turned = kernel.replace(params=kernel.params[::-1])
    with pytest.raises(LoweringError, match="is outside"):
        tedsl.build(tedsl.IRModule({"f": parts["f"], "f_kernel0": turned}), target="llvm")


def test_a_kernel_that_is_called_twice():
    parts = dict(split(two_kernels(40)).items())
    host = parts["f"]
    doubled = host.with_body(tir.SeqStmt([host.body, host.body]))
    a, c = np.arange(40, dtype="float32"), np.zeros(40, "float32")
    tedsl.build(tedsl.IRModule({**parts, "f": doubled}), target="llvm")(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_passes_of_tedsl_keep_what_is_known_to_be_safe():
    """No access of a lowered module is checked again after them; after a pass of the program it is."""
    mod = two_kernels(te.var("n"))
    changed = T.ThreadSync("shared")(mod)
    assert changed["f"] is not mod["f"] and "assert" not in str(tedsl.lower(changed))
    by_program = T.Apply(lambda func: func.with_body(tir.SeqStmt([func.body, tir.Evaluate(0)])))(mod)
    assert "assert" in str(tedsl.lower(by_program))


@pytest.mark.parametrize("n", [64, te.var("n")], ids=str)
def test_halves_that_go_separate_ways_are_built_together(n):
    """As TVM's driver has it: passes over the part for the host, others over that for the device. No access is checked again,
    which no kernel could do, unless the program changes a kernel.
    """
    parts = T.MakePackedAPI()(split(two_kernels(n)))
    device, host = (T.Filter(lambda func, kernel=kernel: (func.attrs["calling_conv"] == 2) is kernel)(parts)
                    for kernel in (True, False))
    device = tedsl.transform.Sequential([T.LowerWarpMemory(), T.Simplify(), T.LowerDeviceStorageAccessInfo(),
                                         T.LowerIntrin()])(device)
    host = tedsl.transform.Sequential([T.LowerTVMBuiltin(), T.LowerIntrin(), T.CombineContextCall()])(host)
    assert list(host) == ["f"] and list(device) == ["f_kernel0", "f_kernel1"]
    a = np.arange(64, dtype="float32")
    c = np.zeros_like(a)
    tedsl.build([host, device], target="llvm")(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)
    assert "f_kernel1" in tedsl.build([host, device], target="cuda").imported_modules[0].get_source("ptx")
    kernel = device["f_kernel0"]
    swapped = (*kernel.params[1::-1], *kernel.params[2:])
    for changed in (kernel.replace(params=swapped), kernel.with_body(tir.SeqStmt([kernel.body, tir.Evaluate(0)]))):
        with pytest.raises(LoweringError) if n != 64 else contextlib.nullcontext():
            tedsl.build([host, tedsl.IRModule({**dict(device.items()), "f_kernel0": changed})], target="cuda")

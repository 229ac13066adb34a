"""Passes and analyses for devices, each by itself as programs of TVM call them: virtual threads, kernels, rules, limits."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import AccessError, LoweringError
from tedsl.ir.evaluate import run
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.stmt import Allocate
from tedsl.ir.walk.visitor import post_order
from tests.devices.matrices import inputs, product

T = tir.transform
CUDA = tedsl.target.Target("cuda")


def written(body, *buffers, **attrs):
    """A module of the function that `body` writes with an ir_builder, on the buffers."""
    ib = tir.ir_builder.create()
    body(ib, *map(ib.buffer_ptr, buffers))
    return IRModule({"main": PrimFunc(buffers, ib.get()).with_attr({"global_symbol": "main", **attrs})})


def arrays(*shape, names="AB", dtype="float32"):
    return [tir.decl_buffer(shape, dtype, name=name) for name in names]


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


# --- virtual threads --------------------------------------------------------------------------------------------------

def in_virtual_threads(body, count=4, tag="vthread"):
    """B of two numbers for each virtual thread, and what `body` writes."""
    axis = te.thread_axis(tag)

    def loops(ib, a, b):
        ib.scope_attr(axis, "virtual_thread", count)
        body(ib, a, b, axis.var)

    return T.InjectVirtualThread()(T.Simplify()(written(loops, *arrays(2 * count))))["main"]


@pytest.mark.parametrize("kind", ["let", "begin of a loop", "condition"])
def test_memory_that_a_copied_statement_changes_belongs_to_each_thread(kind):
    """Its first value is stored before that statement, and does not depend on the thread."""
    def body(ib, a, b, v):
        k = ib.allocate("int32", 1, name="k", scope="local")
        k[0] = 0

        def fill(value):
            with ib.while_loop(k[0] < 2):
                b[v * 2 + k[0]] = value
                k[0] = k[0] + 1

        if kind == "let":
            fill(ib.let("x", a[v]))
        elif kind == "condition":
            with ib.if_scope(a[v] > -9.0):
                fill(a[v])
        else:
            with ib.for_range(v, v + 1, "i") as i:
                fill(a[i])

    func = in_virtual_threads(body)
    a, b = numbers(8), np.zeros(8, "float32")
    run(func, [a, b])
    np.testing.assert_array_equal(b, np.repeat(a[:4], 2))


@pytest.mark.parametrize("tag, mask, parts", [("vthread", "r", 1), ("vthread", "rw", 2), ("cthread", "r", 2)])
def test_memory_that_a_call_only_reads_is_shared(tag, mask, parts):
    """T is the same for all threads, and the call depends on the thread by the other pointer."""
    def body(ib, a, b, v):
        t = ib.allocate("float32", 4, name="T")
        t[0] = 1.0
        pointers = [tir.decl_buffer((size,), data=memory.asobject()).access_ptr(access, offset=at)
                    for memory, size, access, at in ((t, 4, mask, 0), (b, 4, "w", v * 2))]
        ib.emit(tir.call_extern("int32", "fill", *pointers))

    func = in_virtual_threads(body, 2, tag)
    assert str(func).count('"fill"') == 2
    (memory,) = [node for node in post_order(func.body) if isinstance(node, Allocate)]
    assert [extent.value for extent in memory.extents] == [2, 4][2 - parts:]


# --- host and device --------------------------------------------------------------------------------------------------

def test_a_function_for_a_device_is_a_kernel_of_one_thread():
    n = te.size_var("n")

    def body(ib, a):
        with ib.for_range(0, n, "i") as i:
            a[i] = a[i] + 1.0

    mod = T.DecorateDeviceScope()(T.StorageFlatten(64)(written(body, *arrays(n, names="A"), target=CUDA)))
    made = T.SplitHostDevice()(mod)
    assert list(made) == ["main", "main_kernel0"] and "for (" not in str(made["main"])
    a = numbers(7)
    expected = a + 1
    tedsl.build(made, target="llvm")(a)
    np.testing.assert_array_equal(a, expected)


def test_a_launch_under_an_attribute_of_the_device_is_the_launch():
    def body(ib, a, b):
        x = te.thread_axis("threadIdx.x")
        ib.scope_attr(x, "thread_extent", 8)
        b[x.var] = a[x.var] * 2.0

    mod = written(body, *arrays(8), target=CUDA)
    kernels = [T.SplitHostDevice()(one)["main_kernel0"] for one in (mod, T.DecorateDeviceScope()(mod))]
    assert str(kernels[0]) == str(kernels[1])


def test_functions_are_chosen_by_their_calling_convention():
    """As TVM's driver does it before it compiles for the host and for the device."""
    def body(ib, a, b):
        x = te.thread_axis("threadIdx.x")
        ib.scope_attr(x, "thread_extent", 8)
        b[x.var] = a[x.var] * 2.0

    mod = T.SplitHostDevice()(T.MakePackedAPI()(written(body, *arrays(8), target=CUDA)))
    launch = tedsl.ir.CallingConv.DEVICE_KERNEL_LAUNCH
    device = T.Filter(lambda f: "calling_conv" in f.attrs and f.attrs["calling_conv"].value == launch)(mod)
    host = T.Filter(lambda f: "calling_conv" not in f.attrs or f.attrs["calling_conv"].value != launch)(mod)
    assert (list(host), list(device)) == (["main"], ["main_kernel0"])
    name, func = device.functions.items()[0]
    assert (name.name_hint, func.attrs["calling_conv"]) == ("main_kernel0", 2)
    assert mod["main"].attrs["calling_conv"].value == 1
    steps = [T.LowerTVMBuiltin(), T.LowerIntrin(), T.LowerDeviceStorageAccessInfo(), T.CombineContextCall()]
    host = tedsl.transform.Sequential(steps)(host)
    device = tedsl.transform.Sequential([T.LowerWarpMemory(), T.Simplify(), *steps[1:3]])(device)
    a, b = numbers(8), np.zeros(8, "float32")
    tedsl.build([host, device], target="llvm")(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_attributes_of_devices_before_their_new_names():
    """device_context_type and device_context_id are those of TVM 0.7."""
    def body(first, second):
        def allocated(ib, a):
            ib.scope_attr("device", first, 2)
            ib.scope_attr("device", second, 0)
            t = ib.allocate("float32", 16, name="t")
            t[0] = a[0]

        return str(T.LowerTVMBuiltin()(T.StorageFlatten(64)(written(allocated, *arrays(16, names="A")))))

    made = body("device_context_type", "device_context_id")
    assert "TVMBackendAllocWorkspace" in made and made == body("device_type", "device_id")


def test_fragments_have_attributes_and_are_built():
    s, args = product((16, 16, 32), b_order="col_major")
    mod = tedsl.lower(s, args)
    made = T.InferFragment()(mod)
    attributes = [node for node in post_order(made["main"].body) if isinstance(node, tir.AttrStmt)
                  and node.attr_key.startswith("fragment")]
    said = {(node.attr_key, node.value.value) for node in attributes}
    assert said == {("fragment_shape", "16, 16, 16"), ("fragment_layout", "row_major"), ("fragment_layout", "col_major")}
    assert len(attributes) == 5 and "fragment_shape" not in str(mod)
    given, out, expected = inputs((16, 16, 32), b_order="col_major")
    tedsl.build(made, target="llvm")(*given, out)
    np.testing.assert_array_equal(out, expected)
    plain = written(lambda ib, a, b: ib.emit(tir.Evaluate(0)), *arrays(4))
    assert T.InferFragment()(plain)["main"] is plain["main"]


def test_barriers_of_dynamic_shared_memory():
    def body(ib, a, b):
        x = te.thread_axis("threadIdx.x")
        ib.scope_attr(x, "thread_extent", 8)
        s = ib.allocate("float32", 8, name="s", scope="shared.dyn")
        s[x.var] = a[x.var]
        b[x.var] = s[7 - x.var]

    mod = written(body, *arrays(8))
    made = T.ThreadSync("shared.dyn")(mod)
    assert str(made).count("tvm_storage_sync") == 1 and str(T.ThreadSync("shared")(made)) == str(made)


# --- rules and limits -------------------------------------------------------------------------------------------------

def test_rules_of_the_program_are_applied_by_lower_intrin():
    tedsl.ir.register_op_attr("tir.of_a_pass", "TCallEffectKind", tir.CallEffectKind.Pure)
    tedsl.ir.register_intrin_lowering("tir.of_a_pass", "cuda", f=lambda call: call.args[0] * 3.0)
    x = te.var("x", "float32")
    func = PrimFunc([x], tir.Evaluate(tir.call_intrin("float32", "tir.of_a_pass", x)))

    def lowered(target):
        return str(T.LowerIntrin()(IRModule({"main": func.with_attr("target", tedsl.target.Target(target))}))["main"].body)

    assert "of_a_pass" not in lowered("cuda") and "3f32" in lowered("cuda")
    assert "of_a_pass" in lowered("llvm"), "it stays where there is no rule; build refuses it"


def launches(*extents, nested=False):
    def body(ib, a, b):
        for extent in extents:
            with ib.new_scope():
                x = te.thread_axis("threadIdx.x")
                ib.scope_attr(x, "thread_extent", extent)
                b[x.var] = a[x.var]
                if nested:
                    y = te.thread_axis("threadIdx.x")
                    ib.scope_attr(y, "thread_extent", extent // 2)
                    b[y.var] = 0.0

    return written(body, *arrays(64))["main"]


@pytest.mark.parametrize("extents, most, keeps", [([8], 1, True), ([8, 8], 1, False), ([8, 8], 2, True), ([], 0, True)])
def test_the_number_of_kernels_is_a_limit(extents, most, keeps):
    assert tir.analysis.verify_gpu_code(launches(*extents), {"max_kernels": most}) is keeps


def test_an_axis_with_two_numbers_of_threads_keeps_to_no_limit():
    assert tir.analysis.verify_gpu_code(launches(8), {"max_threads_per_block": 8})
    assert not tir.analysis.verify_gpu_code(launches(8, nested=True), {"max_threads_per_block": 1024})


# --- checks -----------------------------------------------------------------------------------------------------------

def shifted(ib, a, b):
    """Reads one element too far, in loops of each kind."""
    with ib.for_range(0, 2, "i", kind="parallel") as i, ib.for_range(0, 4, "j", kind="vectorize") as j:
        b[i * 4 + j] = a[i * 4 + j + 1]


def test_a_function_with_checks_is_built_and_tells_which_element():
    mod = written(shifted, *arrays(8))
    with pytest.raises(LoweringError, match="is outside: A has the indices 0 to 7"):
        tedsl.build(mod)
    with pytest.raises(AccessError, match=r"reads A\[8\](.|\n)*i = 1, j = 3"):
        tedsl.build(T.InstrumentBoundCheckers()(mod))(numbers(8), np.zeros(8, "float32"))

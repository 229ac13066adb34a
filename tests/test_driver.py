"""lower and build end to end: a formula becomes a module, called with numpy arrays."""

import gc
import os
import threading

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError, TedslError, with_article
from tedsl.ir.func import IRModule
from tedsl.ir.stmt import For
from tedsl.ir.walk.visitor import post_order


def added(n, dtype="float32", m=None):
    """C = A + B of shape (n,) or (n, m), and its schedule."""
    shape = (n,) if m is None else (n, m)
    a, b = te.placeholder(shape, dtype, name="A"), te.placeholder(shape, dtype, name="B")
    c = te.compute(shape, lambda *i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c]


def f32(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def test_vector_add():
    s, args = added(100)
    kernel = tedsl.build(s, args)
    a, b, c = f32(100), f32(100, seed=1), np.zeros(100, np.float32)
    assert kernel(a, b, c) is None
    np.testing.assert_array_equal(c, a + b)


def test_row_sum_of_symbolic_shape_with_any_strides():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    kernel = tedsl.build(te.create_schedule(b.op), [a, b])
    for data in (f32(7, 9), f32(9, 7).T, f32(14, 18)[::2, ::-2], f32(0, 5), f32(5, 0)):
        out = np.full(data.shape[0], 7, np.float32)
        kernel(data, out)
        np.testing.assert_allclose(out, data.sum(axis=1), rtol=1e-5)
    strided = np.zeros(14, np.float32)
    kernel(f32(7, 9), strided[::2])
    np.testing.assert_allclose(strided[::2], f32(7, 9).sum(axis=1), rtol=1e-5)
    assert not strided[1::2].any()


def tiled_matmul(n, block=16):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    packed = te.compute((n // block, n, block), lambda x, y, z: b[y, x * block + z], name="packed")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * packed[j // block, k, j % block], axis=k), name="C")
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "global")
    _, no, _, ni = s[c].tile(*s[c].op.axis, 4, block)
    s[cache].compute_at(s[c], no)
    ko, ki = s[cache].split(s[cache].op.reduce_axis[0], factor=4)
    mc, nc = s[cache].op.axis
    s[cache].reorder(ko, ki, mc, nc)
    s[cache].vectorize(nc)
    s[cache].unroll(mc)
    s[c].vectorize(ni)
    s[packed].vectorize(s[packed].op.axis[2])
    s[packed].parallel(s[packed].op.axis[0])
    s[c].parallel(s[c].leaf_iter_vars[0])
    return s, [a, b, c]


def test_tiled_packed_parallel_matmul():
    kernel = tedsl.build(*tiled_matmul(64))
    a, b, c = f32(64, 64), f32(64, 64, seed=1), np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def test_results_do_not_depend_on_the_number_of_threads():
    kernel = tedsl.build(*tiled_matmul(96))
    a, b = f32(96, 96), f32(96, 96, seed=1)
    before, results = tedsl.get_num_threads(), set()
    for threads in (1, 2, 5):
        tedsl.set_num_threads(threads)
        c = np.zeros((96, 96), np.float32)
        kernel(a, b, c)
        results.add(c.tobytes())
    tedsl.set_num_threads(before)
    assert len(results) == 1


def test_the_loops_of_simple_mode_print():
    s, args = added(8)
    assert "for (i0: int32, 0, 8) {\n    C_2[i0] = ((float32*)A_2[i0] + (float32*)B_2[i0])\n  }" in \
        str(tedsl.lower(s, args, simple_mode=True))


def test_lower_leaves_the_schedule_as_it_was():
    s, args = added(10)
    s[args[2]].split(s[args[2]].op.axis[0], 4)
    assert str(tedsl.lower(s, args)) == str(tedsl.lower(s, args))


@pytest.mark.parametrize("size", [0, 1, 7, 64, 1000])
def test_shapes_solved_for_their_variable(size):
    n = te.var("n")
    a = te.placeholder((n + 1,), name="A")
    c = te.compute((n * 2,), lambda i: a[i // 2] + 1.0, name="C")
    kernel = tedsl.build(te.create_schedule(c.op), [a, c])
    data, out = f32(size + 1), np.zeros(2 * size, np.float32)
    kernel(data, out)
    np.testing.assert_array_equal(out, np.repeat(data[:size], 2) + np.float32(1))
    with pytest.raises(ArgumentError, match="needs"):
        kernel(data, np.zeros(2 * size + 2, np.float32))


def test_scalar_arguments():
    x, k = te.var("x", "float32"), te.var("k")
    a = te.placeholder((8,), name="A")
    c = te.compute((8,), lambda i: a[i] * x + k.astype("float32"), name="C")
    kernel = tedsl.build(te.create_schedule(c.op), [a, x, k, c])
    out = np.zeros(8, np.float32)
    kernel(f32(8), 2.5, 3, out)
    np.testing.assert_allclose(out, f32(8) * 2.5 + 3, rtol=1e-6)
    kernel(f32(8), np.float32(2), np.int64(1), out)
    np.testing.assert_allclose(out, f32(8) * 2 + 1, rtol=1e-6)


def test_ndarrays():
    s, args = added(16)
    kernel = tedsl.build(s, args, target="llvm", name="myadd")
    a, b = tedsl.nd.array(f32(16)), tedsl.nd.array(f32(16, seed=1), tedsl.cpu())
    c = tedsl.nd.empty((16,), "float32", tedsl.cpu(0))
    kernel(a, b, c)
    tedsl.testing.assert_allclose(c.numpy(), a.numpy() + b.asnumpy())


def test_module():
    s, args = added(16)
    module = tedsl.build(s, args, name="first")
    assert module.entry_name == "first" and module["first"] is module.get_function("first") and module.imported_modules == []
    assert "first(A, B, C)" in repr(module)
    assert "@first.kernel" in module.get_source() == module.get_source("ll")
    assert "primfn(" in module.get_source("tir") and "ret" in module.get_source("asm")
    with pytest.raises(OptionError, match="no function 'second'; it has: first"):
        module["second"]
    with pytest.raises(AttributeError):
        module.get_function("second")
    with pytest.raises(ArgumentError, match="no format 'exe'"):
        module.get_source("exe")


def test_time_evaluator():
    s, args = added(16)
    module = tedsl.build(s, args)
    a, b, c = f32(16), f32(16), np.zeros(16, np.float32)
    result = module.time_evaluator(module.entry_name, tedsl.cpu(), number=5, repeat=3)(a, b, c)
    assert len(result.results) == 3 and 0 < result.min <= result.median <= result.max and result.std >= 0
    np.testing.assert_array_equal(c, a + b)
    long = module.time_evaluator(module.entry_name, tedsl.cpu(), number=1, min_repeat_ms=5)(a, b, c)
    assert long.mean < 1e-3
    with pytest.raises(ArgumentError, match="has shape"):
        module.time_evaluator(module.entry_name, tedsl.cpu())(a, b, c[:3])
    with pytest.raises(ArgumentError, match="number is an int of at least 1"):
        module.time_evaluator(module.entry_name, tedsl.cpu(), number=0)(a, b, c)
    with pytest.raises(ArgumentError, match="no device cuda"):
        module.time_evaluator(module.entry_name, tedsl.cuda())


def test_several_functions_in_one_module():
    both = IRModule()
    for name, n in (("small", 4), ("large", 40)):
        s, args = added(n)
        both.update(tedsl.lower(s, args, name=name))
    listed = [both["small"], IRModule({"large": both["large"]})]
    for inputs in (both, listed, tuple(listed), {"llvm": listed}):
        module = tedsl.build(inputs, target="llvm")
        for name, n in (("small", 4), ("large", 40)):
            c = np.zeros(n, np.float32)
            module[name](f32(n), f32(n), c)
            np.testing.assert_array_equal(c, f32(n) * 2)
        assert module.entry_name == "small"


def test_functions_and_dicts_are_built_too():
    s, args = added(4)
    lowered = tedsl.lower(s, args, name="f")
    for inputs in (lowered, lowered["f"], {"llvm": lowered}):
        c = np.zeros(4, np.float32)
        tedsl.build(inputs)(f32(4), f32(4), c)
        np.testing.assert_array_equal(c, f32(4) * 2)
    before_passes = tedsl.driver.schedule_to_module(s, args, "g")
    c = np.zeros(4, np.float32)
    tedsl.build(before_passes)(f32(4), f32(4), c)
    np.testing.assert_array_equal(c, f32(4) * 2)


def test_lowering_what_is_lowered_changes_nothing_of_the_result():
    s, args = tiled_matmul(64)
    a, b = f32(64, 64), f32(64, 64, seed=1)
    results = set()
    for inputs in ((s, args), (tedsl.lower(s, args),), (tedsl.lower(s, args, simple_mode=True),)):
        c = np.zeros((64, 64), np.float32)
        tedsl.build(*inputs)(a, b, c)
        results.add(c.tobytes())
    assert len(results) == 1


def test_in_place_under_noalias_false():
    s, (a, b, c) = added(64)
    with tedsl.transform.PassContext(config={"tir.noalias": False}):
        kernel = tedsl.build(s, [a, b, c])
    data = f32(64)
    kernel(data, data, data)
    np.testing.assert_array_equal(data, f32(64) * 2)
    assert "noalias" not in kernel.get_source()
    with pytest.raises(ArgumentError, match="overlaps"):
        tedsl.build(s, [a, b, c])(data, data, data)


@pytest.mark.parametrize("target, words", [("llvm -mtriple=aarch64-linux-gnu", "lacks"),
                                           ("llvm -mcpu=x86-64 -mattr=+avxvnni,+avx512fp16,+sve", "lacks")])
def test_code_for_other_machines_shows_and_does_not_run(target, words):
    try:
        made = tedsl.Target(target)
    except ArgumentError:
        pytest.skip("features of one architecture only")
    if made.runs_here:
        pytest.skip("this machine runs it")
    s, args = added(64)
    s[args[2]].vectorize(s[args[2]].split(s[args[2]].op.axis[0], 4)[1])
    module = tedsl.build(s, args, target=made)
    assert "default_function.kernel" in module.get_source("asm")
    assert "does not run here" in repr(module)
    c = np.zeros(64, np.float32)
    with pytest.raises(TedslError, match=words):
        module(f32(64), f32(64), c)
    with pytest.raises(TedslError, match=words):
        module.time_evaluator("default_function", tedsl.cpu())
    assert not c.any()


@pytest.mark.parametrize("kind", ["vulkan", "metal", "hexagon"])
def test_kinds_without_a_backend(kind):
    s, args = added(8)
    with pytest.raises(TedslError, match=rf"no code generator for the device '{kind}'(.|\n)*target=\"llvm\""):
        tedsl.build(s, args, target=kind)


@pytest.mark.parametrize("call, words", [
    (lambda s, args: tedsl.build(s), "a schedule is lowered with its arguments"),
    (lambda s, args: tedsl.build(s, args[0]), "args is a list of tensors"),
    (lambda s, args: tedsl.build(args[0]), "a Schedule, a PrimFunc or an IRModule is needed, not Tensor"),
    (lambda s, args: tedsl.build([3]), "a list of functions holds IRModules and PrimFuncs, not an int"),
    (lambda s, args: tedsl.build(args), "a list of functions holds IRModules and PrimFuncs, not a Tensor"),
    (lambda s, args: tedsl.build([tedsl.lower(s, args)] * 2), "two functions of the list are called 'main'"),
    (lambda s, args: tedsl.build([tedsl.lower(s, args)], "llvm", "llvm"),
     r'have arguments already\n.*build\(..., target="llvm"\)'),
    (lambda s, args: tedsl.build(tedsl.lower(s, args), "x87"), "no target kind 'x87'"),
    (lambda s, args: tedsl.build(s, args, name=""), "the name of a function"),
    (lambda s, args: tedsl.build(IRModule()), "no functions"),
    (lambda s, args: tedsl.build({"llvm": tedsl.lower(s, args), "cuda": tedsl.lower(s, args)}), "2 targets"),
])
def test_wrong_inputs(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(*added(8))


@pytest.mark.parametrize("name, words", [
    ("int", "an int"), ("Tensor", "a Tensor"), ("IRModule", "an IRModule"), ("NDArray", "an NDArray"),
    ("ndarray", "an ndarray"),
    ("DType", "a DType"), ("UInt", "a UInt"),
])
def test_articles_of_types(name, words):
    assert with_article(name) == words


def test_args_beside_a_module_are_ignored_with_a_warning():
    s, args = added(8)
    module = tedsl.lower(s, args)
    for inputs in (module, module["main"], [module]):
        with pytest.warns(UserWarning, match=r"args are ignored: .* arguments already") as said:
            kernel = tedsl.build(inputs, args)
        assert said[0].filename == __file__
        out = np.zeros(8, "float32")
        kernel["main"](f32(8), f32(8), out)
        assert out.any()


def test_an_output_that_no_argument_takes_is_named(recwarn):
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule([b.op, c.op])
    tedsl.lower(s, [a])
    tedsl.build(te.create_schedule(c.op), [a, c])  # B is no output of this one
    s.cache_write(c, "local")
    tedsl.build(s, [a, b, c])
    tedsl.build(s, [a, c])
    assert [str(w.message) for w in recwarn] == [
        "build: B is computed and dropped: it is an output of the schedule and not an argument; add it to the arguments, "
        "build(s, [..., B])"]
    assert recwarn[0].filename == __file__ and issubclass(recwarn[0].category, UserWarning)


def test_a_call_from_several_threads_at_once():
    kernel = tedsl.build(*tiled_matmul(64))
    a, b = f32(64, 64), f32(64, 64, seed=1)
    wrong = []

    def work():
        for _ in range(20):
            c = np.zeros((64, 64), np.float32)
            kernel(a, b, c)
            if not np.allclose(c, a @ b, rtol=1e-4):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_builds_from_several_threads_at_once():
    results = []

    def work(n):
        s, args = added(n)
        c = np.zeros(n, np.float32)
        tedsl.build(s, args)(f32(n), f32(n), c)
        results.append(np.array_equal(c, f32(n) * 2))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3, 15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 12


def test_a_forked_child_runs_parallel_kernels():
    kernel = tedsl.build(*tiled_matmul(64))
    a, b, c = f32(64, 64), f32(64, 64, seed=1), np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    child = os.fork()
    if child == 0:
        again = np.zeros((64, 64), np.float32)
        kernel(a, b, again)
        os._exit(0 if again.tobytes() == c.tobytes() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_outlives_its_module():
    s, args = added(8)
    function = tedsl.build(s, args)["default_function"]
    gc.collect()
    c = np.zeros(8, np.float32)
    function(f32(8), f32(8), c)
    np.testing.assert_array_equal(c, f32(8) * 2)


def test_modules_built_and_dropped_give_the_memory_back():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    s, args = added(8)
    for _ in range(50):
        tedsl.build(s, args)
    gc.collect()
    before = resident()
    for _ in range(200):
        tedsl.build(s, args)
    gc.collect()
    assert resident() - before < 4e6


def test_a_large_temporary_that_cannot_be_had_is_a_memory_error():
    n = te.var("n", "int64")
    a = te.placeholder((1,), name="A")
    big = te.compute((n,), lambda i: a[0] + i.astype("float32"), name="big")
    c = te.compute((1,), lambda i: big[n - 1] + a[i], name="C")
    kernel = tedsl.build(te.create_schedule(c.op), [n, a, c])
    out = np.zeros(1, np.float32)
    kernel(10, f32(1), out)
    assert out[0] > 8
    before = out.copy()
    with pytest.raises(MemoryError, match="temporary buffer"):
        kernel(2**55, f32(1), out)
    assert out == before


def test_pass_context_refuses_what_it_does_not_know():
    context = tedsl.transform.PassContext
    with pytest.raises(AttributeError, match=r"no option 'tir.unroll'(.|\n)*tir.UnrollLoop"):
        context(config={"tir.unroll": {}})
    with pytest.raises(OptionError, match=r"'tir.UnrollLoop' has no key 'max'(.|\n)*auto_max_step"):
        context(config={"tir.UnrollLoop": {"max": 1}})
    with pytest.raises(OptionError, match=r"'tir.UnrollLoop.auto_max_step' is of type int, not 'many'"):
        context(config={"tir.UnrollLoop": {"auto_max_step": "many"}})
    with pytest.raises(OptionError, match=r"'tir.noalias' is of type bool, not 'no'"):
        context(config={"tir.noalias": "no"})
    with pytest.raises(OptionError, match=r"'tir.LoopPartition' is a dict with partition_const_loop"):
        context(config={"tir.LoopPartition": True})
    with pytest.raises(OptionError, match="pairs"):
        context(config={"tir.add_lower_pass": [(7, None)]})


def test_pass_context_reaches_the_passes_and_nests():
    s, args = added(4)
    assert any(isinstance(node, For) for node in post_order(tedsl.lower(s, args)["main"].body))
    with tedsl.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}) as outer:
        assert tedsl.PassContext.current() is outer
        assert not any(isinstance(node, For) for node in post_order(tedsl.lower(s, args)["main"].body))
        with tedsl.PassContext():
            assert any(isinstance(node, For) for node in post_order(tedsl.lower(s, args)["main"].body))
    assert tedsl.PassContext.current().config == {}


def test_lower_passes_of_the_user_run():
    seen = []

    def note(func):
        seen.append(func.name)
        return func

    s, args = added(4)
    with tedsl.PassContext(config={"tir.add_lower_pass": [(0, note), (3, note)]}):
        tedsl.lower(s, args, name="mine")
    assert seen == ["mine", "mine"]


def test_unknown_names_of_tedsl():
    with pytest.raises(AttributeError, match="no attribute 'relax'"):
        tedsl.relax
    assert {"te", "build", "nd", "TedslError"} <= set(dir(tedsl))
    assert issubclass(ArgumentTypeError, TypeError) and tedsl.TVMError is tedsl.TedslError


def test_a_condition_on_symbolic_shapes_is_checked_at_the_call():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, 2), name="A")
    c = te.compute((m, 2), lambda i, j: a[i + 3, j], name="C")
    kernel = tedsl.build(te.create_schedule(c.op), [a, c])
    out = np.zeros((5, 2), np.float32)
    kernel(f32(8, 2), out)
    np.testing.assert_array_equal(out, f32(8, 2)[3:])
    for data in (f32(7, 2), np.asfortranarray(f32(7, 2))):  # both versions
        before = out.copy()
        with pytest.raises(ArgumentError, match=r"default_function: .*C.*A|default_function: .*A"):
            kernel(data, out)
        np.testing.assert_array_equal(out, before)


def test_a_target_in_the_place_of_the_arguments_of_functions():
    x = te.placeholder((3,), name="x")
    y = te.compute((3,), lambda i: x[i] + 1, name="y")
    mod = tedsl.lower(te.create_schedule(y.op), [x, y], name="f")
    for built in (tedsl.build([mod], "llvm"), tedsl.build(mod, tedsl.target.Target("llvm"))):
        out = np.zeros(3, "float32")
        built["f"](np.ones(3, "float32"), out)
        np.testing.assert_array_equal(out, 2)

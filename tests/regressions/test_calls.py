"""What calls, modules and options once did wrong."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError, ScheduleError, TedslError

ROOT = Path(__file__).parents[2]


def doubled(n=16):
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] * 2, name="C")
    return te.create_schedule(c.op), a, c


def runs(kernel):
    out = np.zeros(16, "float32")
    kernel(np.ones(16, "float32"), out)
    return bool((out == 2).all())


# --- arguments of a call ----------------------------------------------------------------------------------------------

def test_a_class_is_no_array():
    s, a, c = doubled()
    with pytest.raises(ArgumentTypeError, match=r"argument 1 \(A\) is an array, type .*was given"):
        tedsl.build(s, [a, c])(np.ndarray, np.zeros(16, "float32"))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8"])
def test_numpy_s_bool_is_a_number_as_python_s_is(dtype):
    x = te.var("x", dtype)
    c = te.compute((1,), lambda i: x.astype("int32"), name="C")
    f, out = tedsl.build(te.create_schedule(c.op), [x, c]), np.zeros(1, "int32")
    f(np.True_, out)
    assert out[0] == 1


def test_a_number_beyond_int64_gets_no_hint_to_use_int64():
    x = te.var("x", "int64")
    c = te.compute((1,), lambda i: x, name="C")
    with pytest.raises(ArgumentError, match="does not fit int64") as caught:
        tedsl.build(te.create_schedule(c.op), [x, c])(2**63, np.zeros(1, "int64"))
    assert "hint" not in str(caught.value)


def test_shapes_of_empty_are_ints():
    with pytest.raises(ArgumentTypeError, match="made of ints"):
        tedsl.nd.empty((1.5,))


# --- modules ----------------------------------------------------------------------------------------------------------

def test_errors_of_schedules_travel_between_processes():
    s, _, c = doubled()
    with pytest.raises(ScheduleError) as caught:
        s[c].split(c.op.axis[0], factor=0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.loops) == (ScheduleError, str(caught.value), caught.value.loops)
    assert str(copy.deepcopy(caught.value)) == str(caught.value)


def test_machine_code_cannot_be_pickled_and_says_so():
    s, a, c = doubled()
    module = tedsl.build(s, [a, c])
    for what in (module, module["default_function"]):
        with pytest.raises(ArgumentTypeError, match=r"machine code of this process(.|\n)*IRModule"):
            pickle.dumps(what)
    assert copy.copy(module) is module and copy.deepcopy(module) is module


@pytest.mark.parametrize("name", ["1x", 'q"uo\\te', "new\nline", "naïve", "a b", "%d", "@x"])
def test_any_name_of_a_function(name):
    s, a, c = doubled()
    assert runs(tedsl.build(s, [a, c], name=name)[name])


def test_a_name_with_nul_is_refused():
    s, a, c = doubled()
    with pytest.raises(ArgumentError, match="NUL"):
        tedsl.build(s, [a, c], name="a\0b")


@pytest.mark.parametrize("dev", ["cpu", 3])
def test_the_timer_wants_a_device(dev):
    s, a, c = doubled()
    with pytest.raises(ArgumentTypeError, match=r"dev is a Device(.|\n)*cpu\(\)"):
        tedsl.build(s, [a, c]).time_evaluator("default_function", dev)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_timer_wants_a_finite_time(value):
    s, a, c = doubled()
    timer = tedsl.build(s, [a, c]).time_evaluator("default_function", tedsl.cpu(), min_repeat_ms=value)
    with pytest.raises(ArgumentError, match="min_repeat_ms"):
        timer(np.ones(16, "float32"), np.zeros(16, "float32"))


# --- targets ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("target", ["llvm -mtriple=x86_64-pc-windows-msvc", "llvm -mtriple=arm64-apple-darwin"])
def test_code_for_another_system_is_shown_and_does_not_run(target):
    s, a, c = doubled()
    module = tedsl.build(s, [a, c], target=target)
    assert "define" in module.get_source() and module.get_source("asm")
    with pytest.raises(TedslError, match=r"lacks (x86-64 windows|aarch64 darwin): it is"):
        runs(module)


def test_an_unknown_machine_is_refused():
    s, a, c = doubled()
    with pytest.raises(ArgumentError, match=r"cannot generate code for the triple 'nonsense'(.|\n)*-mtriple="):
        tedsl.build(s, [a, c], target="llvm -mtriple=nonsense")


def test_without_llvmlite_lower_works_and_build_says_what_is_missing():
    program = ("import sys; sys.modules['llvmlite'] = None\n"
               "import tedsl; from tedsl import te\n"
               "A = te.placeholder((4,), name='A'); B = te.compute((4,), lambda i: A[i] + 1, name='B')\n"
               "s = te.create_schedule(B.op); print(tedsl.lower(s, [A, B]))\n"
               "try: tedsl.build(s, [A, B], target=sys.argv[1] or None)\n"
               "except tedsl.TedslError as e: print(e)\n")
    for target in ("", "llvm -mcpu=haswell"):
        done = subprocess.run([sys.executable, "-c", program, target], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert "primfn" in done.stdout and "llvmlite, which is missing" in done.stdout, done.stderr
        assert "pip install llvmlite" in done.stdout


# --- options ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, words", [
    ({"config": "tir.noalias"}, "config is a dict"),
    ({"opt_level": "3"}, "'opt_level' is of type int"),
    ({"disabled_pass": "tir.UnrollLoop"}, "list of names of passes"),
    ({"required_pass": [3]}, "list of names of passes"),
])
def test_options_of_the_wrong_type(options, words):
    with pytest.raises(OptionError, match=words):
        tedsl.transform.PassContext(**options)


def test_a_pass_that_returns_nothing_is_named():
    def forgetful(func):
        return None

    s, a, c = doubled()
    context = tedsl.transform.PassContext(config={"tir.add_lower_pass": [(0, forgetful)]})
    with context, pytest.raises(ArgumentTypeError, match=r"forgetful of tir\.add_lower_pass returned None"):
        tedsl.lower(s, [a, c])


# --- buffers of the caller's ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, dtype", [((15,), "float32"), ((17,), "float32"), ((4, 4), "float32"), ((16,), "float64")])
def test_a_buffer_that_does_not_fit_its_tensor(shape, dtype):
    s, a, c = doubled()
    with pytest.raises(LoweringError, match=r"the buffer Ab has shape(.|\n)*A.shape"):
        tedsl.build(s, [a, c], binds={a: tir.decl_buffer(shape, dtype, name="Ab")})


@pytest.mark.parametrize("binds", [3, {"A": 3}, {3: None}])
def test_binds_maps_tensors_to_buffers(binds):
    s, a, c = doubled()
    with pytest.raises(LoweringError, match="binds is a dict from tensors to buffers"):
        tedsl.lower(s, [a, c], binds=binds)


def test_a_buffer_of_another_symbolic_size_is_checked_at_the_call():
    s, a, c = doubled()
    f = tedsl.build(s, [a, c], binds={a: tir.decl_buffer((te.var("m"),), name="Ab")})
    assert runs(f)
    out = np.zeros(16, "float32")
    with pytest.raises(ArgumentError, match="dimension 0 of Ab is m, that of A 16"):
        f(np.ones(4, "float32"), out)
    assert not out.any()


@pytest.mark.parametrize("names, words", [(["llvm.exp.f32"], "LLVM's own"), (["f.compact", "f"], "cannot hold 'f' and")])
def test_names_that_mean_something_else_are_refused(names, words):
    # the first ended the process
    s, a, c = doubled()
    func = tedsl.lower(s, [a, c])["main"]
    with pytest.raises(ArgumentError, match=words):
        tedsl.build(tedsl.IRModule(dict.fromkeys(names, func)))


# --- functions written by hand -----------------------------------------------------------------------------------------

def test_a_function_that_uses_what_it_does_not_bind():
    a, z = tir.decl_buffer((16,), "int32", name="A"), tir.decl_buffer((16,), "int32", name="Z")
    handle, q = tir.Var("A", "handle"), te.var("q")
    zero = tir.IntImm("int32", 0)
    for value, name in ((q, "q"), (tir.BufferLoad(z, [zero]), "Z")):
        func = tir.PrimFunc([handle], tir.BufferStore(a, value, [zero]), None, {handle: a})
        for made in (func, tedsl.IRModule({"f": func})):
            with pytest.raises(LoweringError, match=f"use {name}, and no argument"):
                tedsl.build(made)


@pytest.mark.parametrize("kind", [tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED])
@pytest.mark.parametrize("shared", ["variable", "loop"])
def test_one_variable_in_several_loops(kind, shared):
    # the second parallel loop began where the first had ended, and wrote behind the array
    a, handle, i = tir.decl_buffer((10,), "int32", name="A"), tir.Var("A", "handle"), tir.Var("i", "int32")
    zero, ten = tir.IntImm("int32", 0), tir.IntImm("int32", 10)

    def loop(kind):
        return tir.For(i, zero, ten, kind, tir.BufferStore(a, i + tir.BufferLoad(a, [i]), [i]))

    one = loop(kind)
    parts = [one, one, one] if shared == "loop" else [loop(kind), loop(tir.ForKind.SERIAL), loop(kind)]
    guarded = np.zeros(64, "int32")
    tedsl.build(tir.PrimFunc([handle], tir.SeqStmt(parts), None, {handle: a}))(guarded[:10])
    np.testing.assert_array_equal(guarded[:10], 3 * np.arange(10))
    assert not guarded[10:].any()


@pytest.mark.parametrize("sizes", [(100, 3), (3, 100)])
def test_shapes_of_one_name_are_checked_each(sizes):
    """Two conditions with one text were taken for one, and the other tensor was read beyond its end."""
    n, first, second = te.size_var("n"), te.size_var("m"), te.size_var("m")
    A, B = te.placeholder((first,), name="A"), te.placeholder((second,), name="B")
    C = te.compute((n,), lambda i: A[i + 1] + B[i + 1], name="C")
    kernel = tedsl.build(te.create_schedule(C.op), [A, B, C])
    a, b = (np.zeros(size, "float32") for size in sizes)
    with pytest.raises(ArgumentError, match=r"reads [AB]\[i \+ 1\]"):
        kernel(a, b, np.zeros(5, "float32"))

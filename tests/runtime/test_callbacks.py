"""Python functions called by kernels: what they get, what comes back, exceptions from any thread, nothing left behind."""

import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, OptionError
from tedsl.ir.builder import create
from tedsl.ir.evaluate import run
from tedsl.ir.functions import registered
from tedsl.runtime.functions import PackedFunc, list_global_func_names, remove_global_func
from tests.lower.written.programs import both, function
from tests.one_stage import added

n = te.var("n")
A = tir.decl_buffer((n,), "float32", "A")
B = tir.decl_buffer((n,), "int64", "B")


@pytest.fixture
def register():
    """Registers functions, and forgets them after the test."""
    names = []

    def add(function, name="test.f"):
        tedsl.register_func(name, function, override=True)
        names.append(name)

    yield add
    for name in dict.fromkeys(names):
        remove_global_func(name)


def calling(write, *buffers, scalars=()):
    ib = create()
    write(ib, *map(ib.buffer_ptr, buffers))
    return function(ib.get(), *buffers, scalars=scalars)


def test_numbers_strings_and_buffers_arrive(register):
    seen = []
    register(lambda *args: seen.append([a.numpy().tolist() if isinstance(a, tedsl.nd.NDArray) else a for a in args]))

    def write(ib, a):
        ib.emit(tir.call_packed("test.f", 5, -1, 2.5, "größe", a[1], A, tir.const(2**63, "uint64"), a[0] > 0.5,
                                tir.const(-3, "int8"), tir.const(1.5, "float64")))
    args = [5, -1, 2.5, "größe", 8.0, [7.0, 8.0], 2**63, True, -3, 1.5]
    both(calling(write, A), np.array([7, 8], "float32"))
    assert seen == [args, args]  # once by the interpreter, once compiled
    assert type(seen[1][0]) is int and type(seen[1][7]) is bool and type(seen[1][2]) is float


def answered(register, dtype, answer):
    """What a function that returns `answer` gives a program that takes a `dtype` from it."""
    register(lambda: answer)
    out = tir.decl_buffer((1,), dtype, "out")

    def write(ib, o):
        o[0] = tir.call_intrin(dtype, "tir.call_packed", "test.f")
    result, = both(calling(write, out), np.zeros(1, dtype))
    return result[0]


@pytest.mark.parametrize("dtype, value", [("int32", -7), ("int64", 2**40), ("float32", 1.5), ("float64", 1e300), ("bool", True),
                                          ("uint8", 200)])
def test_numbers_come_back(register, dtype, value):
    assert answered(register, dtype, value) == value


def test_none_is_zero_and_other_objects_are_refused(register):
    def write(ib, b):
        b[0] = tir.call_packed("test.f").astype("int64")
    kernel = tedsl.build(calling(write, B))
    register(lambda: None)
    out = np.ones(1, "int64")
    kernel(out)
    assert out[0] == 0
    register(lambda: "text")
    with pytest.raises(TypeError, match=r"test.f returned 'text', and the program uses it as a number\n  hint: "):
        kernel(out)
    with pytest.raises(TypeError, match=r"test.f returned 'text', and the program uses it as a number\n  hint: "):
        run(calling(write, B), [out])
    register(lambda: np.zeros(3))
    with pytest.raises(TypeError, match=r"test.f returned array\(\[0., 0., 0.\]\), and the program uses it as a number"):
        kernel(out)


@pytest.mark.parametrize("answer", ["text", np.zeros(3), None, {}, 2.5, lambda: 1])
def test_what_a_call_that_stands_alone_returns_is_ignored(register, answer):
    """As functions that end in `y.copyfrom(...)`, which returns the array."""
    def add_one(x, y):
        y.copyfrom(x.numpy() + 1)
        return answer
    register(add_one)
    source = te.placeholder((4,), name="S")
    result = te.extern((4,), [source], lambda ins, outs: tir.call_packed("test.f", ins[0], outs[0]), name="R", dtype="float32")
    s = te.create_schedule(result.op)
    x = np.arange(4, dtype="float32")
    for kernel in (tedsl.build(s, [source, result]), lambda *args: run(tedsl.lower(s, [source, result])["main"], args)):
        y = np.zeros(4, "float32")
        kernel(x, y)
        np.testing.assert_array_equal(y, x + 1)


def test_arrays_are_the_memory_itself(register):
    strided = tir.decl_buffer((n, 3), "float32", "S", strides=[te.var("s0"), te.var("s1")])

    def double(x, y):
        assert x.shape == (2, 3)
        y[:] = 2 * x.numpy()
    register(double)
    out = tir.decl_buffer((n, 3), "float32", "out")
    f = calling(lambda ib, s, o: ib.emit(tir.call_packed("test.f", strided, out)), strided, out)
    x, y = np.arange(12, dtype="float32").reshape(4, 3)[::-2], np.zeros((2, 3), "float32")
    tedsl.build(f)(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_memory_of_the_kernel_and_what_is_stored_before_and_read_after(register):
    def add_one(t):
        t[:] = t.numpy() + 1
    register(add_one)

    def write(ib, a):
        t = ib.allocate("float32", 4, "t")
        with ib.for_range(0, n, "i") as i:
            with ib.for_range(0, 4, "k") as k:
                t[k] = a[i]
            a[i] = 0.0
            with ib.for_range(0, 4, "k") as k:
                ib.emit(tir.call_packed("test.f", t))
                a[i] = a[i] + t[k]
    result, = both(calling(write, A), np.array([10, 20], "float32"))
    assert result.tolist() == [4 * 10 + 1 + 2 + 3 + 4, 4 * 20 + 10]


def test_a_kept_array_becomes_a_copy_and_a_kept_view_is_refused(register):
    kept = []
    register(kept.append)
    kernel = tedsl.build(calling(lambda ib, a: ib.emit(tir.call_packed("test.f", A)), A))
    data = np.ones(3, "float32")
    kernel(data)
    data[:] = 2
    assert kept[0].numpy().tolist() == [1, 1, 1]
    register(lambda x: kept.append(np.asarray(x)))
    with pytest.raises(ArgumentError, match=r"test.f kept a view of an array of the kernel"):
        kernel(data)


# --- exceptions -----------------------------------------------------------------------------------------------------

class Odd(Exception):
    pass


def raising(kind, **options):
    def write(ib, a):
        with ib.for_range(0, n, "i", kind=kind) as i:
            t = ib.allocate("float32", n * 4096, "t")
            t[0] = 1.0
            ib.emit(tir.call_packed("test.f", i))
            a[i] = t[0]
    return tedsl.build(calling(write, A))


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_an_exception_comes_back_as_it_is(register, kind):
    def fail(i):
        if i % 2:
            raise Odd(i)
    register(fail)
    kernel = raising(kind)
    for _ in range(20):
        with pytest.raises(Odd) as caught:
            kernel(np.zeros(64, "float32"))
        assert caught.value.args[0] % 2 == 1
        names = [frame.name for frame in caught.traceback]
        assert "fail" in names
    register(lambda i: None)
    data = np.zeros(64, "float32")
    kernel(data)  # the pool and the workspaces are as they were
    assert data.sum() == 64


def test_exceptions_of_all_threads_are_given_back(register):
    alive = weakref.WeakSet()

    def fail(i):
        error = Odd(i)
        alive.add(error)
        raise error
    register(fail)
    kernel = raising("parallel")
    for _ in range(10):
        with pytest.raises(Odd):
            kernel(np.zeros(64, "float32"))
    gc.collect()
    assert not alive


def test_objects_are_not_leaked(register):
    register(lambda x, text, k: None)

    def write(ib, a):
        with ib.for_range(0, 100, "i", kind="parallel") as i:
            ib.emit(tir.call_packed("test.f", A, "text", i))
    kernel = tedsl.build(calling(write, A))
    data = np.zeros(8, "float32")
    for _ in range(3):
        kernel(data)
    before = sys.getallocatedblocks()
    for _ in range(20):
        kernel(data)
    assert abs(sys.getallocatedblocks() - before) < 500


def test_a_worker_keeps_the_state_that_python_has_for_its_thread(register):
    """A state made and deleted by each call would lock the list of states, which before Python 3.12 a fork finds locked."""
    kept, begun, seen = threading.local(), threading.Event(), []

    def act(i):
        if i == 32:
            begun.set()
        if i == 0:
            assert begun.wait(60)  # or this thread would take the worker's part, too
        kept.calls = getattr(kept, "calls", 0) + 1
        seen.append((i, kept.calls))
    register(act)

    def write(ib, a):
        with ib.for_range(0, 64, "i", kind="parallel") as i:
            ib.emit(tir.call_packed("test.f", i))
    threads = tedsl.get_num_threads()
    tedsl.set_num_threads(2)
    try:
        tedsl.build(calling(write, A))(np.zeros(8, "float32"))
    finally:
        tedsl.set_num_threads(threads)
    assert sorted(seen) == [(i, i % 32 + 1) for i in range(64)]


def test_the_checked_way_and_the_timer_raise_it_too(register):
    def fail(i):
        raise Odd(i)
    register(fail)
    kernel = raising("parallel")
    with pytest.raises(Odd):
        kernel(np.zeros(64, "float32")[::1].astype(">f4").astype("float32"))
    with pytest.raises(Odd):
        kernel(memoryview(np.zeros(64, "float32")))  # no numpy array: by way of Python
    with pytest.raises(Odd):
        kernel.time_evaluator("f", number=3)(np.zeros(64, "float32"))


def test_a_kernel_calls_a_kernel(register):
    def inner_fails(i):
        raise Odd("inner")
    register(inner_fails, "test.inner")
    inner = tedsl.build(calling(lambda ib, a: ib.emit(tir.call_packed("test.inner", 0)), A))

    def outer(x):
        with pytest.raises(Odd, match="inner"):
            inner(np.zeros(1, "float32"))
        raise KeyError("outer")
    register(outer)
    kernel = tedsl.build(calling(lambda ib, a: ib.emit(tir.call_packed("test.f", A)), A))
    with pytest.raises(KeyError, match="outer"):
        kernel(np.zeros(1, "float32"))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of POSIX")
@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_ctrl_c_ends_a_kernel_that_calls_python(register, kind):
    register(lambda i: None)

    def write(ib, a):
        with ib.for_range(0, 100_000_000, "i", kind=kind) as i:
            ib.emit(tir.call_packed("test.f", i))
    kernel = tedsl.build(calling(write, A))
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        if kind == "serial":
            with pytest.raises(KeyboardInterrupt):
                kernel(np.zeros(1, "float32"))
        else:
            done = threading.Event()  # only the main thread gets signals; the others go on until it tells them
            register(lambda i: (_ for _ in ()).throw(KeyboardInterrupt) if done.is_set() else done.wait(0.3) or done.set())
            with pytest.raises(KeyboardInterrupt):
                kernel(np.zeros(1, "float32"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_other_threads_call_kernels_at_the_same_time(register):
    def fail(i):
        raise Odd(threading.get_ident())
    register(fail)
    kernel, wrong = raising("serial"), []

    def work():
        for _ in range(50):
            try:
                kernel(np.zeros(4, "float32"))
            except Odd as error:
                if error.args[0] != threading.get_ident():
                    wrong.append(error)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- the register ---------------------------------------------------------------------------------------------------

def test_names():
    @tedsl.register_func("test.named")
    def one():
        return 1

    @tedsl.register_func
    def test_bare_name():
        return 2
    try:
        assert tedsl.get_global_func("test.named")() == 1 and tedsl.get_global_func("test_bare_name")() == 2
        assert isinstance(tedsl.get_global_func("test.named"), PackedFunc) and one() == 1
        assert "test.named" in list_global_func_names()
        with pytest.raises(ArgumentError, match=r"there is a function 'test.named' already(.|\n)*override=True"):
            tedsl.register_func("test.named", one)
        tedsl.register_func("test.named", lambda: 3, override=True)
        assert tedsl.get_global_func("test.named")() == 3
    finally:
        remove_global_func("test.named")
        remove_global_func("test_bare_name")
    assert tedsl.get_global_func("test.named", allow_missing=True) is None
    with pytest.raises(ValueError, match=r"no function is registered as 'test.named'"):
        tedsl.get_global_func("test.named")


def test_a_name_that_nobody_registered():
    kernel = tedsl.build(calling(lambda ib, a: ib.emit(tir.call_packed("test.missing", 1)), A))
    with pytest.raises(OptionError, match=r"no Python function is registered as 'test.missing'(.|\n)*register_func"):
        kernel(np.zeros(1, "float32"))


# --- te.extern ------------------------------------------------------------------------------------------------------

def test_an_operation_computed_by_a_python_function(register):
    def multiply(a, b, c):
        c[:] = a.numpy() @ b.numpy()
    register(multiply)
    X = te.placeholder((n, n), name="X")
    Y = te.extern((n, n), [X, X], lambda ins, outs: tir.call_packed("test.f", ins[0], ins[1], outs[0]), dtype="float32")
    Z = te.compute((n, n), lambda i, j: Y[i, j] + 1.0, name="Z")
    kernel = tedsl.build(te.create_schedule(Z.op), [X, Z])
    x, z = np.random.default_rng(0).random((5, 5), dtype="float32"), np.zeros((5, 5), "float32")
    x.flags.writeable = False  # an input stays one
    kernel(x, z)
    np.testing.assert_allclose(z, x @ x + 1, rtol=1e-6)


def test_inputs_cannot_be_written(register):
    def spoil(a, b):
        a[:] = 0
    register(spoil)
    X = te.placeholder((n,), name="X")
    Y = te.extern((n,), [X], lambda ins, outs: tir.call_packed("test.f", ins[0], outs[0]), dtype="float32")
    kernel = tedsl.build(te.create_schedule(Y.op), [X, Y])
    x = np.ones(3, "float32")
    with pytest.raises(ValueError, match="read-only"):
        kernel(x, np.zeros(3, "float32"))
    assert x.tolist() == [1, 1, 1]


def test_the_list_of_python_functions_has_none_of_ours():
    """A build in checked mode put tedsl.checked.fault among them."""
    tedsl.build(*added(), checked=True)
    tedsl.register_func("test.listed", lambda: None)
    try:
        with pytest.raises(tedsl.TedslError, match=r"no Python function is registered as 'test\.nothing'") as caught:
            registered("test.nothing")
        assert "test.listed" in str(caught.value) and "tedsl.checked" not in str(caught.value)
        assert "tedsl.checked.fault" not in tedsl.runtime.list_global_func_names()
    finally:
        tedsl.runtime.remove_global_func("test.listed")

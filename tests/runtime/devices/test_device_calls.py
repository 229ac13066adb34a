"""Functions whose kernels run on a device: built, called, timed, saved, refused."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, DeviceError, ModuleError, TedslError
from tests.runtime.devices.pretend import DRIVER

DEVICE = tedsl.device("pretend", 0)


def bound(s, tensor, threads=32):
    outer, inner = s[tensor].split(s[tensor].op.axis[0], threads)
    s[tensor].bind(outer, te.thread_axis("blockIdx.x"))
    s[tensor].bind(inner, te.thread_axis("threadIdx.x"))


def two_stages(n=None, **options):
    n = te.var("n") if n is None else n
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    bound(s, B)
    bound(s, C)
    return tedsl.build(s, [A, C], target="pretend", name="f", **options)


def on(values, number=0):
    return tedsl.nd.array(np.asarray(values, "float32"), tedsl.device("pretend", number))


@pytest.mark.parametrize("n", [1, 31, 32, 100])
def test_kernels_run_in_order_on_the_device_of_the_arrays(n):
    f = two_stages()
    for number in (0, 1):
        a, c = on(range(n), number), on(np.zeros(n), number)
        DRIVER.launches.clear()
        f(a, c)
        np.testing.assert_array_equal(c.numpy(), (np.arange(n) + 1) * 2)
        assert [launch[:4] for launch in DRIVER.launches] == [
            (f"f_kernel{k}", number, (-(-n // 32), 1, 1), (32, 1, 1)) for k in (0, 1)]


def test_without_elements_nothing_is_launched():
    DRIVER.launches.clear()
    two_stages()(on([]), on([]))
    assert not DRIVER.launches


def test_workspaces_are_given_back_also_after_a_failure():
    f, a, c = two_stages(), on(range(9)), on(np.zeros(9))
    before = len(DRIVER.memory)
    DRIVER.failure = "the device has burnt"
    try:
        with pytest.raises(DeviceError, match="the device has burnt"):
            f(a, c)
    finally:
        DRIVER.failure = ""
    assert len(DRIVER.memory) == before
    f(a, c)
    assert len(DRIVER.memory) == before


@pytest.mark.parametrize("make, words", [
    (lambda a, c: (a.numpy(), c), r"argument 1 \(A\) lies in the memory of the CPU(.|\n)*A = tedsl.nd.array\(A, tedsl.device"),
    (lambda a, c: (a, tedsl.nd.array(c.numpy())), r"argument 2 \(C\) lies in the memory of the CPU"),
    (lambda a, c: (a, on(c.numpy(), 1)), r"argument 2 \(C\) is an array on pretend\(1\), and argument 1 \(A\) lies on"),
    (lambda a, c: (a, 3), "argument 2 .C. is int"),
    (lambda a, c: (a,), "takes 2 arguments"),
    (lambda a, c: (a, on(np.zeros(8))),
     r"has shape \(8,\), it needs .* \(9,\)(.|\n)*tedsl.nd.empty\(\(9,\), 'float32', tedsl.device\('pretend', 0\)\)"),
    (lambda a, c: (a, on(np.zeros((3, 3)))), "has 2 dimensions"),
    (lambda a, c: (a, tedsl.nd.array(np.zeros(9), DEVICE)), r"has dtype float64, it needs float32(.|\n)*tedsl.nd.empty\(shape"),
    (lambda a, c: (tedsl.nd.array(np.zeros(9), DEVICE), c), r"needs float32(.|\n)*x.numpy\(\).astype\('float32'\), "),
    (lambda a, c: (a, a), "is an output and overlaps argument 1"),
])
def test_calls_that_do_not_fit(make, words):
    with pytest.raises(ArgumentError, match=words):
        two_stages()(*make(on(range(9)), on(np.zeros(9))))


def test_a_function_of_the_processor_refuses_arrays_of_a_device():
    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: A[i] + 1.0, name="B")
    f = tedsl.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(ArgumentTypeError, match=r"argument 1 \(A\) is an array on pretend\(0\)(.|\n)*copyto\(tedsl.cpu"):
        f(on(range(9)), np.zeros(9, "float32"))


def test_the_texts_of_host_and_device():
    f = two_stages()
    assert "f.kernel" in f.get_source()
    assert "device_api.allocate" in f.get_source("tir")
    (device,) = f.imported_modules
    assert device.type_key == "pretend"
    assert device.get_source() == device.get_source("loops") == device.code.text
    assert "@f_kernel1 = primfn" in device.get_source("tir")
    with pytest.raises(ArgumentError, match='there is no format'):
        device.get_source("ptx")


def test_a_kernel_is_launched_by_itself():
    f = two_stages(n=64)
    a, b = on(range(64)), on(np.zeros(64))
    f.imported_modules[0]["f_kernel0"](a, b, 2, 32)
    np.testing.assert_array_equal(b.numpy(), np.arange(64) + 1)


def test_time_is_that_of_the_events_of_the_device():
    timer = two_stages().time_evaluator("f", DEVICE, number=3, repeat=2)
    assert timer(on(range(9)), on(np.zeros(9))).mean == pytest.approx(2e-3)  # two launches


def test_code_is_loaded_once_by_each_device():
    f = two_stages()
    before = DRIVER.loads
    for number in (0, 1, 0, 1):
        f(on(range(9), number), on(np.zeros(9), number))
    assert DRIVER.loads == before + 2


def test_a_module_leaves_the_process_and_comes_back(tmp_path):
    f = two_stages()
    f.export_library(tmp_path / "f.tedsl")
    g = tedsl.runtime.load_module(tmp_path / "f.tedsl")
    a, c = on(range(40)), on(np.zeros(40))
    g(a, c)
    np.testing.assert_array_equal(c.numpy(), (np.arange(40) + 1) * 2)
    assert g.imported_modules[0].get_source() == f.imported_modules[0].get_source()
    assert g.target == f.target
    with pytest.raises(ArgumentTypeError, match="lies in the memory of the CPU"):
        g(a.numpy(), c)
    g.export_library(tmp_path / "g.tedsl")
    assert (tmp_path / "g.tedsl").read_bytes() == (tmp_path / "f.tedsl").read_bytes()


def test_a_module_of_the_processor_keeps_one_that_launches(tmp_path):
    A = te.placeholder((9,), name="A")
    B = te.compute((9,), lambda i: A[i] + 1.0, name="B")
    host = tedsl.build(te.create_schedule(B.op), [A, B], name="g")
    launching = two_stages()
    assert launching.type_key == "llvm"
    host.import_module(launching)
    host.export_library(tmp_path / "both.tedsl")
    c = on(np.zeros(40))
    tedsl.runtime.load_module(tmp_path / "both.tedsl").get_function("f", True)(on(range(40)), c)
    np.testing.assert_array_equal(c.numpy(), (np.arange(40) + 1) * 2)


@pytest.mark.parametrize("name", ["f.so", "f.o", "f.h", "f.ll", "f.s", "f.tar", "f-1.0.whl", "f.c"])
def test_other_files_do_not_hold_kernels(name, tmp_path):
    with pytest.raises(ModuleError, match=r"kernels of pretend are launched by tedsl(.|\n)*export a .tedsl file"):
        two_stages().export_library(tmp_path / name)


def test_damage_is_refused():
    data = bytearray(two_stages().imported_modules[0].save_to_bytes())
    from tedsl.runtime.devices.module import device_module_of

    for at in range(0, len(data), 97):
        damaged = bytes(data[:at]) + bytes([data[at] ^ 0x55]) + bytes(data[at + 1:])
        with pytest.raises(ModuleError):
            device_module_of(damaged, "here")
    with pytest.raises(ModuleError):
        device_module_of(bytes(data[:-20]), "here")


def test_a_dict_from_the_target_to_the_module():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    bound(s, B)
    f = tedsl.build({"pretend": tedsl.lower(s, [A, B])}, target_host="llvm")
    b = on(np.zeros(64))
    f(on(range(64)), b)
    np.testing.assert_array_equal(b.numpy(), np.arange(64) + 1)


@pytest.mark.parametrize("options, words", [
    ({"checked": True}, "cannot raise errors"), ({"target_host": "cuda"}, "the host of pretend is cuda"),
    ({"target_host": "llvm -mtriple=aarch64-linux-gnu"}, "launches are made on this machine"),
])
def test_builds_that_are_refused(options, words):
    with pytest.raises(TedslError, match=words):
        two_stages(**options)


def test_softmax_and_dense_by_the_schedules_of_topi():
    rng = np.random.default_rng(0)
    x, w = te.placeholder((6, 20), name="x"), te.placeholder((8, 20), name="w")
    with tedsl.Target("pretend"):
        dense = topi.nn.dense(x, w)
        f = tedsl.build(topi.cuda.schedule_dense([dense]), [x, w, dense], target="pretend")
        softmax = topi.nn.softmax(x)
        g = tedsl.build(topi.cuda.schedule_softmax(softmax), [x, softmax], target="pretend")
    xs, ws = rng.random((6, 20), "float32"), rng.random((8, 20), "float32")
    out, soft = on(np.zeros((6, 8))), on(np.zeros((6, 20)))
    f(on(xs), on(ws), out)
    g(on(xs), soft)
    np.testing.assert_allclose(out.numpy(), xs @ ws.T, rtol=1e-5)
    np.testing.assert_allclose(soft.numpy(), np.exp(xs) / np.exp(xs).sum(1, keepdims=True), rtol=1e-5)


def test_loops_of_the_host_launch_again_and_again():
    A = te.placeholder((3, 40), name="A")
    B = te.compute((3, 40), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[1], 32)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    f = tedsl.build(s, [A, B], target="pretend")
    values, b = np.arange(120, dtype="float32").reshape(3, 40), on(np.zeros((3, 40)))
    DRIVER.launches.clear()
    f(on(values), b)
    np.testing.assert_array_equal(b.numpy(), values + 1)
    assert len(DRIVER.launches) == 3

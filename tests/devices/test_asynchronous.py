"""Copies that go on while threads compute: of memory that `double_buffer` fills an iteration ahead, from sm_80 on."""

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl import te
from tedsl.ir.evaluate import run
from tedsl.passes.config import PassConfig
from tedsl.target import Target
from tests.codegen.nvptx.assembler import assemble, count
from tests.codegen.nvptx.kernels import device_code, kernels_of
from tests.devices.agreement import stencil
from tests.devices.matrices import inputs, product
from tests.passes.threads.programs import tiled_matmul
from tests.simulate.kernels import launch
from tests.simulate.mutants import without_barriers

TARGET = "cuda -arch=sm_80"


def doubled(program):
    """A program whose shared memory is filled an iteration ahead."""
    s, args, *rest = program
    for stage in s.stages:
        if stage.scope == "shared":
            stage.double_buffer()
    return s, args


def wide(n=256, step=64):
    """Sums of rows by 4 floats at once, from shared memory that each thread fills for others."""
    A, k = te.placeholder((32, n), name="A"), te.reduce_axis((0, n), "k")
    B = te.compute((32,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    sums = s.cache_write(B, "local")
    S = s.cache_read(A, "shared", [sums])
    thread = te.thread_axis((0, 32), "threadIdx.x")
    block, inner = s[B].split(s[B].op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, thread)
    s[sums].compute_at(s[B], inner)
    outer, _ = s[sums].split(s[sums].op.reduce_axis[0], step)
    s[S].compute_at(s[sums], outer)
    elements, lanes = s[S].split(s[S].fuse(*s[S].op.axis), 4)
    elements, lane = s[S].split(elements, 32)
    s[S].bind(lane, thread)
    s[S].vectorize(lanes)
    return s, [A, B]


def guarded(n=250):
    """A stencil over an array with zeros around it: copies under a condition."""
    A = te.placeholder((6, n), name="A")
    P = te.compute((6, n + 2), lambda i, j: te.if_then_else(te.all(j >= 1, j < n + 1), A[i, j - 1], 0.0), name="P")
    B = te.compute((6, n), lambda i, j: P[i, j] + P[i, j + 1] * 2 + P[i, j + 2], name="B")
    s = te.create_schedule(B.op)
    y, x = s[B].op.axis
    xo, xi = s[B].split(x, factor=32)
    s[B].bind(y, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.x"))
    s[P].set_scope("shared")
    s[P].compute_at(s[B], xo)
    s[P].bind(s[P].split(s[P].op.axis[1], factor=32)[1], te.thread_axis("threadIdx.x"))
    return s, [A, B]


PROGRAMS = {"product": lambda: doubled(tiled_matmul(32, 32, 32)), "wide": lambda: doubled(wide()),
            "stencil": lambda: doubled(stencil()), "zeros_around": lambda: doubled(guarded()),
            "tensor_cores": lambda: doubled(product((32, 32, 128), warps=(2, 2), step=2))}
CHANGING = {"symbolic": lambda: doubled(tiled_matmul(te.var("n"), te.var("m"), te.var("k")))}


def values(name, args):
    if name == "tensor_cores":
        given, out, _ = inputs((32, 32, 128))
        return [*given, out]
    rng = np.random.default_rng(0)
    sizes = {} if name != "symbolic" else dict(zip("nmk", (20, 12, 36)))
    shapes = [[sizes[dim.name] if sizes else int(dim) for dim in arg.shape] for arg in args]
    return [rng.integers(-4, 5, shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("name", [*PROGRAMS, *CHANGING])
def test_results(name):
    s, args = {**PROGRAMS, **CHANGING}[name]()
    given, expected = values(name, args), values(name, args)
    tedsl.build(s, args, target="llvm")(*expected)
    device = tedsl.sim(0)
    arrays = [tedsl.nd.array(value, device) for value in given]
    f = tedsl.build(s, args, target=TARGET)
    assert "cp.async" in f.imported_modules[0].get_source()
    with simulate.mode("checked"):
        f(*arrays)
    np.testing.assert_array_equal(arrays[-1].numpy(), expected[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_loops_mean_the_same(name):
    """The interpreter runs the kernels, with copies that are done at once."""
    s, args = PROGRAMS[name]()
    given, expected = values(name, args), values(name, args)
    tedsl.build(s, args, target="llvm")(*expected)
    (kernel,) = kernels_of(s, args, Target(TARGET))
    assert "ptx_cp_async" in str(kernel) and "ptx_wait_group" in str(kernel)
    run(kernel, [value.reshape(-1) for value in given])
    np.testing.assert_array_equal(given[-1], expected[-1])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_machine_code(arch, tmp_path):
    for name, size in (("wide", 16), ("tensor_cores", 8), ("product", 4)):
        code = device_code(*PROGRAMS[name](), arch)
        assert f"], {size};" in code.text and code.text.count("cp.async.wait_all") > 0
        image, _ = assemble(code.text, arch, tmp_path)
        assert count(image, "LDGSTS") > 0


def test_older_devices_copy_themselves():
    code = device_code(*PROGRAMS["wide"](), "sm_75")
    assert "cp.async" not in code.text and "st.shared.v4" in code.text


def test_a_missing_wait_is_found():
    s, args = PROGRAMS["wide"]()
    code = device_code(s, args)
    given = values("wide", args)
    (function,) = code.functions
    assert not launch(code.text, *given, name=function.name).findings
    report = launch(code.text.replace("cp.async.wait_all", "cp.async.commit_group"), *given, name=function.name)
    assert "uninitialised read" in {finding.kind for finding in report.findings}


def test_missing_barriers_are_found(monkeypatch):
    s, args = PROGRAMS["tensor_cores"]()
    given = values("tensor_cores", args)
    mutants = without_barriers(lambda: tedsl.build(s, args, target=TARGET), monkeypatch)
    _, text = mutants[-1]  # at the end of an iteration; those before and after its copies stand in for each other
    report = launch(text, *given, block=(32, 2, 2), name="default_function_kernel0")
    assert "race" in {finding.kind for finding in report.findings}


def test_memory_that_is_filled_twice_in_an_iteration_is_not():
    """Two iterations in one step of the loop."""
    s, args = PROGRAMS["wide"]()
    with tedsl.transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": 2}}):
        f = tedsl.build(s, args, target=TARGET)
    assert "cp.async" not in f.imported_modules[0].get_source("ptx")
    assert PassConfig().double_buffer.split_loop == 1

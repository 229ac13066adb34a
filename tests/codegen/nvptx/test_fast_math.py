"""-math=fast: functions of float32 are the approximations of the device; float64 keeps our own."""

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError
from tests.codegen.nvptx.assembler import assemble

N = 96
FORMULAS = {
    "exp": (te.exp, np.exp, "ex2.approx.f32"), "exp2": (te.exp2, np.exp2, "ex2.approx.f32"),
    "exp10": (te.exp10, lambda x: 10.0 ** x, "ex2.approx.f32"), "log": (te.log, np.log, "lg2.approx.f32"),
    "log2": (te.log2, np.log2, "lg2.approx.f32"), "log10": (te.log10, np.log10, "lg2.approx.f32"),
    "sin": (te.sin, np.sin, "sin.approx.f32"), "cos": (te.cos, np.cos, "cos.approx.f32"),
    "tan": (te.tan, np.tan, "div.full.f32"), "tanh": (te.tanh, np.tanh, "tanh.approx.f32"),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x)), "rcp.approx.f32"), "sqrt": (te.sqrt, np.sqrt, "sqrt.approx.f32"),
    "rsqrt": (te.rsqrt, lambda x: 1 / np.sqrt(x), "rsqrt.approx.f32"),
    "pow": (lambda x: te.power(x, x), lambda x: x ** x, "lg2.approx.f32"),
    "division": (lambda x: 1.0 / (x + 1.0), lambda x: 1 / (x + 1), "div.full.f32"),
}


def built(formula, dtype, options):
    A = te.placeholder((N,), dtype, "A")
    B = te.compute((N,), lambda i: formula(A[i]), name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return tedsl.build(s, [A, B], f"cuda {options}")


def ptx(module):
    return module.imported_modules[0].get_source("ptx")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_values(name, dtype):
    formula, reference, instruction = FORMULAS[name]
    module = built(formula, dtype, "-arch=sm_80 -math=fast")
    assert instruction in ptx(module) and ptx(module).count("\n") < ptx(built(te.erf, dtype, "-arch=sm_80")).count("\n")
    place, x = tedsl.sim(0), np.linspace(0.05, 3, N).astype(dtype)
    out = tedsl.nd.empty((N,), dtype, place)
    module(tedsl.nd.array(x, place), out)
    np.testing.assert_allclose(out.numpy().astype("float64"), reference(x.astype("float64")),
                               rtol=2e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_120"])
def test_the_assembler_takes_them(arch, tmp_path):
    for name, (formula, *_) in FORMULAS.items():
        text = ptx(built(formula, "float32", f"-arch={arch} -math=fast"))
        assert ("tanh.approx" in text) == (name == "tanh" and arch != "sm_70")
        assemble(text, arch, tmp_path)


def test_ends():
    """Infinities and zeros give what the functions tend to."""
    x = np.array([-np.inf, -200.0, -0.0, 0.0, 200.0, np.inf] * 16, "float32")
    for formula, options, expected in (
            (te.exp, "", [0, 0, 1, 1, np.inf, np.inf]), (te.tanh, "-arch=sm_70", [-1, -1, 0, 0, 1, 1]),
            (te.sigmoid, "", [0, 0, 0.5, 0.5, 1, 1])):
        out = tedsl.nd.empty((N,), "float32", tedsl.sim(0))
        built(formula, "float32", f"{options} -math=fast")(tedsl.nd.array(x, tedsl.sim(0)), out)
        np.testing.assert_allclose(out.numpy()[:6], expected, atol=1e-30)


def test_float64_keeps_our_functions():
    def body(options):
        return ptx(built(lambda x: te.exp(x) / te.sqrt(x), "float64", options))
    assert body("-math=fast") == body("-math=own") == body("")


def test_other_choices_are_refused():
    with pytest.raises(ArgumentError, match=r"the option math of target cuda.* is 'quick'(.|\n)*-math=own or -math=fast"):
        built(te.exp, "float32", "-math=quick")

"""Products by tensor cores agree: the interpreter of formulas and of calls, the processor, the simulated PTX, OpenCL."""

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl.errors import LoweringError
from tedsl.ir.evaluate import run
from tedsl.lower.lower import lower_schedule
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline, lowering_pipeline
from tedsl.target import Target
from tests.devices.matrices import convolution, convolved, inputs, product
from tests.devices.opencl_device import needs_opencl

TARGET = "cuda -arch=sm_80"
SMALL = (16, 16, 32)
FORMS = {
    "f16": {}, "f16_into_f16": {"out": "float16"}, "f16_b_turned": {"b_order": "col_major"},
    "f16_a_turned": {"a_order": "col_major"},
    "f16_wide": {"shape": (8, 32, 16)}, "f16_tall": {"shape": (32, 8, 16)},
    "bf16": {"dtype": "bfloat16"}, "bf16_wide": {"dtype": "bfloat16", "shape": (8, 32, 16)},
    "bf16_tall": {"dtype": "bfloat16", "shape": (32, 8, 16), "b_order": "col_major"},
    "int8": {"dtype": "int8", "out": "int32"}, "uint8": {"dtype": "uint8", "out": "int32", "b_order": "col_major"},
    "int8_wide": {"dtype": "int8", "out": "int32", "shape": (8, 32, 16), "b_order": "col_major"},
    "int8_tall": {"dtype": "int8", "out": "int32", "shape": (32, 8, 16), "a_order": "col_major"},
}


def without_formulas(s, args, target):
    """The loops of a schedule with the calls that replace its tiles."""
    return device_pipeline(Target(target), PassConfig())(lowering_pipeline()(lower_schedule(s, args)))


def simulated(s, args, values, target=TARGET):
    device = tedsl.sim(0)
    arrays = [tedsl.nd.array(value, device) for value in values]
    with simulate.mode("checked"):
        tedsl.build(s, args, target=target)(*arrays)
    return arrays[-1].numpy()


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    options = FORMS[name]
    m, n, k = options.get("shape", (16, 16, 16))
    size = (2 * m, 2 * n, 2 * k)
    s, args = product(size, **options)
    given, out, expected = inputs(size, **options)
    values = [*given, out.copy()]
    run(without_formulas(s, args, TARGET), values)
    np.testing.assert_array_equal(values[-1], expected, err_msg="interpreter")
    values = [*given, out.copy()]
    tedsl.build(s, args, target="llvm")(*values)
    np.testing.assert_array_equal(values[-1], expected, err_msg="processor")
    np.testing.assert_array_equal(simulated(s, args, [*given, out]), expected, err_msg="simulator")


def test_formulas_of_the_loops():
    """What `lower` gives has the formulas: the interpreter runs them."""
    s, args = product(SMALL)
    given, out, expected = inputs(SMALL)
    run(tedsl.lower(s, args)["main"], [*given, out])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("warps, tiles, step", [((2, 2), (1, 1), 1), ((1, 2), (2, 1), 2), ((2, 1), (2, 2), 4)])
def test_warps_and_tiles(warps, tiles, step):
    size = (64, 64, 128)
    s, args = product(size, warps=warps, tiles=tiles, step=step)
    given, out, expected = inputs(size)
    values = [*given, out.copy()]
    tedsl.build(s, args, target="llvm")(*values)
    np.testing.assert_array_equal(values[-1], expected)
    np.testing.assert_array_equal(simulated(s, args, [*given, out]), expected)


def test_sums_that_are_rounded():
    """Values whose sums are not exact: the processor and the simulator add in one order."""
    s, args = product((32, 32, 64))
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(shape).astype("float16") for shape in ((32, 64), (64, 32))]
    out = np.zeros((32, 32), "float32")
    there = simulated(s, args, [*given, out])
    tedsl.build(s, args, target="llvm")(*given, out)
    np.testing.assert_array_equal(there, out)
    np.testing.assert_allclose(out, given[0].astype("float64") @ given[1].astype("float64"), rtol=1e-4, atol=1e-4)


def test_a_convolution_with_intrinsics_of_its_own():
    """A program that makes TVM's calls itself."""
    s, args = convolution(batch=16)
    rng = np.random.default_rng(0)
    a, w = (rng.integers(-3, 4, [int(extent) for extent in t.shape]).astype("float16") for t in args[:2])
    out = np.zeros([int(extent) for extent in args[2].shape], "float32")
    expected, values = convolved(a, w), [a, w, out.copy()]
    tedsl.build(s, args, target="llvm")(*values)
    np.testing.assert_array_equal(values[-1], expected)
    np.testing.assert_array_equal(simulated(s, args, [a, w, out]), expected)
    run(without_formulas(s, args, TARGET), values)
    np.testing.assert_array_equal(values[-1], expected)


@needs_opencl
@pytest.mark.parametrize("options", [{}, {"dtype": "int8", "out": "int32"}], ids=["f16", "int8"])
def test_loops_of_the_first_thread_in_opencl(options):
    """A device without tensor cores: one thread of each warp does the work."""
    s, args = product((32, 32, 32), warps=(2, 1), **options)
    given, out, expected = inputs((32, 32, 32), **options)
    device = tedsl.opencl(0)
    arrays = [tedsl.nd.array(value, device) for value in (*given, out)]
    tedsl.build(s, args, target="opencl")(*arrays)
    np.testing.assert_array_equal(arrays[-1].numpy(), expected)


@pytest.mark.parametrize("target", [TARGET, "llvm"])
@pytest.mark.parametrize("factor, loaded", [("a", ("col_major", "row_major")), ("b", ("row_major", "col_major"))])
def test_a_factor_loaded_in_another_order_than_the_product_takes_is_refused(factor, loaded, target):
    s, args = product(SMALL, loaded=loaded)
    with pytest.raises(LoweringError, match=f"matrix_{factor} is loaded as col_major, and the product takes it as row_major"):
        tedsl.build(s, args, target)

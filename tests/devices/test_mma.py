"""Products of 16 x 8 by the instructions mma and ldmatrix: the processor, the interpreter, the simulated PTX, the assembler."""

import itertools

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl.contrib import intrinsics
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir.evaluate import run
from tests.codegen.nvptx.assembler import assemble, count
from tests.codegen.nvptx.kernels import device_code
from tests.devices.matrices import ORDERS, inputs, product
from tests.devices.opencl_device import needs_opencl
from tests.devices.test_tensor_cores import TARGET, simulated, without_formulas
from tests.simulate.kernels import kernel, launch

pytestmark = pytest.mark.whole

FORMS = [("float16", "float32", 16), ("float16", "float16", 16), ("bfloat16", "float32", 16), ("int8", "int32", 32),
         ("uint8", "int32", 32)]


@pytest.mark.parametrize("padding", [0, 3, 16])
@pytest.mark.parametrize("a_order, b_order", list(itertools.product(ORDERS, ORDERS)))
@pytest.mark.parametrize("dtype, out, k", FORMS)
def test_forms(dtype, out, k, a_order, b_order, padding):
    """With rows that ldmatrix takes, and with others, which threads load by themselves."""
    options = {"shape": (16, 8, k), "dtype": dtype, "out": out, "a_order": a_order, "b_order": b_order}
    size = (32, 16, 2 * k)
    s, args = product(size, padding=padding, **options)
    given, c, expected = inputs(size, **options)
    np.testing.assert_array_equal(simulated(s, args, [*given, c]), expected)
    text = device_code(s, args, "sm_80").text
    assert text.count("mma.sync.aligned.m16n8k") in (1, 2)  # of two steps, in a loop or one after the other
    assert ("ldmatrix" in text) == (padding != 3 and (k == 16 or a_order == "row_major" or b_order == "col_major"))


@pytest.mark.parametrize("dtype, out, k", FORMS)
def test_the_processor_and_the_interpreter(dtype, out, k):
    options, size = {"shape": (16, 8, k), "dtype": dtype, "out": out}, (32, 16, 2 * k)
    s, args = product(size, **options)
    given, c, expected = inputs(size, **options)
    for compute in (lambda values: run(without_formulas(s, args, TARGET), values),
                    lambda values: tedsl.build(s, args, target="llvm")(*values)):
        values = [*given, c.copy()]
        compute(values)
        np.testing.assert_array_equal(values[-1], expected)


@needs_opencl
def test_opencl():
    s, args = product((16, 8, 16), shape=(16, 8, 16))
    given, c, expected = inputs((16, 8, 16))
    arrays = [tedsl.nd.array(value, tedsl.opencl(0)) for value in (*given, c)]
    tedsl.build(s, args, target="opencl")(*arrays)
    np.testing.assert_array_equal(arrays[-1].numpy(), expected)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("dtype, out, k", FORMS)
def test_machine_code(dtype, out, k, arch, tmp_path):
    """One machine instruction for each, and nothing in local memory."""
    program = product((64, 32, 2 * k), (16, 8, k), dtype, out, b_order="col_major", tiles=(2, 2), warps=(2, 2), step=2,
                      padding=16)
    text = device_code(*program, arch).text
    image = assemble(text, arch, tmp_path)[0]
    assert text.count("mma.sync") == 8 and text.count("ldmatrix.sync.aligned.m8n8.x4") == 4 and ".local" not in text
    assert count(image, "HMMA" if k == 16 else "IMMA") == 8 and count(image, "LDSM") == 8


def test_sums_that_are_rounded():
    s, args = product((32, 16, 64), (16, 8, 16))
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(shape).astype("float16") for shape in ((32, 64), (64, 16))]
    out = np.zeros((32, 16), "float32")
    there = simulated(s, args, [*given, out])
    tedsl.build(s, args, target="llvm")(*given, out)
    np.testing.assert_array_equal(there, out)


def test_banks():
    """Rows of 32 bytes meet in the banks; rows that are 16 bytes further apart do not."""
    conflicts = []
    for padding in (0, 8):
        size = (32, 16, 32)
        s, args = product(size, (16, 8, 16), b_order="col_major", padding=padding)
        given, c, _ = inputs(size, b_order="col_major")
        arrays = [tedsl.nd.array(value, tedsl.sim(0)) for value in (*given, c)]
        tedsl.build(s, args, target=TARGET)(*arrays)
        report = simulate.last_report()
        assert not report.findings and report.instructions["tensor 16x8"] == 8
        conflicts.append(report.traffic("shared", "load").conflict)
    assert conflicts[0] > conflicts[1] == 1


LOADS = ".shared .align 16 .b8 s[1024]; mov.b32 %r10, s; shl.b32 %r11, %r0, 4; add.u32 %r12, %r10, %r11; "
FILL = LOADS + "st.shared.v4.b32 [%r12], {%r0, %r0, %r0, %r0}; bar.sync 0; "
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, "


@pytest.mark.parametrize("where, body", [
    ("shuffle from an absent thread", FILL + f"setp.lt.u32 %p1, %r0, 16; @!%p1 bra L; {LOAD} [%r12]; L:"),
    ("misaligned access", FILL + LOAD + "[%r12+8];"),
    ("access outside", FILL + LOAD + "[%r12+544];"),
    ("race", FILL.replace("bar.sync 0;", "") + LOAD + "[%r10];"),
    ("uninitialised read", LOADS + LOAD + "[%r12];")])
def test_findings(where, body):
    report = launch(kernel(body, ()))
    assert where in {finding.kind for finding in report.findings}


# --- what is refused ----------------------------------------------------------------------------------------------------

def test_older_devices_are_refused():
    with pytest.raises(LoweringError, match="sm_75 has no tensor cores for that"):
        device_code(*product((16, 8, 16), (16, 8, 16)), "sm_75")


def test_rows_that_wmma_cannot_load_are_refused():
    program = product((32, 32, 32), padding=3)
    with pytest.raises(LoweringError, match=r"rows of A.shared are 35 elements of float16 apart, 70 bytes.*\n"
                                            ".*storage_align a factor and an offset that 8 divides") as caught:
        device_code(*program, "sm_80")
    assert caught.value.about == "A.shared"
    tedsl.build(*program, target="llvm")


def test_makers_check_their_arguments():
    for make, match in ((lambda: intrinsics.mma_load_a("float32"), "mma_load_a: no tensor core multiplies 'float32'"),
                        (lambda: intrinsics.mma_load_b("int8", "rows"), "the order of elements is 'rows'"),
                        (lambda: intrinsics.mma_store("int8"), "no accumulator is of 'int8'"),
                        (lambda: intrinsics.wmma_mma((16, 8, 16), "int8"), "no tensor core multiplies 16 x 16 by 16 x 8"),
                        (lambda: intrinsics.mma("int8", "float32"), "added in int32, not 'float32'")):
        with pytest.raises(ArgumentError, match=match):
            make()
    assert {"mma", "mma_load_a", "mma_load_b", "mma_store"} <= set(intrinsics.names())
    assert [intrinsics.mma_store(dtype).op.shape[1] for dtype in ("float32", "int32")] == [8, 8]

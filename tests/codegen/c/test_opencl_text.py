"""The text of kernels in OpenCL C, beside the loops that it says, which needs no device."""

import subprocess
import sys

import tedsl
from tedsl import te
from tests.devices.test_opencl_programs import elementwise, reversed_by_blocks
from tests.passes.threads.programs import tiled_matmul, vector_add


def loops_and_text(program, target="opencl"):
    """The kernels as loops and in OpenCL C, without the line that names the version."""
    kernels = tedsl.build(*program, target).imported_modules[0]
    return {"loops": str(kernels.get_source("tir")), "opencl": str(kernels.get_source("cl")).split("\n", 2)[2]}


def test_a_sum_of_symbolic_size(golden):
    golden.sections(**loops_and_text(vector_add(te.var("n"))))


def test_a_tiled_product_has_local_memory_and_barriers(golden):
    golden.sections(**loops_and_text(tiled_matmul(64, 64, 64)))


def test_shared_memory_whose_size_the_launch_says(golden):
    golden.sections(**loops_and_text(reversed_by_blocks("shared.dyn")))


def test_vector_types(golden):
    program = elementwise(lambda v: v * 2 + 1, "float32", 256, vector=4)
    golden.sections(fused=loops_and_text(program)["opencl"], apart=loops_and_text(program, "opencl -fma=0")["opencl"],
                    loops=loops_and_text(program, "opencl -vectors=loops")["opencl"],
                    tail=loops_and_text(elementwise(lambda v: v + 1, "float32", 202, vector=4))["opencl"],
                    integers=loops_and_text(elementwise(lambda v: v * 2 + 1, "int32", 256, vector=4))["opencl"])


def test_arithmetic_of_every_kind(golden):
    """Small functions for what OpenCL leaves undefined, 16-bit floats as their bits, our own exp."""
    exp = loops_and_text(elementwise(te.exp, "float32"))["opencl"]
    golden.sections(integers=loops_and_text(elementwise(lambda v: v // (v - 1) + (v << 3), "int32"))["opencl"],
                    halves=loops_and_text(elementwise(lambda v: v * v + v, "float16"))["opencl"],
                    casts=loops_and_text(elementwise(lambda v: (v * 2.5).astype("int8"), "float64"))["opencl"],
                    exp=exp,
                    library=loops_and_text(elementwise(te.exp, "float32"), "opencl -math=libm")["opencl"])


def test_names_that_mean_something_in_opencl_are_not_given_to_arrays():
    a = te.placeholder((8,), name="kernel")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="float4")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    text = loops_and_text((s, [a, b]))["opencl"]
    assert "restrict kernel_1, __global float *restrict float4_1)" in text


def test_without_a_device_the_text_is_the_same():
    """Nothing of the machine stands in it, and no device is asked for."""
    script = ("import sys; sys.modules['pyopencl'] = None\nfrom tests.codegen.c.test_opencl_text import *\n"
              "print(loops_and_text(vector_add(100))['opencl'])")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == loops_and_text(vector_add(100))["opencl"] + "\n"

"""Registers by NVIDIA's assembler, when a build asks for it."""

import pytest

import tedsl
from tedsl import te
from tedsl.codegen.nvptx import registers
from tedsl.errors import LoweringError
from tedsl.target import Target
from tests.codegen.nvptx.assembler import assembler_for
from tests.devices.matrices import product

ASKED = {"tedsl.check_registers": True}


def built(program, arch="sm_80", config=ASKED):
    assembler_for(arch)
    with tedsl.transform.PassContext(config=config):
        return tedsl.build(*program, target=f"cuda -arch={arch}")


def test_kernels_that_fit():
    built(product((32, 32, 32)))


@pytest.mark.spills
def test_too_many_accumulators_are_refused():
    """A warp of 48 accumulators: 384 numbers of each thread."""
    program = product((128, 96, 32), tiles=(8, 6))
    with pytest.raises(LoweringError, match=r"a thread of default_function_kernel0 has 25\d registers and keeps \d+ bytes "
                                            r"more in memory\n.*smaller factors"):
        built(program)
    built(program, config={})


def test_what_the_assembler_refuses():
    assembler_for("sm_80")
    with pytest.raises(LoweringError, match="NVIDIA's assembler refuses these kernels"):
        registers.check_registers(".version 7.0\n.target sm_80\nnonsense", Target("cuda -arch=sm_80"))


def test_without_an_assembler_nothing_is_checked(monkeypatch):
    monkeypatch.setattr(registers, "_assembler", lambda: "")
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    built((s, [A, B]))

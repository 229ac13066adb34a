"""The machine code of operators by their schedules: how often they load, exchange values and wait, between bounds.

A bound is from what the schedule says: a vector of 16 bytes is one LDG.128; a sum across a warp is five SHFL, of 32 to 1; what
threads pass through shared memory needs one BAR for each time that some read what others wrote.
"""

import re

import pytest

import tedsl
import topi
from tedsl import te
from tests.codegen.nvptx.assembler import assemble, instructions
from topi import nn

TARGET = "cuda -arch=sm_80"


def placeholders(*shapes, dtype="float32"):
    return [te.placeholder(shape, dtype, name=f"x{k}") for k, shape in enumerate(shapes)]


def counted(operator, inputs, folder):
    """How often each of LDG, LDG.128, SHFL and BAR stands in the kernels of an operator."""
    out = operator(*inputs)
    code = tedsl.build(topi.schedules.schedule(out, TARGET), [*inputs, out], target=TARGET).imported_modules[0]
    image, _ = assemble(code.get_source("ptx"), "sm_80", folder)
    found = {"LDG": 0, "LDG.128": 0, "SHFL": 0, "BAR": 0}
    for name, times in instructions(image).items():
        kind = re.match("[A-Z0-9]+", name)[0]
        for key in (kind, f"{kind}.128" if ".128" in name else ""):
            found[key] = found.get(key, 0) + times
    return found


A = (64, 1024)
WIDE = (512, 512)
KERNELS = {
    # Two operands, 16 bytes of each by a thread: nothing else is loaded.
    "sum of two": (lambda a, b: a + b, placeholders(WIDE, WIDE),
                   {"LDG": (2, 2), "LDG.128": (2, 2), "SHFL": (0, 0), "BAR": (0, 0)}),
    # Eight halves are 16 bytes.
    "halves": (lambda a: a * a, placeholders((1024, 1024), dtype="float16"), {"LDG": (1, 1), "LDG.128": (1, 1)}),
    # One element of a row after another: no vectors, since neighbours in the result are not neighbours in what is read.
    "transpose": (topi.transpose, placeholders(WIDE), {"LDG": (1, 4), "LDG.128": (0, 0), "BAR": (0, 0)}),
    # A row of a square of threads is a warp: five exchanges and one that hands the sum to all; no barrier.
    "sum of rows": (lambda a: topi.sum(a, axis=1), placeholders(A), {"SHFL": (5, 6), "BAR": (0, 0)}),
    # 32 warps: each as above, then one of them for the sums of all, with one barrier between, and at most one behind.
    "sum of all": (topi.sum, placeholders(A), {"SHFL": (10, 12), "BAR": (1, 2)}),
    # As rows, of pairs: the place is exchanged beside the value.
    "argmax": (lambda a: topi.argmax(a, axis=1), placeholders(A), {"SHFL": (10, 12), "BAR": (0, 0)}),
    # A warp for each row: a maximum and a sum, in registers.
    "softmax by warps": (nn.softmax, placeholders(A), {"LDG.128": (1, 16), "SHFL": (10, 12), "BAR": (0, 0)}),
    # A block of two warps for each row: a maximum and a sum, each across lanes and then across warps.
    "softmax by blocks": (nn.softmax, placeholders((64, 500)), {"SHFL": (10, 14), "BAR": (2, 6)}),
    # Tiles in shared memory: one barrier before they are read, and one before they are filled again.
    "dense": (nn.dense, placeholders((128, 256), (128, 256)), {"SHFL": (0, 0), "BAR": (2, 2)}),
    # All of the window at once: it is filled once.
    "depthwise": (lambda a, b: nn.depthwise_conv2d_nchw(a, b, 1, 1, 1), placeholders((1, 16, 56, 56), (16, 1, 3, 3)),
                  {"SHFL": (0, 0), "BAR": (1, 1)}),
    # Each of nine elements of a window once, by the thread that needs it.
    "pool": (lambda a: nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), placeholders((1, 16, 56, 56)),
             {"LDG": (3, 9), "SHFL": (0, 0), "BAR": (0, 0)}),
    # A network of 10 * 11 / 2 steps for 1024 words, a barrier for each.
    "sort": (lambda a: topi.sort(a, 1), placeholders((4, 1000)), {"BAR": (55, 56)}),
    # 256 threads add up their sums in 8 steps; before, between and behind these they pass on elements.
    "running sums": (lambda a: topi.cumsum(a, 1), placeholders((4, 1000)), {"BAR": (8 + 2, 8 + 4)}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_instructions_are_as_many_as_the_schedule_says(name, tmp_path):
    operator, inputs, bounds = KERNELS[name]
    found = counted(operator, inputs, tmp_path)
    assert {key: found[key] for key, (low, high) in bounds.items() if not low <= found[key] <= high} == {}, bounds

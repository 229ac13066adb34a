"""What scheduled programs become: inner loops of the instructions that they need and no others. Read, never timed."""

import re

import pytest

import tedsl
from benchmarks.matmul import packed_matmul

AVX512 = "llvm -mcpu=skylake-avx512"


def assembly(program, target=AVX512):
    schedule, arguments = program
    return tedsl.build(schedule, arguments, target=target).get_source("asm")


def inner_loops(text):
    """The bodies of loops without a label inside: from a label to the jump back to it."""
    found, label, lines = [], None, []
    for line in text.splitlines():
        if match := re.match(r"(\.L\w+):", line):
            label, lines = match[1], []
        elif label is not None:
            lines.append(line.strip())
            if re.match(rf"\s*j\w+\s+{re.escape(label)}$", line):
                found.append(lines)
                label = None
    return found


def busiest(text, instruction):
    """The inner loop with the most `instruction`s."""
    return max(inner_loops(text), key=lambda lines: sum(line.startswith(instruction) for line in lines))


@pytest.mark.parametrize("rows, columns", [(8, 32), (14, 32), (8, 48)])
def test_the_register_tile_of_a_matmul_stays_in_registers(rows, columns):
    """For tiles that divide the size and for those that do not: multiply-adds on registers, nothing kept on the stack."""
    loop = busiest(assembly(packed_matmul(512, rows, columns)), "vfmadd")
    multiplications = [line for line in loop if line.startswith("vfmadd")]
    assert len(multiplications) % (rows * columns // 16) == 0 and all("zmm" in line for line in multiplications)
    assert not any("%rsp" in line or "%k" in line for line in loop)
    assert len(loop) < 1.9 * len(multiplications)

"""What scheduled programs become: inner loops of the instructions that they need and no others. Read, never timed."""

import re

import numpy as np
import pytest

import tedsl
import topi
from benchmarks.matmul import packed_matmul
from tedsl import te
from topi.schedules.packing import panels_in

AVX512, AVX2 = "llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell"


def assembly(program, target=AVX512):
    schedule, arguments = program
    return tedsl.build(schedule, arguments, target=target).get_source("asm")


def inner_loops(text):
    """The bodies of loops without a label inside: from a label to the jump back to it."""
    found, label, lines = [], None, []
    for line in text.splitlines():
        if match := re.match(r"(\.L\w+):", line):
            label, lines = match[1], []
        elif label is not None and not line.startswith("#"):  # a line of the loops
            lines.append(line.strip())
            if re.match(rf"\s*j\w+\s+{re.escape(label)}$", line):
                found.append(lines)
                label = None
    return found


def busiest(text, instruction):
    """The inner loop with the most `instruction`s."""
    return max(inner_loops(text), key=lambda lines: sum(line.startswith(instruction) for line in lines))


@pytest.mark.parametrize("rows, columns, target", [(8, 32, AVX512), (12, 32, AVX512), (14, 32, AVX512), (8, 48, AVX512),
                                                   (6, 16, AVX2)])
def test_the_register_tile_of_a_matmul_stays_in_registers(rows, columns, target):
    """For tiles that divide the size and for those that do not: multiply-adds on registers, nothing kept on the stack."""
    loop = busiest(assembly(packed_matmul(512, rows, columns), target), "vfmadd")
    multiplications = [line for line in loop if line.startswith("vfmadd")]
    lanes, register = (16, "zmm") if target is AVX512 else (8, "ymm")
    tiles = [n * columns // lanes for n in (rows, 512 % rows) if n]  # whole, and the last one, of which more steps fit a loop
    assert any(len(multiplications) % one == 0 for one in tiles) and all(register in line for line in multiplications)
    assert not any("(%rsp)" in line or "%k" in line for line in loop)  # (%rsp,%r14): the panel
    assert len(loop) < 2.1 * len(multiplications)


@pytest.mark.parametrize("target, images, channels, results", [
    ("llvm -mcpu=znver5", 1, 2048, 512), ("llvm -mcpu=znver5", 2, 2048, 512), (AVX2, 2, 512, 2048)])
def test_sums_keep_their_registers_beside_what_short_loops_further_in_use(target, images, channels, results):
    """The zero of relu is used in loops of two iterations around the stores of a tile, and not while its sums are computed."""
    data, weights = te.placeholder((images, channels, 7, 7), name="data"), te.placeholder((results, channels, 1, 1), name="w")
    packed = topi.nn.conv2d_pack_weights(weights, 1, panels_in([_relu(data, weights)], target)[weights].results)
    panels = te.placeholder([int(extent) for extent in packed.shape], name="panels")
    out = _relu(data, topi.nn.conv2d_unpack_weights(panels, results))
    with tedsl.target.Target(target):
        text = assembly((topi.schedules.schedule(out), [data, panels, out]), target)
    loop = busiest(text, "vfmadd")
    assert not any("(%rsp)" in line and "mm" in line for line in loop), loop


def _relu(data, weights):
    return topi.nn.relu(topi.nn.conv2d_nchw(data, weights, 1, 0, 1))


@pytest.mark.parametrize("size, rows, tiles", [(512, 12, 1), (512, 8, 1), (128, 12, 2)])
def test_the_last_tile_of_a_matmul_is_one_of_the_others_where_few_rows_are_computed_twice(size, rows, tiles):
    loops = inner_loops(assembly(packed_matmul(size, rows, 16), AVX512))
    assert sum(any("vfmadd" in line for line in loop) for loop in loops) == tiles


@pytest.mark.parametrize("size", [1, 11, 100, 511, 512])
def test_a_matmul_whose_last_tile_begins_before_its_rows(size):
    a, b = (np.random.default_rng(side).standard_normal((size, size)).astype("float32") for side in range(2))
    c = np.full((size, size), np.nan, "float32")
    tedsl.build(*packed_matmul(size, 12))(a, b, c)
    assert np.allclose(c, a.astype("float64") @ b, atol=1e-3)


def vector_add(size, lanes):
    A, B = te.placeholder((size,), name="A"), te.placeholder((size,), name="B")
    C = te.compute((size,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], factor=lanes)
    s[C].vectorize(inner)
    return s, [A, B, C]


def test_short_loops_over_vectors_are_unrolled():
    loop = busiest(assembly(vector_add(4096, 16)), "vaddps")
    assert sum(line.startswith("vaddps") for line in loop) >= 2


@pytest.mark.parametrize("program", [lambda n: vector_add(n, 16), lambda n: packed_matmul(n, 8, 32)], ids=["add", "matmul"])
def test_a_symbolic_size_costs_no_gathers_in_the_compact_version(program):
    """The main loops of the compact version are those of a constant size: whole vectors, no masks, no gathers."""
    text = assembly(program(te.var("n")))
    compact = text[text.index("compact.kernel"):]
    instruction = "vfmadd" if "vfmadd" in compact else "vaddps"
    best = busiest(compact, instruction)
    assert any("zmm" in line and line.startswith(instruction) for line in best)
    assert not any("%k" in line or "gather" in line or ("%rsp" in line and "zmm" in line) for line in best)


def test_the_tile_at_the_border_has_a_main_part_of_its_own():
    """Only its last vectors are masked, in every stage that is computed in the tile."""
    A = te.placeholder((1002,), name="A")
    B = te.compute((1000,), lambda i: A[i] + A[i + 2], name="B")
    C = te.compute((999,), lambda i: B[i] * B[i + 1], name="C")
    s = te.create_schedule(C.op)
    tile, inner = s[C].split(C.op.axis[0], factor=256)
    s[B].compute_at(s[C], tile)
    for stage, axis in ((B, B.op.axis[0]), (C, inner)):
        _, lanes = s[stage].split(axis, factor=16)
        s[stage].vectorize(lanes)
    text = tedsl.build(s, [A, C], target=AVX512).get_source("tir")
    stores = re.findall(r"for \(\S+ int32, 0, (\d+)\).*\n *([BC]\S*\[.*)", text)
    assert [int(count) for count, _ in stores] == [16, 16, 14, 3, 14, 1]
    assert [int(count) for count, store in stores if " if (" in store] == [3, 1]

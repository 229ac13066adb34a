"""Which loops write each position of an output once, so that their stores may bypass the cache."""

import pytest

from tedsl.ir import build
from tedsl.ir.expr import Broadcast, Ramp, Var
from tedsl.ir.stmt import AttrStmt, LetStmt, seq
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.machine.mark_streams import MARK, mark_streams
from tedsl.target import Target
from tests.passes.programs import Function, imm, loop, when

AVX512, NEON = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"), Target("llvm -mtriple=aarch64-linux-gnu")
I, J, K = Var("i"), Var("j"), Var("k")
LARGE = 1 << 26


def lanes(base, stride=1, count=16):
    return Ramp(build.as_expr(base), imm(stride), count)


FIRST = lanes(build.mul(I, 16))


def marked(body, shape=LARGE, target=AVX512, noalias=True, inputs=("A",)):
    """The loop variables of the loops that are marked, and the marks."""
    f = Function(noalias, **dict.fromkeys((*inputs, "B"), shape))
    func = mark_streams(f.func(body(f)), target)
    return [node for node in post_order(func.body) if isinstance(node, AttrStmt) and node.attr_key == MARK]


def copied(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, f.store("B", at, f.load("A", at)))


def test_a_copy_is_marked_with_the_index_of_its_first_vector():
    (mark,) = marked(copied)
    assert structural_equal(mark.value, FIRST) and mark.node.name == "B"


@pytest.mark.parametrize("change", [{"shape": 1000}, {"target": NEON}, {"noalias": False}], ids=str)
def test_small_functions_other_machines_and_arrays_that_may_overlap_are_left_alone(change):
    assert not marked(copied, **change)


def tile(f, stride=4096, rows=8, first=0, last=None):
    """Eight rows of a tile: B[(j*8 + k)*stride + i*16 + lane] = A[(i*16 + lane)*8192 + j*8 + k]. last: the first row of
    the last tile, which is moved inwards.
    """
    row = build.add(build.mul(J, rows) if last is None else build.minimum(build.mul(J, rows), last), K)
    to = lanes(build.add(build.add(build.mul(row, stride), build.mul(I, 16)), first))
    from_ = lanes(build.add(build.mul(I, 16 * 8192), row), 8192)
    return loop(I, 100, loop(J, 10, loop(K, rows, f.store("B", to, f.load("A", from_)))))


def test_a_loop_over_tiles_is_marked_with_the_index_of_its_first_row():
    (mark,) = marked(tile)
    assert structural_equal(mark.value, FIRST)


def test_rows_of_tiles_begin_at_the_same_place_in_a_line():
    assert not marked(lambda f: tile(f, stride=4100))
    assert len(marked(lambda f: tile(f, stride=4112))) == 1
    assert len(marked(lambda f: tile(f, first=3))) == 1


def test_rows_of_tiles_that_are_moved_inwards():
    assert len(marked(lambda f: tile(f, last=69))) == 1
    assert not marked(lambda f: tile(f, stride=4100, last=69))
    assert not marked(lambda f: tile(f, stride=1, last=64))


def with_lane(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 16)), build.cast("float32x16", lanes(0))))


def of_the_vector(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 16)), Broadcast(build.cast("float32", I), 16)))


def with_gaps(f):
    return loop(I, 1000, f.store("B", lanes(build.mul(I, 32)), f.load("A", lanes(build.mul(I, 32)))))


def read_back(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, f.store("B", at, build.add(f.load("B", at), f.load("A", at))))


def guarded(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, when(build.less(I, 900), f.store("B", at, f.load("A", at))))


def two_outputs(f):
    at = lanes(build.mul(I, 16))
    return loop(I, 1000, seq(f.store("B", at, f.load("A", at)), f.store("C", at, f.load("A", at))))


@pytest.mark.parametrize("body", [with_lane, of_the_vector, with_gaps, read_back, guarded])
def test_loops_that_cannot_be_moved_by_a_part_of_a_vector_are_left_alone(body):
    assert not marked(body)


def test_loops_that_write_two_outputs_are_left_alone():
    assert not marked(two_outputs, inputs=("A", "C"))


def test_variables_may_stand_between():
    def body(f):
        at = lanes(K)
        return loop(I, 1000, LetStmt(K, build.mul(I, 16), f.store("B", at, f.load("A", at))))

    (mark,) = marked(body)
    assert structural_equal(mark.value, FIRST)


def test_what_is_large_comes_from_the_last_cache_of_the_machine():
    sizes = {name: Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={name}").machine.large
             for name in ("skylake-avx512", "znver4", "znver2")}
    assert sizes == {"skylake-avx512": 12 << 20, "znver4": int(0.9 * (32 << 20)), "znver2": int(0.9 * (16 << 20))}

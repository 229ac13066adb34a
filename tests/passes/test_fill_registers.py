"""Ends of tiles in whole registers: where masks go, and where they have to stay."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.ir import build
from tedsl.ir.expr import Broadcast, Load, Ramp, Var, pointer_var
from tedsl.ir.stmt import Store
from tedsl.ir.walk.substitute import bind_once
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.storage.fill_registers import fill_registers
from tedsl.target.target import Target
from tests.passes.programs import Function, allocate, body_text, check, imm, loop, seq

AVX2, NEON = Target("llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,+fma"), Target("llvm -mtriple=aarch64-linux-gnu")
K, I, ARRAY = Var("k"), Var("i"), pointer_var("S", "float32", "local")


def ramp(base, lanes):
    return Ramp(build.as_expr(base), imm(1), lanes)


def mask(count, lanes):
    return None if count is None else build.less(ramp(0, lanes), Broadcast(imm(count), lanes))


def vector(memory, base, count, lanes):
    return Load(f"float32x{lanes}", memory, ramp(base, lanes), mask(count, lanes))


def row(f, count, lanes=8, begun=True, kept=None):
    """Sums over five terms of B, of whose lanes the first `count` count; of the result, the first `kept`."""
    def assign(value):
        return Store(ARRAY, value, ramp(0, lanes), mask(count, lanes))

    sums = vector(ARRAY, 0, count, lanes)
    terms = loop(K, 5, assign(build.add(sums, vector(f.data("B"), build.mul(K, lanes), count, lanes))))
    kept = kept or count
    stored = Store(f.data("C"), vector(ARRAY, 0, kept, lanes), ramp(build.mul(I, lanes), lanes), mask(kept, lanes))
    return seq(*([assign(Broadcast(imm(0, "float32"), lanes))] if begun else []), terms, stored)


def rows(count, lanes=8, before=(), behind=(), **options):
    f = Function(B=(160,), C=(160,))
    first, last = ([make(f, lanes) for make in makers] for makers in (before, behind))
    body = seq(*first, loop(I, 4, row(f, count, lanes, **options)), *last)
    return f.func(bind_once(allocate(ARRAY, 2 * lanes, body)))


def masked(func, name):
    """The masks of accesses to memory of that name."""
    return [n.predicate for n in post_order(func.body)
            if isinstance(n, (Load, Store)) and n.buffer_var.name == name and n.predicate is not None]


@pytest.mark.parametrize("count, lanes, width", [(1, 8, 2), (3, 8, 4), (6, 8, 8), (6, 16, 8), (9, 16, 16), (17, 32, 24)])
def test_sums_fill_registers_and_results_keep_their_mask(count, lanes, width):
    after = check(fill_registers, rows(count, lanes), AVX2)
    stores = [n for n in post_order(after.body) if isinstance(n, Store) and n.buffer_var.name == "S"]
    assert {n.value.dtype.lanes for n in stores} == {width} and not masked(after, "S")
    assert masked(after, "B") and masked(after, "C")


def test_the_end_has_memory_of_its_own():
    """Whole rows before it and behind it use the array: vectors of other widths would share its registers."""
    def whole(f, lanes):
        return loop(I, 4, row(f, None, lanes))

    after = check(fill_registers, rows(6, 16, before=[whole], behind=[whole]), AVX2)
    text = body_text(after)
    assert text.count("allocate(") == 2 and not masked(after, "S") and "(float32x16*)S" in text and "(float32x8*)S" in text


def as_it_was(f, lanes):
    return Store(ARRAY, Broadcast(imm(1, "float32"), lanes), ramp(0, lanes))


def read_whole(f, lanes):
    return Store(f.data("C"), vector(ARRAY, 0, None, lanes), ramp(40, lanes))


@pytest.mark.parametrize("program", [
    rows(6, before=[as_it_was], begun=False),                 # what lies in the array counts
    rows(6, before=[as_it_was], behind=[read_whole]),         # lanes beyond the end are read later
    rows(6, before=[as_it_was], kept=8),                      # and here in the same row
    rows(6, before=[lambda f, lanes: loop(I, 4, Store(ARRAY, imm(1, "float32"), I))]),  # a place that is not constant
], ids=["not begun", "read later", "kept", "any place"])
def test_what_is_observed_stays(program):
    f = fill_registers(program, AVX2)
    assert masked(f, "S")
    check(fill_registers, program, AVX2)


def test_masks_that_the_target_lacks_stay_together():
    program = rows(6)
    assert fill_registers(program, NEON) is program
    assert not masked(check(fill_registers, rows(4, 16), NEON), "B")  # a whole vector needs none


@pytest.mark.parametrize("columns", [17, 22, 23, 45])
def test_products_have_no_mask_around_their_terms(columns):
    """Their assembly has one multiply-add for a row of the end and a term, three in an iteration, and no selection."""
    x, y = np.ones((12, 9), "float32"), np.arange(9 * columns, dtype="float32").reshape(9, columns)
    A, B = te.placeholder(x.shape, name="A"), te.placeholder(y.shape, name="B")
    k = te.reduce_axis((0, 9), name="k")
    C = te.compute((12, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    S = s.cache_write(C, "local")
    block, lanes = s[C].split(C.op.axis[1], factor=16)
    rows_outer, rows_inner = s[C].split(C.op.axis[0], factor=6)
    s[C].reorder(block, rows_outer, rows_inner, lanes)
    s[C].unroll(rows_inner)
    s[C].vectorize(lanes)
    s[S].compute_at(s[C], rows_outer)
    s[S].reorder(s[S].op.reduce_axis[0], *s[S].op.axis)
    s[S].unroll(s[S].op.axis[0])
    s[S].vectorize(s[S].op.axis[1])
    products = tedsl.build(s, [A, B, C], "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell").get_source("asm").count("vfmadd")
    whole = 12 if columns > 16 else 0
    assert products == 3 * (whole + 6 * -(-(columns % 16) // 8))
    out = np.zeros((12, columns), "float32")
    tedsl.build(s, [A, B, C])(x, y, out)
    np.testing.assert_array_equal(out, x @ y)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("operator", [topi.argmin, topi.argmax])
def test_places_and_values_that_a_let_reads_together_keep_their_masks(operator, dtype):
    """Loads of the values stand in lets: registers cut for the stores alone lost the places of the last rows."""
    x = te.placeholder((11, 8), dtype, name="x")
    places = operator(x, 1)
    data = np.random.default_rng(1).integers(-3, 4, (11, 8)).astype(dtype)
    found = np.empty(11, "int32")
    tedsl.build(topi.schedules.schedule([places]), [x, places])(data, found)
    np.testing.assert_array_equal(found, getattr(np, operator.__name__)(data, axis=1))

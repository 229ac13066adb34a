"""Products of bytes of one kind, whose words are moved by 128: corrected once for all rows that share the other bytes."""

import itertools

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.ir import build
from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Broadcast, Call, Load, Ramp, Var
from tedsl.ir.ops import DOT, REINTERPRET
from tedsl.ir.stmt import For, SeqStmt, Store, seq
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.products.move_signs import move_signs
from tedsl.target import Target
from tests.passes.programs import Function, allocate, check, imm, loop

VNNI = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server")
OTHERS = [Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"), Target("llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod")]
I, K, V = Var("i"), Var("k"), Var("v")
KINDS = ["int8", "uint8"]


def ramp(first, lanes):
    return Ramp(build.as_expr(first), imm(1), lanes)


def product(kind, rows=4, tiles=3, lanes=8, steps=5, right=None, turned=False, packs=False, noalias=True):
    """C[i, r, v] = the sum of A[i, r, 4k + t] * B[4k + t, v], for `tiles` i of `rows` r."""
    right = right or kind
    f = Function(noalias, A=(tiles * rows * steps * 4, kind), B=(steps * lanes * 4, right), C=(tiles * rows * lanes, "int32"))
    sums, copy = Var("S", "handle"), Var("copy", "handle")
    begin, body, end = [], [], []
    for r in range(rows):
        place = ramp(r * lanes, lanes)
        total = Load(f"int32x{lanes}", sums, place, None)
        row = build.mul(build.add(build.mul(I, rows), r), steps * 4)
        group = f.load("A", ramp(build.add(row, build.mul(K, 4)), 4))
        word = Call(f"{kind}x{4 * lanes}", REINTERPRET, (Broadcast(Call(INT32, REINTERPRET, (group,)), lanes),))
        at = ramp(build.mul(K, 4 * lanes), 4 * lanes)
        others = Load(f"{right}x{4 * lanes}", copy, at, None) if packs else f.load("B", at)
        begin.append(Store(sums, Broadcast(imm(0), lanes), place))
        body.append(Store(sums, Call(total.dtype, DOT, (total, others, word) if turned else (total, word, others)), place))
        end.append(f.store("C", ramp(build.mul(build.add(build.mul(I, rows), r), lanes), lanes), total))
    tile = loop(I, tiles, seq(*begin, loop(K, steps, seq(*body)), *end))
    if packs:
        packed = ramp(build.mul(V, 4 * lanes), 4 * lanes)
        tile = allocate(copy, steps * 4 * lanes, seq(loop(V, steps, Store(copy, f.load("B", packed), packed)), tile), right)
    return f.func(allocate(sums, rows * lanes, tile, "int32"))


@pytest.mark.parametrize("kind, turned, packs", list(itertools.product(KINDS, [False, True], [False, True])))
def test_corrections_stand_before_the_rows_that_share_them(kind, turned, packs):
    func = product(kind, turned=turned, packs=packs)
    after = check(move_signs, func, VNNI)
    dots = [node for node in post_order(after.body) if isinstance(node, Call) and node.op is DOT]
    assert len(dots) == 5 and all(len({str(arg.dtype.element) for arg in dot.args[1:]}) == 2 for dot in dots)
    rows = [node for node in post_order(after.body) if isinstance(node, For) and node.loop_var.name == "i"]
    assert not any(isinstance(node, Store) and node.buffer_var.name == "moved" for node in post_order(rows[0]))
    assert check(move_signs, after, VNNI) is after


@pytest.mark.parametrize("change", ["two kinds", "few rows", "may overlap", "another processor"])
def test_other_sums_stay(change):
    func = product("uint8", right="int8") if change == "two kinds" else \
        product("int8", rows=3 if change == "few rows" else 4, noalias=change != "may overlap")
    for target in OTHERS if change == "another processor" else [VNNI]:
        assert check(move_signs, func, target) is func


def test_sums_that_begin_inside_of_a_loop_are_corrected_there():
    func = product("int8")
    after = check(move_signs, func, VNNI)
    inner = [node for node in post_order(after.body) if isinstance(node, For) and node.loop_var.name == "i"]
    assert isinstance(inner[0].body, SeqStmt) and len([s for s in inner[0].body.seq if isinstance(s, Store)]) == 12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(9, 64, 70), (40, 33, 100), (4, 8, 16), (0, 8, 16)], ids=str)
def test_products_of_topi(kind, shape):
    m, k, n = shape
    ends, rng = np.iinfo(kind), np.random.default_rng(0)
    x, w = (rng.choice([ends.min, ends.max, 3], s).astype(kind) for s in ((m, k), (n, k)))
    a, b = te.placeholder((m, k), kind, name="a"), te.placeholder((n, k), kind, name="b")
    out = topi.nn.dense(a, b, out_dtype="int32")
    y = np.empty((m, n), "int32")
    tedsl.build(topi.schedules.schedule(out), [a, b, out])(x, w, y)
    np.testing.assert_array_equal(y, x.astype("int32") @ w.T.astype("int32"))


def test_a_step_of_a_tile_subtracts_nothing():
    a, b = te.placeholder((96, 256), "int8", name="a"), te.placeholder((64, 256), "int8", name="b")
    with VNNI:
        out = topi.nn.dense(a, b, out_dtype="int32")
        asm = tedsl.build(topi.schedules.schedule(out), [a, b, out], target=VNNI).get_source("asm")
    assert asm.count("vpsubd") <= asm.count("vpdpbusd") // 2

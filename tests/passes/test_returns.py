"""Early returns through every pass: what comes after one is not done, and what came before it is."""

import numpy as np
import pytest

import tedsl
from tedsl.ir import build
from tedsl.ir.calls.returns import with_result
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Var, pointer_var
from tedsl.ir.stmt import AttrStmt, Evaluate, LetStmt, Store, While
from tedsl.ir.verify import verify
from tedsl.passes.config import PassConfig, UnrollConfig
from tedsl.passes.default import lowering_pipeline, target_pipeline
from tedsl.target.target import Target
from tests.passes.programs import UNROLLED, VECTORIZED, Function, allocate, arguments, imm, loop, same_result, seq, when

I, J, V = Var("i"), Var("j"), Var("v")
TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512")


def ret(value):
    return Evaluate(build.call("tir.ret", value))


def big(f, index):
    return build.greater(f.load("A", index), imm(4.0, "float32"))


def in_the_middle(f):
    return seq(f.store("B", 0, 1), ret(f.load("A", 3)), f.store("B", 1, 1), ret(imm(9.0, "float32")))


def while_a_sum_is_made(f):
    """The element that is summed up must be in memory when the loop is left, and not only in a register."""
    total = build.add(f.load("B", 0), f.load("A", I))
    return seq(f.store("B", 0, 0), loop(I, 16, seq(f.store("B", 0, total), when(big(f, I), ret(f.load("A", I))))),
               f.store("B", 1, f.load("B", 0)))


def beside_a_sum(f):
    total = build.add(f.load("B", 0), f.load("A", build.add(build.mul(I, 4), J)))
    return loop(I, 4, seq(f.store("B", 0, 0), loop(J, 4, f.store("B", 0, total)),
                          when(build.greater(f.load("B", 0), imm(3.0, "float32")), ret(f.load("B", 0)))))


def among_unrolled_copies(f):
    return loop(I, 4, seq(f.store("B", I, f.load("A", I)), when(big(f, I), ret(build.cast("float32", I)))), UNROLLED)


def under_guards(f):
    at = build.add(build.mul(I, 4), J)
    body = seq(f.store("B", at, f.load("A", at)), when(big(f, at), ret(f.load("A", at))))
    return seq(loop(I, 4, loop(J, 4, when(build.likely(build.less(at, 13)), body))), f.store("B", 15, 7))


def under_an_invariant_condition(f):
    return loop(I, 4, loop(J, 4, when(build.greater(I, 1), seq(f.store("B", J, f.load("A", I)), ret(f.load("A", J))))))


def between_vectors(f):
    copy = lambda to: loop(V, 8, f.store("B", build.add(V, to), f.load("A", build.add(V, to))), VECTORIZED)
    return loop(I, 2, seq(copy(build.mul(I, 8)), when(big(f, I), ret(imm(1.0, "float32")))))


def with_temporary_memory(f):
    t, u = pointer_var("t", "float32"), pointer_var("u", "float32")
    first = seq(loop(I, 16, Store(t, f.load("A", I), I)), when(big(f, 0), ret(Load("float32", t, imm(5)))))
    second = seq(loop(J, 16, Store(u, Load("float32", t, J), build.sub(15, J))), f.store("B", 2, Load("float32", u, imm(1))))
    return allocate(t, 16, allocate(u, 16, seq(first, second, ret(Load("float32", u, imm(0))))))


def while_the_next_tile_is_read(f):
    t = pointer_var("t", "float32")
    fill = AttrStmt(t, "double_buffer_scope", imm(1), loop(J, 4, Store(t, f.load("A", build.add(build.mul(I, 4), J)), J)))
    use = f.store("B", I, Load("float32", t, imm(2)))
    leave = when(big(f, I), ret(Load("float32", t, imm(1))))
    return seq(loop(I, 4, allocate(t, 4, seq(fill, use, leave))), ret(imm(0.5, "float32")))


def of_a_bound_value(f):
    value = Var("value", "float32")
    product = build.add(build.mul(f.load("A", 1), f.load("A", 2)), f.load("A", 3))
    return LetStmt(value, product, seq(f.store("B", 0, value), ret(value), f.store("B", 0, 9)))


def out_of_a_while_loop(f):
    count = build.add(f.load("B", 0), imm(1.0, "float32"))
    return seq(f.store("B", 0, 0), While(build.less(f.load("B", 0), imm(9.0, "float32")), seq(
        f.store("B", 0, count), when(build.greater(f.load("B", 0), f.load("A", 0)), ret(f.load("B", 0))))))


PROGRAMS = [in_the_middle, while_a_sum_is_made, beside_a_sum, among_unrolled_copies, under_guards, under_an_invariant_condition,
            between_vectors, with_temporary_memory, while_the_next_tile_is_read, of_a_bound_value, out_of_a_while_loop]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_return_keeps_its_meaning_through_every_pass(program):
    f = Function(A=(16,), B=(16,))
    before = with_result(f.func(program(f)))
    last = [before]

    def observe(name, func):
        if func is not last[-1]:
            verify(func, flat=True)
            same_result(before, func)
            last.append(func)

    config = PassConfig(unroll=UnrollConfig(auto_max_step=64))
    compiled = tedsl.build(before)
    args = arguments(before, {})
    expected = [np.copy(a) for a in args]
    assert compiled(*args) == run(before, expected)
    np.testing.assert_array_equal(args, expected)
    after = (lowering_pipeline(config) + target_pipeline(TARGET, config))(before, observe)
    assert after.ret_type == before.ret_type

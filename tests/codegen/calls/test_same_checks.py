"""A call between functions accepts the arrays that a call from Python accepts, and refuses the others."""

import random

import numpy as np
import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentError
from tedsl.ir.evaluate import evaluate
from tests.codegen.calls.modules import built, written

N, M, K = te.var("n"), te.var("m"), te.var("k")
DIMS = [N, M, N + 1, 2 * N, N + M, tir.const(4), M - 1]


def random_buffers(draw):
    """The parameters of a function, whose shapes are of n and m; the first two determine these."""
    buffers = []
    for b in range(draw.randint(2, 3)):
        shape = [(N, M)[b] if b < 2 else draw.choice(DIMS), *([draw.choice(DIMS)] if draw.random() < 0.6 else [])]
        strides = [None, [te.var(f"s{b}{d}") for d in range(len(shape))], [te.var(f"s{b}"), 1][-len(shape):]][draw.randrange(3)]
        kind = draw.choice(["", "auto_broadcast"]) if strides else ""
        buffers.append(tir.decl_buffer(shape, "float32", f"X{b}", strides=strides, buffer_type=kind))
    return buffers


def random_array(draw, buffer, values):
    """An array of the shape that the buffer has for `values`, or of one close to it, in one of several layouts."""
    shape = [max(int(evaluate(dim, values)) + (draw.random() < 0.1) * draw.choice([-1, 1]), 0) for dim in buffer.shape]
    steps = [4 * draw.choice([0, 1, 8]) for _ in shape]
    return draw.choice([
        lambda: np.zeros(shape, "float32"),
        lambda: np.zeros(shape[::-1], "float32").T,
        lambda: np.zeros([2 * size for size in shape], "float32")[tuple([slice(None, None, 2)] * len(shape))],
        lambda: np.zeros(shape, "float32")[::-1],
        lambda: np.lib.stride_tricks.as_strided(np.zeros(300, "float32"), shape, steps)])()


def answer(function, *args):
    try:
        return function(*args)
    except ArgumentError as refusal:
        return "refused by f itself" if str(refusal).startswith("f: argument") else "refused"


@pytest.mark.parametrize("seed", range(8))
def test_a_call_between_functions_is_checked_as_one_from_python(seed):
    draw = random.Random(seed)
    buffers = random_buffers(draw)

    def inner(ib, first, *_):
        with ib.if_scope(tir.all(*[dim > 0 for dim in buffers[0].shape])):
            first[tuple([0] * len(buffers[0].shape))] = 5.0
        ib.emit(tir.ret(K))
    passed = [tir.decl_buffer([te.var(f"d{b}{d}") for d in range(len(x.shape))], "float32", f"A{b}",
                              strides=[te.var(f"t{b}{d}") for d in range(len(x.shape))]) for b, x in enumerate(buffers)]
    number = te.var("number")
    outer = written("f", lambda ib, *_: ib.emit(tir.ret(tir.call_packed("g", *passed, number))), *passed, scalars=(number,))
    modules = built([outer.with_attr("tir.noalias", False), written("g", inner, *buffers, scalars=(K,))])
    for _ in range(30):
        values = {N: draw.randint(0, 4), M: draw.randint(1, 4)}
        arrays = [random_array(draw, buffer, values) for buffer in buffers]
        found = {answer(module["f"], *arrays, 7) for module in modules}
        assert found <= {answer(modules[0]["g"], *arrays, 7), "refused by f itself"} and len(found) == 1

"""The compiled entry points and the check in Python agree on random calls: same refusals, same arguments for the kernel.

Arrays are views into a few blocks of memory, so that shapes that do not fit, odd strides and overlaps all occur.
"""

import numpy as np
import pytest

from tedsl.errors import ArgumentError
from tedsl.ir import build
from tedsl.ir.expr import Var
from tests.runtime.stand_in import StandIn, array, function

N, M = Var("n"), Var("m")
KERNELS = {
    "any strides": lambda: function(array("A", N, M, symbolic_strides=True), array("B", M, N, symbolic_strides=True), N,
                                    outputs="B", name="any"),
    "compact": lambda: function(array("A", 2, M), array("B", M, 2), M, outputs="B", name="compact"),
    "formulas": lambda: function(array("A", build.mul(N, 2), M), array("B", build.add(build.floordiv(N, 2), M), 2), M,
                                 outputs="AB", name="formulas"),
    "int64 in place": lambda: function(array("A", N, M, dtype="int64", symbolic_strides=True),
                                       array("B", N, M, dtype="int64", symbolic_strides=True), N, outputs="B", noalias=False,
                                       name="in_place"),
}


def random_view(rng, blocks):
    """A view of rank 2 (seldom 1) into one of the blocks: any offset, order, step, sign, dtype and rights."""
    block = blocks[rng.integers(len(blocks))]
    rows, columns = rng.integers(0, 5, 2) if rng.random() < 0.3 else (rng.integers(1, 5), 2)
    base = block[rng.integers(0, 8):][:48].reshape(6, 8)
    view = base[:rows, :columns] if rng.random() < 0.5 else block[:rows * columns].reshape(rows, columns)
    for change in rng.integers(0, 12, 2):
        changed = {0: view.T, 1: view[::-1], 2: view[:, ::-1], 3: base[::2, ::3][:rows, :columns],
                   4: np.broadcast_to(view[:1], view.shape), 5: view.astype("int64"), 6: view.copy(), 7: view.astype("float32")}
        view = changed.get(int(change), view)
    if rng.random() < 0.05:
        view = view.ravel()
    if rng.random() < 0.1:
        view = view.view()
        view.flags.writeable = False
    return view


def outcome(stand_in, call, args):
    """The words of the refusal, or what the kernel was given; strides of dimensions of extent 1 mean nothing."""
    stand_in.forget()
    try:
        call(*args)
    except ArgumentError as error:
        assert stand_in.seen(0) == 0
        return str(error)
    seen = [stand_in.seen(k) for k in range(16)]
    extents = [n for a in args[:2] for n in a.shape]
    if seen[0] == 1 and stand_in.signature.has_symbolic_strides():
        seen[5:9] = [stride for stride, n in zip(seen[5:9], extents) if n > 1 and args[0].size]
    return seen


def fitting_output(kind, a, number, dtype):
    """An array that is right as the second argument, if the others are."""
    if kind == "formulas":
        return np.zeros((a.shape[0] // 4 + max(number, 0), 2), dtype)
    return np.zeros(a.shape if "place" in kind else a.shape[::-1], dtype)


@pytest.mark.parametrize("kind", KERNELS)
def test_both_ways_agree(kind):
    stand_in = StandIn(KERNELS[kind]())
    rng = np.random.default_rng(7)
    dtype = "int64" if "int64" in kind else "float32"
    blocks = [np.zeros(64, dtype) for _ in range(3)]
    ran = refused = 0
    for _ in range(1500):
        a = random_view(rng, blocks)
        number = int(a.shape[rng.integers(a.ndim)]) if rng.random() < 0.9 else int(rng.integers(-2, 9))
        b = random_view(rng, blocks) if rng.random() < 0.4 else fitting_output(kind, a, number, dtype)
        first, second = (outcome(stand_in, call, (a, b, number)) for call in (stand_in.fast, stand_in.checked))
        assert first == second
        ran += isinstance(first, list)
        refused += isinstance(first, str)
    assert ran > 20 and refused > 100


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_both_ways_agree_on_constant_shapes(dtype):
    stand_in = StandIn(function(array("A", 4, 2, dtype=dtype), array("B", 2, 2, dtype=dtype), array("C", 4, 2, dtype=dtype),
                                outputs="BC", name="constant"))
    assert len(stand_in.ways) == 3
    rng = np.random.default_rng(11)
    blocks = [np.zeros(64, dtype) for _ in range(4)]
    ran = refused = 0
    for _ in range(600):
        args = [random_view(rng, blocks) if rng.random() < 0.2 else rng.choice(blocks[k:k + 2])[at:][:size].reshape(-1, 2)
                for k, size, at in zip(range(3), (8, 4, 8), rng.choice((0, 4, 8, 16, 24), 3))]
        outcomes = [outcome(stand_in, call, args) for call in stand_in.ways]
        assert outcomes[0] == outcomes[1] == outcomes[2]
        ran += isinstance(outcomes[0], list)
        refused += isinstance(outcomes[0], str)
    assert ran > 50 and refused > 100

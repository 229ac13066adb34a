"""Small flat programs for the tests of passes, and the check that every pass must hold."""

import numpy as np

from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Load, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.stmt import Allocate, For, ForKind, IfThenElse, Store, seq  # noqa: F401 - the tests use it
from tedsl.ir.text import text
from tedsl.ir.verify import verify

SERIAL, PARALLEL, VECTORIZED, UNROLLED = ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED


def imm(value, dtype="int32"):
    return build.const(value, dtype)


def loop(var, extent, body, kind=SERIAL, low=0):
    return For(var, imm(low, var.dtype), build.as_expr(extent), kind, body)


def allocate(data, size, body, dtype="float32"):
    return Allocate(data, dtype, (build.as_expr(size),), build.true(), body)


def when(condition, then, otherwise=None):
    return IfThenElse(condition, then, otherwise)


class Function:
    """Buffers A, B, ... of float32 (or `dtype`) as parameters, with `load` and `store` of flat elements."""

    def __init__(self, noalias=True, **shapes):
        self.buffers = {}
        self.scalars = []
        for name, shape in shapes.items():
            dtype = "float32"
            if isinstance(shape, tuple) and shape and isinstance(shape[-1], str):
                *shape, dtype = shape
            if isinstance(shape, Var):
                self.scalars.append(shape)
            self.buffers[name] = decl_buffer(shape, dtype, name)
        self.noalias = noalias

    def data(self, name):
        return self.buffers[name].data

    def load(self, name, index):
        index = build.as_expr(index)
        return Load(self.buffers[name].dtype.with_lanes(index.dtype.lanes), self.data(name), index)

    def store(self, name, index, value):
        return Store(self.data(name), value if not isinstance(value, (int, float)) else imm(value, self.buffers[name].dtype),
                     build.as_expr(index))

    def func(self, body, *scalars):
        handles = {Var(f"{name}_handle", "handle"): buffer for name, buffer in self.buffers.items()}
        attrs = {"global_symbol": "main", "tir.noalias": True} if self.noalias else {"global_symbol": "main"}
        return PrimFunc((*handles, *scalars), body, buffer_map=handles, attrs=attrs)


def body_text(func):
    """The statements of `func` as printed, without the header."""
    lines = text(func).splitlines()
    start = next(k for k, line in enumerate(lines) if line.rstrip().endswith("{"))
    inside = [line[2:] if line.startswith("  ") else line for line in lines[start + 1:-1]]
    return "\n".join(inside)


def arguments(func, shapes, scalars=(), seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        shape = shapes.get(buffer.name) or tuple(int(build.as_int(s)) for s in buffer.shape)
        if buffer.dtype == "bfloat16":
            made.append((rng.integers(-8, 8, shape).astype("float32").view("uint32") >> 16).astype("uint16"))
        elif buffer.dtype.is_float:
            made.append(rng.integers(-8, 8, shape).astype(str(buffer.dtype)))  # small integers: sums are exact in any order
        elif buffer.dtype.is_bool:
            made.append(rng.integers(0, 2, shape).astype(bool))
        else:
            made.append(rng.integers(0, 5, shape).astype(str(buffer.dtype)))
    return [*made, *scalars]


def same_result(before, after, scalars=(), exact=True, flat=True, **shapes):
    """Both functions do the same to random arrays, and return the same."""
    for seed in range(2):
        first = arguments(before, shapes, scalars, seed)
        second = [a.copy() if isinstance(a, np.ndarray) else a for a in first]
        assert run(before, first) == run(after, second)
        for a, b in zip(first, second):
            np.testing.assert_array_equal(a, b)


def check(step, before, *args, scalars=(), shapes=None, sizes=((),), golden=None, **options):
    """`step(before)` after all that must hold of a pass: the input is untouched, the output is well-formed and does the
    same, and a second run has nothing more to do to what it left alone. golden: the fixture; its file holds both texts."""
    shown = text(before)
    after = step(before, *args, **options)
    assert text(before) == shown
    verify(after, flat=True)
    for scalar_values in ([scalars] if sizes == ((),) else sizes):
        same_result(before, after, scalars=scalar_values, **(shapes or {}))
    if golden is not None:
        golden.sections(before=body_text(before), after=body_text(after))
    return after

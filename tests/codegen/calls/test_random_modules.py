"""Random modules of functions that call each other: compiled, they do what the interpreter does."""

import random

import numpy as np
import pytest

from tedsl import te, tir
from tests.codegen.calls.modules import both, written

SIZE = 12


def random_module(seed):
    """Functions f0, f1, ...: each writes its array, calls later ones on parts of it, and may return early."""
    draw = random.Random(seed)
    count = draw.randint(2, 5)
    dtypes = [draw.choice(["float32", "int32", "float64"]) for _ in range(count)]
    strides = [draw.random() < 0.3 for _ in range(count)]
    return [random_function(draw, number, dtypes, strides) for number in range(count)]


def random_function(draw, number, dtypes, strides):
    n, k, count, strided = te.var("n"), te.var("k"), len(dtypes), strides[number]
    buffer = tir.decl_buffer((n,), "float32", f"A{number}", strides=(te.var("s"),) if strided else None)
    kinds = [draw.choice(["store", "call", "leave", "parallel"]) for _ in range(draw.randint(1, 4))]

    def call(other, first, extent):
        """A call of function `other` on `extent` elements from `first` on."""
        if draw.random() < 0.5 and not strided:
            raw = (buffer.access_ptr("rw", offset=first), extent, *((1,) if strides[other] else ()), k + 1)
            return tir.call_extern(dtypes[other], f"f{other}", *raw)
        part = tir.decl_buffer((extent,), "float32", "part", data=buffer.data, strides=buffer.strides or None,
                               elem_offset=first * buffer.strides[0] if strided else first)
        return tir.call_intrin(dtypes[other], "tir.call_packed", f"f{other}", part, k + 1)

    def write(ib, a):
        for kind in kinds:
            if kind == "store":
                with ib.for_range(0, n, "i") as i:
                    a[i] = a[i] * 0.5 + (i + k).astype("float32")
            elif kind == "leave":
                with ib.if_scope(a[0] > draw.randint(0, 9)):
                    ib.emit(tir.ret((k * draw.randint(1, 5)).astype(dtypes[number])))
            elif kind == "call" and number + 1 < count:
                with ib.if_scope(n >= 2):
                    a[0] = a[0] + call(draw.randrange(number + 1, count), draw.randint(0, 1), n - 1).astype("float32")
            elif number + 1 < count:
                other = draw.randrange(number + 1, count)
                with ib.for_range(0, n, "i", kind="parallel") as i:
                    ib.emit(call(other, i, 1))
        ib.emit(tir.ret(a[n - 1].astype(dtypes[number])))
    return written(f"f{number}", write, buffer, scalars=(k,))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_module_does_what_the_interpreter_does(seed):
    functions = random_module(seed)
    both(functions, np.random.default_rng(seed).integers(-9, 9, SIZE).astype("float32"), 3)

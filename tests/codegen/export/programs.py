"""Programs that tests export, one of each kind: each is lowered and built once."""

import functools

import tedsl
from tedsl import te, tir
from tedsl.ir.builder import create
from tests.codegen.export.tensors import Library
from tests.lower.written.programs import function


def _lowered(name, args, *outputs, change=None):
    s = te.create_schedule([t.op for t in outputs])
    if change is not None:
        change(s)
    return tedsl.lower(s, [*args, *outputs], name=name)


@functools.cache
def module(*names):
    """The module of the programs of these names."""
    return tedsl.build([globals()[name]() for name in names])


def add():
    """C[8] = A[8] + B[8]."""
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
    return _lowered("add", [A, B], te.compute((8,), lambda i: A[i] + B[i], name="C"))


def symbolic():
    """C[n, m] = A[n, m] * k + B[m], any strides, parallel rows."""
    n, m, k = te.size_var("n"), te.var("m"), te.var("k", "int8")
    A, B = te.placeholder((n, m), "int32", name="A"), te.placeholder((m,), "int32", name="B")
    C = te.compute((n, m), lambda i, j: A[i, j] * k.astype("int32") + B[j], name="C")
    return _lowered("scale", [A, B, k], C, change=lambda s: s[C].parallel(C.op.axis[0]))


def sums():
    """C[2 * n] with a row of sums as a temporary buffer on the heap."""
    n = te.var("n")
    A = te.placeholder((2 * n, 70), name="A")
    k, j = te.reduce_axis((0, 70)), te.reduce_axis((0, 2 * n))
    rows = te.compute((2 * n,), lambda i: te.sum(A[i, k], axis=k), name="rows")
    C = te.compute((2 * n,), lambda i: te.sum(rows[j] * rows[i], axis=j), name="C")
    return _lowered("sums", [A], C)


def large():
    """C[0] = the sum of n numbers that a temporary array on the heap holds."""
    n = te.var("n", "int64")
    A, k = te.placeholder((1,), name="A"), te.reduce_axis((0, n), "k")
    numbers = te.compute((n,), lambda i: A[0] * i, name="numbers")
    return _lowered("large", [A, n], te.compute((1,), lambda i: te.sum(numbers[k], axis=k), name="C"))


def halves():
    """C[n] = exp(A[n]) * x in float16, x a number of float16."""
    n, x = te.var("n"), te.var("x", "float16")
    A = te.placeholder((n,), "float16", name="A")
    return _lowered("halves", [A, x], te.compute((n,), lambda i: te.exp(A[i]) * x, name="C"))


def matmul():
    """C[n, 16] = A[n, k] @ B[k, 16] in float64, vectorized, parallel over rows."""
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n, m), "float64", name="A"), te.placeholder((m, 16), "float64", name="B")
    k = te.reduce_axis((0, m), "k")
    C = te.compute((n, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

    def change(s):
        outer, inner = s[C].split(C.op.axis[1], 8)
        s[C].reorder(C.op.axis[0], outer, k, inner)
        s[C].vectorize(inner)
        s[C].parallel(C.op.axis[0])
    return _lowered("matmul", [A, B], C, change=change)


def extrema():
    """The least and the largest element of every row of A."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "uint8", name="A")
    j, k = te.reduce_axis((0, m), "j"), te.reduce_axis((0, m), "k")
    return _lowered("extrema", [A], te.compute((n,), lambda i: te.min(A[i, j], axis=j), name="low"),
                    te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="high"))


def greater():
    """C[i] = A[i] > x, a bool."""
    n, x = te.var("n"), te.var("x", "int64")
    A = te.placeholder((n,), "int64", name="A")
    return _lowered("greater", [A, x], te.compute((n,), lambda i: A[i] > x, name="C"))


def brain():
    """C[i] = A[i] + A[i] in bfloat16."""
    n = te.var("n")
    A = te.placeholder((n,), "bfloat16", name="A")
    return _lowered("brain", [A], te.compute((n,), lambda i: A[i] + A[i], name="C"))


def either():
    """C is A if b, else -A; b a bool."""
    n, b = te.var("n"), te.var("b", "bool")
    A = te.placeholder((n,), name="A")
    return _lowered("either", [b, A], te.compute((n,), lambda i: tir.Select(b, A[i], -A[i]), name="C"))


def many():
    """Forty outputs: C0 to C39 are A times 0 to 39."""
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    return _lowered("many", [A], *(te.compute((n,), lambda i, k=k: A[i] * float(k), name=f"C{k}") for k in range(40)))


MARKED = "A[0] is not \x011\x02, \x010\x02 or %s"  # what marks values in messages inside of the compiler, and in C


def marked():
    """Asserts that A[0] is 1, in words that look like marks of values."""
    A = tir.decl_buffer((1,), "int32", "A")
    ib = create()
    a = ib.buffer_ptr(A)
    ib.emit(lambda rest: tir.AssertStmt(a[0] == 1, tir.StringImm(MARKED), rest))
    a[0] = 2
    return function(ib.get(), A, name="marked")


def first_above():
    """Returns the position of the first element of A above x, asserting that x is positive: in float32, any strides."""
    n, x = te.var("n"), te.var("x", "float32")
    A = tir.decl_buffer((n,), "float32", "A", strides=(te.var("s"),))
    ib = create()
    a = ib.buffer_ptr(A)
    ib.emit(lambda rest: tir.AssertStmt(x > tir.const(0.0, "float32"), tir.StringImm("x must be above 0, at 100 %"), rest))
    with ib.for_range(0, n, "i") as i, ib.if_scope(a[i] > x):
        ib.emit(tir.ret(i))
    ib.emit(tir.ret(-1))
    return function(ib.get(), A, scalars=(x,), name="first_above")


def library_of(folder, name):
    """The shared library of the program `name`, for calls as from C."""
    path = folder / f"lib{name}.so"
    module(name).export_library(path)
    return Library(path, name)

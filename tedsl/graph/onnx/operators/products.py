"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.operators.elementwise import cast, number
from tedsl.graph.onnx.operators.shapes import to_shape
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.trace import ops
from tedsl.graph.value import Value


def gemm(call: Call) -> Any:
    a, b, c = call[0], call[1], call.get(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    left, right = bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0))
    columns = b.shape[0 if right else 1]
    plain = alpha == 1.0 and (c is None or (beta == 1.0 and c.shape == (columns,)))
    if plain and right and not left:
        return ops.nn.dense(a, b, c)
    made = ops.nn.matmul(a, b, c if plain else None, None, left, right)
    if plain:
        return made
    made = made if alpha == 1.0 else ops.multiply(made, number(alpha, made))
    if c is None or beta == 0.0:
        return made
    return ops.add(made, c if beta == 1.0 else ops.multiply(c, number(beta, c)))


def matmul(call: Call) -> Any:
    return product(call[0], call[1])


def product(a: Value, b: Value, out_dtype: str | None = None) -> Any:
    """numpy.matmul: vectors, matrices, and stacks of matrices that broadcast."""
    if len(b.shape) == 1:
        made = product(a, to_shape(b, (*b.shape, 1)), out_dtype)
        return to_shape(made, made.shape[:-1])
    if len(a.shape) == 1:
        made = product(to_shape(a, (1, *a.shape)), b, out_dtype)
        return to_shape(made, (*made.shape[:-2], *made.shape[-1:]))
    if len(a.shape) == 2 and len(b.shape) == 2:
        return ops.nn.matmul(a, b, None, out_dtype)
    if len(b.shape) == 2:
        rows = to_shape(a, (-1, a.shape[-1])) if a.spec.is_static else ops.reshape(a, (_total(a.shape[:-1]), a.shape[-1]))
        return to_shape(ops.nn.matmul(rows, b, None, out_dtype), (*a.shape[:-1], b.shape[-1]))
    return _stacked(a, b, out_dtype)


def _stacked(a: Value, b: Value, out_dtype: str | None) -> Any:
    outer = _broadcast(a.shape[:-2], b.shape[:-2])
    left, right = [_stack(value, outer) for value in (a, b)]
    made = ops.nn.batch_matmul(left, right, None, out_dtype, False, False)
    return to_shape(made, (*outer, a.shape[-2], b.shape[-1]))


def _stack(value: Value, outer: Sequence[Any]) -> Any:
    """One stack of matrices; a single matrix stays one."""
    own, inner = value.shape[:-2], value.shape[-2:]
    if all(isinstance(extent, int) and extent == 1 for extent in own):
        return to_shape(value, (1, *inner))
    if len(own) < len(outer) or any(here is not there and here != there for here, there in zip(own, outer)):
        value = ops.broadcast_to(value, (*outer, *inner))
    return value if len(outer) == 1 else ops.reshape(value, (_total(outer), *inner))


def _total(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


def _broadcast(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b))
    return tuple(there if isinstance(here, int) and here == 1 else here for here, there in pairs)


def einsum(call: Call) -> Any:
    subscripts = call.attribute("equation").replace(" ", "")
    return ops.einsum(subscripts, *[call[at] for at in range(len(call.inputs))])


def matmul_integer(call: Call) -> Any:
    a, b = centred(call[0], call.get(2), row=True), centred(call[1], call.get(3))
    return product(a, b, "int32")


def centred(value: Value, zero: Value | None, row: bool = False) -> Any:
    """The integers less their zero point, of int32; the value itself where there is none. row: one for each row, not column."""
    if zero is None or (zero.data is not None and not zero.data.any()):
        return value
    if zero.shape and zero.shape != (1,):
        zero = to_shape(zero, (*zero.shape, 1)) if row and len(zero.shape) == 1 else zero
    elif zero.shape:
        zero = to_shape(zero, ())
    return ops.subtract(cast(value, "int32"), cast(zero, "int32"))


def det(call: Call) -> Any:
    """Of matrices of up to three rows, by the rule of Sarrus."""
    x, rows = call[0], call.static_shape(0)[-1]
    if rows not in (1, 2, 3):
        raise Unsupported(f"determinants of {rows} rows")
    at = {(i, j): _element(x, i, j) for i in range(rows) for j in range(rows)}
    if rows == 1:
        return at[0, 0]
    if rows == 2:
        return ops.subtract(ops.multiply(at[0, 0], at[1, 1]), ops.multiply(at[0, 1], at[1, 0]))
    terms = [ops.multiply(ops.multiply(at[0, k], at[1, (k + d) % 3]), at[2, (k + 2 * d) % 3]) for d in (1, 2) for k in range(3)]
    plus, minus = [ops.add(ops.add(part[0], part[1]), part[2]) for part in (terms[:3], terms[3:])]
    return ops.subtract(plus, minus)


def _element(x: Value, row: int, column: int) -> Any:
    rank = len(x.shape)
    part = ops.strided_slice(x, [row, column], [row + 1, column + 1], axes=[rank - 2, rank - 1])
    return to_shape(part, x.shape[:-2])


OPERATORS: dict[str, Callable[[Call], Any]] = {
    "Gemm": gemm, "MatMul": matmul, "Einsum": einsum, "MatMulInteger": matmul_integer, "Det": det,
}

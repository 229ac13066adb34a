"""Operators of single elements: arithmetic, comparisons, logic, bits, casts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from onnx import helper

from tedsl.graph.apply import apply
from tedsl.graph.onnx.call import Call
from tedsl.graph.onnx.refusal import Unsupported
from tedsl.graph.onnx.tensors import DTYPES
from tedsl.graph.trace import ops
from tedsl.graph.value import Value, constant
from tedsl.runtime.array import numpy_dtype

Translation = Callable[[Call], Any]


def unary(operator: str) -> Translation:
    """An operator of topi of one value."""
    return lambda call: apply(operator, call[0])


def binary(operator: str) -> Translation:
    """An operator of topi of two values whose shapes broadcast."""
    return lambda call: apply(operator, call[0], call[1])


def folding(operator: str) -> Translation:
    """An operator of topi of two values, for any number of them."""
    return lambda call: functools.reduce(lambda a, b: apply(operator, a, b), _all(call))


def _all(call: Call) -> list[Value]:
    return [call[at] for at in range(len(call.inputs))]


def number(value: Any, like: Value) -> Any:
    """A number of the dtype of `like`."""
    return constant(value, like.dtype)


def mean(call: Call) -> Any:
    total = functools.reduce(ops.add, _all(call))
    return ops.divide(total, number(len(call.inputs), total))


def reciprocal(call: Call) -> Any:
    return ops.divide(number(1, call[0]), call[0])


def mod(call: Call) -> Any:
    return apply("fmod" if call.attribute("fmod", 0) else "floor_mod", call[0], call[1])


def power(call: Call) -> Any:
    base, exponent = call[0], call[1]
    if base.dtype == exponent.dtype and base.dtype.is_float:
        return ops.power(base, exponent)
    wide = str(base.dtype) if base.dtype.is_float else "float64"
    return cast(ops.power(cast(base, wide), cast(exponent, wide)), str(base.dtype))


def bit_shift(call: Call) -> Any:
    return apply("left_shift" if call.attribute("direction") == "LEFT" else "right_shift", call[0], call[1])


def is_infinite(call: Call) -> Any:
    x = call[0]
    above, below = call.attribute("detect_positive", 1), call.attribute("detect_negative", 1)
    found = ops.isinf(x)
    if above and below:
        return found
    if not above and not below:
        return ops.logical_and(found, ops.logical_not(found))
    side = ops.greater(x, number(0, x)) if above else ops.less(x, number(0, x))
    return ops.logical_and(found, side)


def where(call: Call) -> Any:
    return ops.where(call[0], call[1], call[2])


def clip(call: Call) -> Any:
    x = call[0]
    if call.opset < 11:
        low, high = [None if one is None else number(one, x) for one in (call.attribute("min"), call.attribute("max"))]
    else:
        low, high = call.get(1), call.get(2)
    if low is not None and high is not None and low.data is not None and high.data is not None and x.dtype.is_float:
        return ops.clip(x, float(low.data.item()), float(high.data.item())) if low.data.item() <= high.data.item() else \
            ops.full_like(x, float(high.data.item()))
    x = x if low is None else ops.maximum(x, low)
    return x if high is None else ops.minimum(x, high)


def cast(value: Value, dtype: str) -> Any:
    """The value converted to a dtype; itself if it has that. Of one number a constant."""
    if str(value.dtype) == dtype:
        return value
    if value.data is not None and value.data.size == 1 and value.dtype.is_integer:
        return constant(value.data.astype(numpy_dtype(dtype)), name=value.name)
    return ops.cast(value, dtype)


def dtype_named(number: int) -> str:
    """The dtype that ONNX gives a number."""
    name = str(helper.tensor_dtype_to_np_dtype(number))
    if name not in DTYPES:
        raise Unsupported(f"elements of {name}")
    return name


def to_dtype(call: Call) -> Any:
    return cast(call[0], dtype_named(call.attribute("to")))


def cast_like(call: Call) -> Any:
    return cast(call[0], str(call[1].dtype))


def bit_cast(call: Call) -> Any:
    dtype = dtype_named(call.attribute("to"))
    return cast(call[0], dtype) if str(call[0].dtype) == "bool" else ops.reinterpret(call[0], dtype)


def same(call: Call) -> Any:
    return call[0]


_UNARY = {"Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
          "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
          "Floor": "floor", "IsNaN": "isnan", "Log": "log", "Neg": "negative",
          "Not": "logical_not", "Round": "nearbyint", "Sigmoid": "sigmoid",
          "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh", "Relu": "nn.relu"}
_BINARY = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Equal": "equal", "Less": "less",
           "Greater": "greater", "LessOrEqual": "less_equal", "GreaterOrEqual": "greater_equal", "And": "logical_and",
           "Or": "logical_or", "Xor": "logical_xor", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
           "BitwiseXor": "bitwise_xor"}
OPERATORS: dict[str, Translation] = {
    **{name: unary(operator) for name, operator in _UNARY.items()},
    **{name: binary(operator) for name, operator in _BINARY.items()},
    "Max": folding("maximum"), "Min": folding("minimum"), "Sum": folding("add"), "Mean": mean, "Reciprocal": reciprocal,
    "Mod": mod, "Pow": power, "BitShift": bit_shift, "IsInf": is_infinite, "Where": where, "Clip": clip, "Cast": to_dtype,
    "CastLike": cast_like, "BitCast": bit_cast, "Identity": same,
}

"""Simulation of quantization in floats: the rounding and the range of a dtype that is chosen at the call."""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tedsl.tir import Expr
from topi.arguments import Code, checked
from topi.extents import as_int, axis_of, differ, opening, shown

SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = range(4)
SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}


@checked
def simulated_quantize(data: te.Tensor, out_dtype: Code, output_scale: te.Tensor | None = None,
                       output_zero_point: te.Tensor | None = None, axis: int = -1) -> te.Tensor:
    """min(max(round(data / scale) + zero_point, lowest), highest) of the chosen dtype, in the dtype of `data`.

    out_dtype: a code of SQNN_DTYPE_TO_CODE, a variable or a scalar tensor; "disable" leaves `data` as it is. scale and
    zero_point: (1,) or one for each element along `axis`.
    """
    where = opening("simulated_quantize", data)
    scale, zero = _channels(data, output_scale, axis, "output_scale", where), \
        _channels(data, output_zero_point, axis, "output_zero_point", where)
    code = _code(out_dtype)

    def limit(of: Any) -> Expr:
        bounds = [te.const(int(of(dtype).value), data.dtype) for dtype in ("int8", "uint8", "int32")]
        return te.select(code.equal(SQNN_INT8), bounds[0], te.select(code.equal(SQNN_UINT8), bounds[1], bounds[2]))

    def formula(*i: Any) -> Expr:
        quantized = te.round(data(*i) / scale(*i)) + zero(*i)
        return te.if_then_else(code.equal(SQNN_DISABLE), data(*i), te.max(te.min(quantized, limit(te.max_value)),
                                                                         limit(te.min_value)))

    return _elements("simulated_quantize", data, formula)


@checked
def simulated_dequantize(data: te.Tensor, in_dtype: Code, input_scale: te.Tensor | None = None,
                         input_zero_point: te.Tensor | None = None, axis: int = -1) -> te.Tensor:
    """(data - zero_point) * scale, in the dtype of `data`; the code "disable" leaves `data` as it is."""
    where = opening("simulated_dequantize", data)
    scale, zero = _channels(data, input_scale, axis, "input_scale", where), \
        _channels(data, input_zero_point, axis, "input_zero_point", where)
    code = _code(in_dtype)
    return _elements("simulated_dequantize", data, lambda *i: te.if_then_else(
        code.equal(SQNN_DISABLE), data(*i), (data(*i) - zero(*i)) * scale(*i)))


def _code(given: Any) -> Any:
    """The code as an expression."""
    if isinstance(given, str):
        if given not in SQNN_DTYPE_TO_CODE:
            raise ArgumentError(f'simulated quantization: there is no dtype "{given}"', hint=", ".join(SQNN_DTYPE_TO_CODE))
        given = SQNN_DTYPE_TO_CODE[given]
    if isinstance(given, te.Tensor):
        return given() if given.ndim == 0 else given(0)
    return te.const(given, "int32") if isinstance(given, int) else given


def _channels(data: te.Tensor, vector: te.Tensor | None, axis: int, name: str, where: str) -> Any:
    """A function from the indices of an element to its entry of `vector`, converted to the dtype of the data."""
    along = axis_of(axis, data.ndim, where)
    if vector is None:
        raise ArgumentError(f"{where}: {name} is missing")
    if vector.ndim > 1 or (vector.ndim == 1 and as_int(vector.shape[0]) != 1 and differ(vector.shape[0], data.shape[along])):
        raise ShapeError(f"{where}: {name} {vector.name} has the shape {shown(vector.shape)} and dimension {along} of "
                         f"{shown(data.shape)} has {data.shape[along]!r} elements", hint="(1,) or one for each of them")
    if vector.ndim == 0:
        return lambda *i: vector().astype(data.dtype)
    return lambda *i: vector(i[along] % vector.shape[0]).astype(data.dtype)


def _elements(operator: str, data: te.Tensor, formula: Any) -> te.Tensor:
    output: te.Tensor = te.compute(data.shape, formula, name=f"T_{operator}", tag="elemwise",
                                   info=te.ElementwiseOp(operator, broadcasts=True), axes="ax")
    return output

"""The softmax family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tedsl import te
from tedsl.errors import DTypeError
from topi.extents import axis_of, opening
from topi.kinds import SoftmaxOp
from topi.tag import LOG_SOFTMAX_OUTPUT, SOFTMAX_OUTPUT


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """exp(x - max(x)) / sum(exp(x - max(x))) along `axis`.

    x: any shape, a float dtype. Returns: the shape and dtype of `x`. The maximum is subtracted, so that nothing overflows;
    float16 and bfloat16 are computed in float32. Same formula as scipy.special.softmax.
    """
    return _softmax(x, axis, "softmax", te.exp)


def fast_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """softmax; TVM's name for the one that approximates exp. The exp here is a polynomial in vectors anyway."""
    return _softmax(x, axis, "fast_softmax", te.exp)


def softmax_common(x: te.Tensor, axis: int, use_fast_exp: bool) -> te.Tensor:
    """softmax, or fast_softmax with use_fast_exp."""
    return fast_softmax(x, axis) if use_fast_exp else softmax(x, axis)


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """x - max(x) - log(sum(exp(x - max(x)))) along `axis`.

    x: any shape, a float dtype. Returns: the shape and dtype of `x`. Same formula as scipy.special.log_softmax.

    Raises DTypeError for dtypes that are not floats.
    """
    along, outer, without, within = _places(x, axis, "log_softmax")
    peak = _reduced(x, along, outer, lambda i, k: _wide(x(*within(i, k))), te.max, "T_softmax_maxelem")
    total = _reduced(x, along, outer, lambda i, k: te.exp(_wide(x(*within(i, k))) - peak(*i)), te.sum, "T_softmax_expsum")
    logarithm = te.compute(outer, lambda *i: te.log(total(*i)), name="T_softmax_logsum")  # once for all of a row

    def formula(*i: Any) -> Any:
        rest = without(i)
        return (_wide(x(*i)) - peak(*rest) - logarithm(*rest)).astype(x.dtype)

    output: te.Tensor = te.compute(x.shape, formula, name="T_log_softmax", tag=LOG_SOFTMAX_OUTPUT, attrs={"axis": along},
                                   info=SoftmaxOp(x, along, (peak, total, logarithm), logarithm=True))
    return output


def _softmax(x: te.Tensor, axis: int, operator: str, exponential: Callable[[Any], Any]) -> te.Tensor:
    along, outer, without, within = _places(x, axis, operator)
    peak = _reduced(x, along, outer, lambda i, k: _wide(x(*within(i, k))), te.max, "T_softmax_maxelem")
    exp = te.compute(x.shape, lambda *i: exponential(_wide(x(*i)) - peak(*without(i))), name="T_softmax_exp",
                     attrs={"axis": along})
    total = _reduced(x, along, outer, lambda i, k: exp(*within(i, k)), te.sum, "T_softmax_expsum")
    scale = te.compute(outer, lambda *i: 1.0 / total(*i), name="T_softmax_scale")  # one division for all of a row
    output: te.Tensor = te.compute(x.shape, lambda *i: (exp(*i) * scale(*without(i))).astype(x.dtype), name="T_softmax_norm",
                                   tag=SOFTMAX_OUTPUT, attrs={"axis": along},
                                   info=SoftmaxOp(x, along, (peak, exp, total, scale)))
    return output


def _places(x: te.Tensor, axis: int, operator: str) -> tuple[int, list[Any], Callable[..., Any], Callable[..., Any]]:
    """Returns the axis counted from 0, the shape without it, a function that removes its index, and one that inserts an index
    for it.
    """
    where = opening(operator, x)
    along = axis_of(axis, x.ndim, where)
    if not x.dtype.is_float:
        raise DTypeError(f"{where}: its elements are {x.dtype}, not floats", hint="cast first: topi.cast(x, 'float32')")
    outer = [*x.shape[:along], *x.shape[along + 1:]]
    return along, outer, lambda i: (*i[:along], *i[along + 1:]), lambda i, k: (*i[:along], k, *i[along:])


def _reduced(x: te.Tensor, along: int, outer: list[Any], element: Callable[..., Any], reducer: Callable[..., Any],
             name: str) -> Any:
    k = te.reduce_axis((0, x.shape[along]), name="k")
    return te.compute(outer, lambda *i: reducer(element(i, k), axis=k), name=name)


def _wide(element: Any) -> Any:
    """The element converted to float32 if it is a 16-bit float."""
    return element.astype("float32") if element.dtype.bits < 32 else element

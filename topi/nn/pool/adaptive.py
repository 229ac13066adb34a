"""Pooling into a given number of parts: part i of `out` of n elements is i * n // out up to ceil((i + 1) * n / out).

The same parts as torch.nn.functional.adaptive_avg_pool2d.
"""

from __future__ import annotations

from typing import Any

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, opening
from topi.kinds import AdaptivePoolOp
from topi.nn.pool.layout import letters_of, lowest, quotients, require_type, wide
from topi.nn.utils import spatial


@checked
def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """The maximum or average ("max", "avg") over all of H and W (and D, where the layout has it); they become 1."""
    space = "DHW" if "D" in layout else "HW"
    return _adaptive("global_pool", space, data, (1,) * len(space), pool_type, layout)


@checked
def adaptive_pool1d(data: te.Tensor, output_size: Any, pool_type: str, layout: str = "NCW") -> te.Tensor:
    """The maximum or average over parts of W; pool_type: "max" or "avg"."""
    return _adaptive("adaptive_pool1d", "W", data, output_size, pool_type, layout)


@checked
def adaptive_pool(data: te.Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """The maximum or average over parts of H and W; output_size: the height and width of the result. pool_type: "max" or
    "avg".
    """
    return _adaptive("adaptive_pool", "HW", data, output_size, pool_type, layout)


@checked
def adaptive_pool3d(data: te.Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW") -> te.Tensor:
    """The maximum or average over parts of D, H and W; pool_type: "max" or "avg"."""
    return _adaptive("adaptive_pool3d", "DHW", data, output_size, pool_type, layout)


def _adaptive(operator: str, space: str, data: te.Tensor, output_size: Any, pool_type: str, layout: str) -> te.Tensor:
    where = opening(operator, data)
    require_type(pool_type, where)
    letters = letters_of(layout, data, space, where)
    sizes = dict(zip([letters.index(letter) for letter in space], spatial(output_size, len(space), where, "output_size")))
    if any(as_int(data.shape[d]) == 0 for d in sizes):
        raise ShapeError(f"{where}: the shape {tuple(data.shape)} has nothing to pool")
    loops = {d: te.reduce_axis((0, _longest(data.shape[d], out)), name=f"rv{n}") for n, (d, out) in enumerate(sizes.items())}
    is_max = pool_type == "max"
    nothing = lowest(data.dtype) if is_max else te.const(0, data.dtype)

    def element(*i: Any) -> Any:
        at, inside = list(i), []
        for d, out in sizes.items():
            n = data.shape[d]
            at[d] = loops[d].var if out == 1 else _start(i[d], n, out) + loops[d]
            if not _even(n, out):
                inside.append(at[d] < _behind(i[d], n, out))
        return te.if_then_else(te.all(*inside), data(*at), nothing) if inside else data(*at)

    def count(*i: Any) -> Any:
        total: Any = 1
        for d, out in sizes.items():
            n = data.shape[d]
            total = total * (_longest(n, out) if _even(n, out) else _behind(i[d], n, out) - _start(i[d], n, out))
        return total

    shape = [sizes.get(d, n) for d, n in enumerate(data.shape)]
    record = AdaptivePoolOp("max" if is_max else "sum", data, letters)
    axes = list(loops.values())
    if is_max:
        return te.compute(shape, lambda *i: te.max(element(*i), axis=axes), name="adaptive_pool_max",
                          tag="adaptive_pool_max", info=record, axes="ax")
    total = te.compute(shape, lambda *i: te.sum(element(*i).astype(wide(data.dtype)), axis=axes), name="adaptive_pool_sum",
                       tag="adaptive_pool_sum", info=record, axes="ax")
    return quotients("adaptive_pool_avg", total, data.dtype, count)


def _start(i: Any, n: Any, out: int) -> Any:
    return i * (n // out) if _even(n, out) else i * n // out


def _behind(i: Any, n: Any, out: int) -> Any:
    return ((i + 1) * n + (out - 1)) // out


def _even(n: Any, out: int) -> bool:
    """Whether all parts are known to have the same number of elements."""
    number = as_int(n)
    return out == 1 or (number is not None and number % out == 0)


def _longest(n: Any, out: int) -> Any:
    number = as_int(n)
    if number is None:
        return n if out == 1 else (n + (out - 1)) // out + 1
    return max(-(-(i + 1) * number // out) - i * number // out for i in range(out))

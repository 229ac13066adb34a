"""Kernels of tedsl as contenders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tedsl
import topi
from benchmarks.case import Contender
from tedsl import te


def shape_of(tensor: te.Tensor) -> tuple[int, ...]:
    """The shape of a tensor as numbers."""
    made: tuple[int, ...] = topi.utils.get_const_tuple(tensor.shape)
    return made


def placeholders(arrays: Sequence[Any]) -> list[te.Tensor]:
    """A placeholder for each array, named x0, x1, ..."""
    return [te.placeholder(array.shape, str(array.dtype), name=f"x{at}") for at, array in enumerate(arrays)]


def scheduled(outs: te.Tensor | Sequence[te.Tensor], inputs: Sequence[te.Tensor], arrays: Sequence[Any],
              view: Callable[..., Any] | None = None, schedule: Any = None, own: bool = False) -> Contender:
    """The kernel of tensors with the schedule of topi for this machine (or `schedule`), called with `arrays`.

    view: makes the results, one array each, an array of the layout of the reference. own: whether the results are arrays of
    tedsl, which begin at lines of memory as those that torch and onnxruntime allocate do; else of numpy.
    """
    listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    made = topi.schedules.schedule(listed) if schedule is None else schedule
    kernel = tedsl.build(made, [*inputs, *listed])
    made_by = tedsl.nd.empty if own else empty
    results: list[Any] = [made_by(shape_of(out), str(out.dtype)) for out in listed]

    def result() -> Any:
        plain = [np.asarray(one) for one in results]
        return view(*plain) if view is not None else plain[0] if len(plain) == 1 else tuple(plain)

    return Contender(lambda: kernel(*arrays, *results), result)


def operator(formula: Callable[..., Any], arrays: Sequence[Any], view: Callable[..., Any] | None = None) -> Contender:
    """The operator `formula` of topi on `arrays`."""
    inputs = placeholders(arrays)
    return scheduled(formula(*inputs), inputs, arrays, view)


def computed(formula: Callable[..., te.Tensor], *arrays: Any) -> Any:
    """What a formula gives for these arrays, as an array of tedsl: for data that is prepared once, such as packed weights."""
    contender = operator(formula, arrays)
    contender.call()
    assert contender.result is not None
    return tedsl.nd.array(contender.result())


def empty(shape: Sequence[int], dtype: str) -> Any:
    """An array for a result, also of dtypes that only ml_dtypes has."""
    if dtype == "bfloat16":
        import ml_dtypes

        return np.empty(shape, ml_dtypes.bfloat16)
    return np.empty(shape, dtype)

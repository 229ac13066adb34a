"""Creates reductions: `comm_reducer` turns a combiner and its identity into a function like te.sum.

A reduction is the whole body of a compute: `te.compute((n,), lambda i: te.sum(A[i, k], axis=k))`.
Its result has the dtype of its source: cast the source to accumulate in a wider type.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARARGS
from typing import Any, Protocol

from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ExpressionError, entry
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import CommReducer, Expr, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.lang.value import as_condition, as_value


class Reducer(Protocol):
    """The type of reducers such as te.sum, for type checkers."""

    def __call__(self, expr: Any, *values: Any, axis: Any = None, where: Any = None, init: Any = None) -> Expr:
        """The reduction of `expr` over `axis`; without an axis the combination of the arguments."""


@entry
def comm_reducer(fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce") -> Callable[..., Any]:
    """A reducer like te.sum with a combiner of your own, which must be associative and commutative.

    fcombine(x, y): the combination of two values; of two tuples for reductions of tuples.
    fidentity(dtype): its neutral value; fidentity(dtype0, dtype1, ...) a tuple of them.

    The result is called as `reducer(expr, axis, where=None, init=None)`; without an axis it combines its arguments,
    `reducer(a, b, c)`. For tuples, expr is a tuple and so is the result, which a compute must return whole:

        argmax = te.comm_reducer(lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
                                 lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
        index, value = te.compute((n,), lambda i: argmax((k, A[i, k]), axis=k))

    Raises ArgumentTypeError for what is not a function.
    """
    if not callable(fcombine) or not callable(fidentity) or not isinstance(name, str):
        raise ArgumentTypeError(f"comm_reducer takes two functions and a name, got {fcombine!r}, {fidentity!r} and {name!r}",
                                hint="te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name='prod')")
    maker = _Maker(fcombine, fidentity, name)

    def reducer(expr: Any, *values: Any, axis: Any = None, where: Any = None, init: Any = None) -> Any:
        if axis is None and values and means_axes(values[0]):
            if len(values) > 3:
                raise ArgumentTypeError(f"{name}: takes (expr, axis, where, init), and {len(values) - 3} more were given")
            axis, where, init = values[0], *(values[1:2] or (where,)), *(values[2:3] or (init,))
            values = ()
        if axis is None:
            return maker.combine([expr, *[v for v in values if v is not None]])
        if values:
            raise ArgumentTypeError(f"{name}: with an axis it takes one value to reduce, and {1 + len(values)} were given",
                                    hint="for several values at once reduce a tuple with te.comm_reducer")
        return maker.reduce(expr, axis, where, init)

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"`{name}(expr, axis, where=None, init=None)` reduces; `{name}(a, b)` combines two values."
    return reducer


class _Maker:
    """Builds the Reduce nodes of one reducer. The combiner for each tuple of dtypes is built once."""

    def __init__(self, fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str) -> None:
        self.fcombine, self.fidentity, self.name = fcombine, fidentity, name
        self.combiners: dict[tuple[tuple[DType, ...], bool], CommReducer] = {}

    def combine(self, values: list[Any]) -> Any:
        """The combination of the arguments from left to right, as one expression."""
        if len(values) < 2:
            raise ArgumentTypeError(f"{self.name}: the axis is missing",
                                    hint=f"write te.{self.name}(expr, axis=k) with k = te.reduce_axis((0, n)), "
                                         "or two values to combine")
        values = [v if isinstance(v, (tuple, int, float)) else as_value(v, self.name) for v in values]
        result = values[0]
        for value in values[1:]:
            result = self.combined(result, value)
        return result

    def reduce(self, expr: Any, axis: Any, where: Any, init: Any) -> Any:
        """The Reduce node, or a tuple of them for a tuple of sources."""
        single = not isinstance(expr, (tuple, list))
        sources = tuple([as_value(e, self.name) for e in ((expr,) if single else expr)])
        if not sources:
            raise ArgumentError(f"{self.name}: an empty tuple of values cannot be reduced")
        _check_sources(self.name, sources)
        axes = _check_axes(self.name, axis)
        combiner = self.combiner(tuple([s.dtype for s in sources]), single)
        condition = build.true() if where is None else as_condition(where, f"{self.name}(where=...)")
        start = self.start_values(init, sources, single)
        outputs = tuple([Reduce(combiner, sources, axes, condition, i, start) for i in range(len(sources))])
        return outputs[0] if single else outputs

    def combiner(self, dtypes: tuple[DType, ...], single: bool) -> CommReducer:
        """The combiner for values of `dtypes`, its results and identity checked."""
        if (dtypes, single) not in self.combiners:
            self.combiners[dtypes, single] = self.make_combiner(dtypes, single)
        return self.combiners[dtypes, single]

    def make_combiner(self, dtypes: tuple[DType, ...], single: bool) -> CommReducer:
        left, right = _parameter_names(self.fcombine, self.name)
        number = (lambda base, i: base) if single else (lambda base, i: f"{base}_{i}")
        lhs = tuple([Var(number(left, i), of) for i, of in enumerate(dtypes)])
        rhs = tuple([Var(number(right, i), of) for i, of in enumerate(dtypes)])
        combined = self.combined(lhs[0], rhs[0]) if single else self.combined(lhs, rhs)
        result = self.parts(combined, dtypes, "combiner", single)
        identity = self.parts(self.fidentity(*dtypes), dtypes, "identity", single)
        return CommReducer(lhs, rhs, result, identity)

    def combined(self, a: Any, b: Any) -> Any:
        """The value of fcombine for two values (or tuples); ArgumentError if they are not tuples of the length that it
        takes.
        """
        try:
            return self.fcombine(a, b)
        except (TypeError, IndexError, ValueError) as error:
            takes = _parameter_count(self.fidentity)
            if takes is None or takes == (len(a) if isinstance(a, tuple) else 1):
                raise
            wanted = f"a tuple of {takes} values" if takes != 1 else "one value"
            given = f"a tuple of {len(a)}" if isinstance(a, tuple) else "one value"
            raise ArgumentTypeError(f"{self.name} takes {wanted}, as its fidentity does, and {given} is reduced",
                                    hint=f"{self.name}((index, value), axis=k), with as many values as fidentity has arguments"
                                    if takes != 1 else f"{self.name}(value, axis=k)") from error

    def parts(self, made: Any, dtypes: tuple[DType, ...], what: str, single: bool) -> tuple[Expr, ...]:
        """The result `made` of fcombine or fidentity as one expression for each dtype; refuses a result of another length or
        dtype.
        """
        if made is None:
            raise ExpressionError(f"{self.name}: the {what} returned None", hint="does the function end with `return`?")
        items = (made,) if single and not isinstance(made, (tuple, list)) else made
        if not isinstance(items, (tuple, list)) or len(items) != len(dtypes):
            count = len(items) if isinstance(items, (tuple, list)) else 1
            raise ExpressionError(f"{self.name}: {len(dtypes)} value(s) are reduced and the {what} returned {count}",
                                  hint="return a tuple with one value for each that is reduced")
        exprs = tuple([as_value(item, f"{self.name}, {what}", None if what == "combiner" else of)
                       for item, of in zip(items, dtypes)])
        for position, (expr, of) in enumerate(zip(exprs, dtypes)):
            if expr.dtype is not of:
                which = "" if single else f" number {position}"
                raise DTypeError(f"{self.name}: the {what}'s value{which} is of dtype {expr.dtype}, "
                                 f"the reduced values are {of}",
                                 hint=f"write .astype({str(of)!r}) there, te.const(value, dtype) with the dtype that fidentity "
                                      "is given, or cast what is reduced")
        return exprs

    def start_values(self, init: Any, sources: tuple[Expr, ...], single: bool) -> tuple[Expr, ...]:
        if init is None:
            return ()
        given = (init,) if not isinstance(init, (tuple, list)) else tuple(init)
        if len(given) != len(sources):
            raise ArgumentError(f"{self.name}: {len(sources)} value(s) are reduced and init has {len(given)}")
        values = []
        for value, source in zip(given, sources):
            expr = as_value(value, f"{self.name}(init=...)", source.dtype)
            if expr.dtype is not source.dtype:
                raise DTypeError(f"{self.name}: init is of dtype {expr.dtype}, the reduced values are {source.dtype}",
                                 hint=f"cast one of them: .astype({str(source.dtype)!r})")
            values.append(expr)
        return tuple(values)


def _parameter_names(fcombine: Callable[..., Any], name: str) -> tuple[str, str]:
    code = getattr(fcombine, "__code__", None)
    if code is None:
        return "x", "y"
    if code.co_argcount != 2:
        raise ArgumentTypeError(f"{name}: the combiner takes 2 arguments, the two values (or tuples) to combine, "
                                f"not {code.co_argcount}")
    return code.co_varnames[0], code.co_varnames[1]


def _parameter_count(function: Callable[..., Any]) -> int | None:
    """The number of positional arguments that `function` takes; None if that is variable."""
    code = getattr(function, "__code__", None)
    return None if code is None or code.co_flags & CO_VARARGS or function.__defaults__ else code.co_argcount


def _check_sources(name: str, sources: tuple[Expr, ...]) -> None:
    for source in sources:
        if isinstance(source, Reduce):
            raise nested_reduction(f"{name} of a reduction")
        if source.dtype.is_handle:
            raise DTypeError(f"{name}: a {source.dtype} cannot be reduced")


def nested_reduction(where: str) -> ExpressionError:
    """The error for a reduction that is not the whole body of a compute."""
    return ExpressionError(
        f"{where}: a reduction must be the whole body of its compute",
        hint="give the reduction its own compute, T = te.compute(shape, lambda i: te.sum(A[i, k], axis=k)), and read T[i] in "
             "the next one; to reduce over several axes at once write axis=[k, l]")


def _check_axes(name: str, axis: Any) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for item in axes:
        if not isinstance(item, IterVar) or not item.is_reduction:
            raise _not_an_axis(name, item)
    repeated = [a.name for position, a in enumerate(axes) if any(a.var is b.var for b in axes[:position])]
    if repeated:
        raise ArgumentError(f"{name}: the reduce axis {repeated[0]} is named twice in axis=[{', '.join(a.name for a in axes)}]",
                            hint="declare a second te.reduce_axis, or name it once")
    return axes


def _not_an_axis(name: str, item: Any) -> ArgumentTypeError:
    kind = f"the axis {item.name} of a shape" if isinstance(item, IterVar) else f"{shown(item)} ({type(item).__name__})"
    return ArgumentTypeError(f"{name}: axis is {kind}, not a reduce axis",
                             hint="declare k = te.reduce_axis((0, n), name='k') and write axis=k")


def means_axes(value: object) -> bool:
    """Whether a second positional argument is an axis or a list of axes. True also for the axis of a shape, which is refused
    later.
    """
    return isinstance(value, IterVar) or (isinstance(value, (list, tuple)) and not (value and isinstance(value[0], Expr)))

"""value_and_grad: a function and its gradients as one kernel. It is traced with tensors without values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tedsl import te
from tedsl.autodiff.gradient import gradient
from tedsl.autograd.arguments import flattened, key_of, rebuilt
from tedsl.autograd.formula import Formula
from tedsl.autograd.formulas import extents
from tedsl.autograd.modes import no_grad
from tedsl.autograd.operators import Operators
from tedsl.autograd.recording import run
from tedsl.autograd.traced import Trace, Traced
from tedsl.autograd.value import Value, result
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, type_in_words
from tedsl.ir.dtype import DType
from tedsl.record import record


class Symbol(Operators, Traced):
    """What a function that is traced gets for a tensor: it has a shape, a dtype and operators, and no values."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return extents(self.formula)

    @property
    def dtype(self) -> DType:
        return self.formula.dtype

    @property
    def ndim(self) -> int:
        return self.formula.ndim

    @property
    def requires_grad(self) -> bool:
        return False

    def detach(self) -> Symbol:
        raise ArgumentTypeError("detach: in a function that is compiled as a whole a part cannot be left out of the gradient",
                                hint="pass it as an argument by which it is not differentiated")

    def _operand(self, other: Any) -> Any:
        return other

    def _extents(self) -> tuple[int, ...]:
        return self.shape

    def _without_values(self, *_: object) -> NoReturn:
        raise ArgumentTypeError("a tensor of a function that is compiled as a whole has no values while it is traced",
                                hint="choose by elements, op(topi.where)(condition, a, b); return what is to be looked at")

    __bool__ = __float__ = __int__ = __iter__ = __array__ = numpy = item = tolist = backward = _without_values

    def __repr__(self) -> str:
        return f"<traced {self.dtype}{list(self.shape)}>"


Traced.plain = Symbol


@record(eq=False)
class _Compiled:
    """A step for arguments of certain kinds.

    captured: the tensors that it reads besides its arguments. results: the structure that it returns, with the number of an
    output of the formula in place of each tensor.
    """

    formula: Formula
    captured: tuple[Value, ...]
    results: Any


class Step:
    """What `value_and_grad` returns."""

    def __init__(self, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> None:
        self.function = function
        self.argnums = argnums if isinstance(argnums, int) else tuple(argnums)
        self.has_aux = has_aux
        self._compiled: dict[Any, _Compiled] = {}

    def __call__(self, *args: Any) -> Any:
        leaves = [leaf for leaf in flattened(args) if isinstance(leaf, Value)]
        step = self._step(args, leaves)
        kinds = step.formula.kinds
        outs = run(step.formula.kernel, [leaf._array for leaf in (*leaves, *step.captured)], kinds)
        made = [result(Value.plain, out, kind, None, 0) for out, kind in zip(outs, kinds)]
        return rebuilt(step.results, lambda at: None if at is None else made[at])

    def formula(self, *args: Any) -> Formula:
        """The formula of the step for arguments like these: its inputs, outputs and kernel."""
        return self._step(args, [leaf for leaf in flattened(args) if isinstance(leaf, Value)]).formula

    def _step(self, args: tuple[Any, ...], leaves: Sequence[Value]) -> _Compiled:
        key = key_of(args, False)
        try:
            known = self._compiled.get(key)
        except TypeError:
            raise ArgumentTypeError("value_and_grad: what is no tensor becomes a part of the kernel, and is to be hashable",
                                    hint="pass an array of numpy as a tensor: autograd.from_numpy(array)") from None
        return known or self._compiled.setdefault(key, self._traced(args, leaves))

    def _traced(self, args: tuple[Any, ...], leaves: Sequence[Value]) -> _Compiled:
        inputs = [te.placeholder(leaf._kind.shape, leaf._kind.dtype, name=f"x{at}") for at, leaf in enumerate(leaves)]
        waiting = iter(inputs)
        symbols = rebuilt(args, lambda leaf: Symbol(next(waiting)) if isinstance(leaf, Value) else leaf)
        with Trace() as trace, no_grad():
            made = self.function(*symbols)
            value, aux = made if self.has_aux and isinstance(made, tuple) and len(made) == 2 else (made, ())
            _check_value(value, self.has_aux)
            returned = [leaf.formula for leaf in flattened(aux) if isinstance(leaf, Traced)]
        chosen = self._chosen(symbols)
        wanted = [leaf.formula for leaf in flattened(chosen) if _has_gradient(leaf)]
        if not wanted:
            raise DTypeError("value_and_grad: the arguments by which it differentiates hold no tensor of floats",
                             hint="argnums says which they are: 0 is the first")
        numbers = iter(range(1 + len(returned) + len(wanted)))
        first = next(numbers)
        of_aux = rebuilt(aux, lambda leaf: next(numbers) if isinstance(leaf, Traced) else None)
        of_grads = rebuilt(chosen, lambda leaf: next(numbers) if _has_gradient(leaf) else None)
        outputs = [value.formula, *returned, *gradient(value.formula, wanted)]
        name = getattr(self.function, "__name__", "step").strip("<>")
        formula = Formula(f"{name}_and_grad", [*inputs, *[stands for _, stands in trace.captured.values()]], outputs)
        return _Compiled(formula, tuple(captured for captured, _ in trace.captured.values()),
                         ((first, of_aux), of_grads) if self.has_aux else (first, of_grads))

    def _chosen(self, symbols: Sequence[Any]) -> Any:
        numbers = [self.argnums] if isinstance(self.argnums, int) else list(self.argnums)
        wrong = next((at for at in numbers if not 0 <= at < len(symbols)), None)
        if wrong is not None:
            raise ArgumentError(f"value_and_grad: argnums has {wrong}, and the call has {len(symbols)} arguments")
        return symbols[self.argnums] if isinstance(self.argnums, int) else tuple(symbols[at] for at in numbers)


def _has_gradient(leaf: Any) -> bool:
    return isinstance(leaf, Traced) and leaf.formula.dtype.is_float


def _check_value(value: Any, has_aux: bool) -> None:
    if not isinstance(value, Symbol):
        raise ArgumentTypeError(f"value_and_grad: the function returned {type_in_words(value)}, not a tensor computed from its "
                                "arguments", hint="with has_aux=True it returns (value, other results)" if not has_aux else "")
    if value.shape != ():
        raise ShapeError(f"value_and_grad: the function returned a tensor of shape {value.shape}, and a value has none",
                         hint="sum it: loss.sum()")
    if not value.dtype.is_float:
        raise DTypeError(f"value_and_grad: the value is of dtype {value.dtype}, and only floats have gradients")


def value_and_grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Step:
    """A function that returns (value, gradients), where `function(*args)` is the value: one kernel computes all of it.

    The function is traced once for each shape and dtype of its tensors, which may stand in tuples, lists and dicts: it gets
    tensors without values, and may not branch on them. Tensors that it reads besides are read by each call as they are then.
    argnums: the arguments by which it differentiates; gradients have their structure. has_aux: it returns (value, others), and
    the result is ((value, others), gradients).
    """
    if not callable(function):
        raise ArgumentTypeError(f"value_and_grad: {function!r} is not a function", hint="value_and_grad(loss)(weights, x)")
    return Step(function, argnums, has_aux)

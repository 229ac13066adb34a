"""Function: operations whose derivative is written by the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy

from tedsl.autograd.kinds import Kind
from tedsl.autograd.modes import MODE, no_grad
from tedsl.autograd.node import Gradient, Node, line_of
from tedsl.autograd.recording import edges_of, released
from tedsl.autograd.traced import Traced
from tedsl.autograd.value import Changes, Value, place, result
from tedsl.errors import ArgumentError, ArgumentTypeError, ShapeError, TedslError, type_in_words


class FunctionNode(Node):
    """The node of a Function that ran, and what its `forward` and `backward` get as `ctx`. Both may set attributes of it.

    needs_input_grad: for each argument whether its gradient is needed.
    """

    def __init__(self, function: type[Function], args: Sequence[Any], needs: tuple[bool, ...]) -> None:
        super().__init__(edges_of(args) if any(needs) else (), place())
        self.function = function
        self.needs_input_grad = needs
        self._kinds = tuple(arg._kind if isinstance(arg, Value) else None for arg in args)
        self._saved: tuple[Any, ...] | None = ()  # Values, and (number of a result, its array, its changes, their count)
        self._counts: tuple[int, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._results: tuple[Kind, ...] = ()
        self._zeros = True

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    @property
    def outputs(self) -> int:
        return len(self._results)

    # --- what forward calls -------------------------------------------------------------------------------------------

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for `backward`: arguments, results or others; None may stand among them."""
        self._saved = self._marked("save_for_backward", tensors, "keep other values as attributes: ctx.axis = axis")

    def mark_dirty(self, *tensors: Any) -> None:
        """Says that `forward` changed these arguments in place. They have to be among its results."""
        self._dirty = self._marked("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Says that these results have no gradient."""
        self._constant = self._marked("mark_non_differentiable", tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for results whose gradient is not needed (the default), or None."""
        self._zeros = value

    @staticmethod
    def _marked(where: str, tensors: tuple[Any, ...], hint: str = "") -> tuple[Any, ...]:
        for one in tensors:
            if one is not None and not isinstance(one, Value):
                raise ArgumentTypeError(f"{where} takes tensors, not {type_in_words(one)}", hint=hint)
        return tensors

    # --- what backward reads ------------------------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was kept. Refused where it was changed in place since, and after it was freed."""
        if self._saved is None:
            raise released(self)
        return tuple(self._unpacked(one, count) for one, count in zip(self._saved, self._counts or (0,) * len(self._saved)))

    def _unpacked(self, one: Any, count: int) -> Any:
        if one is None:
            return None
        changes: Changes = one[2] if isinstance(one, tuple) else one.changes()
        if self._counts and changes.count != count:
            raise TedslError(f"backward: {self.name()}, recorded at {self.line}, needs a tensor that it saved, whose elements "
                             f"were changed in place at {line_of(changes.place)} (version {changes.count}, saved at version "
                             f"{count})",
                             hint="compute a new tensor there, x = x + y for x += y, or change a copy: x.clone()")
        if isinstance(one, tuple):
            number, array, _, _ = one
            return result(Value.plain, array, self._results[number], self, number)
        return one

    # --- running ------------------------------------------------------------------------------------------------------

    def finish(self, made: Any, args: Sequence[Any]) -> Any:
        """The results of `forward` with their place in the graph."""
        single = isinstance(made, Value)
        outs = [made] if single else list(made) if isinstance(made, (tuple, list)) else []
        if not outs or not all(isinstance(out, Value) for out in outs):
            raise ArgumentTypeError(f"{self.function.__name__}: forward returned {type_in_words(made)}, not tensors",
                                    hint="it returns a tensor, or a tuple of tensors")
        self._results = tuple(out._kind for out in outs)
        for tensor in self._dirty:
            _changed(tensor, self, any(out is tensor for out in outs))
        results = [self._placed(number, out, args) for number, out in enumerate(outs)]
        saved = [_without_circle(tensor, outs, results) for tensor in self._saved or ()]
        self._counts = tuple(0 if one is None else one[3] if isinstance(one, tuple) else one.changes().count for one in saved)
        self._saved = tuple(saved)
        return results[0] if single else tuple(results)

    def _placed(self, number: int, out: Any, args: Sequence[Any]) -> Any:
        dirty = any(out is tensor for tensor in self._dirty)
        if any(out is arg for arg in args) and not dirty:  # an argument as it is: another tensor of the same memory
            changes = out.changes()
            out = result(Value.plain, out._array, out._kind, None, 0)
            out._changes = changes
        if any(self.needs_input_grad) and out._kind.is_float and not any(out is tensor for tensor in self._constant):
            out.grad_fn, out.output_nr, out._requires_grad = self, number, True
        return out

    def passed(self, heads: Sequence[Gradient], create_graph: bool, keep: bool) -> Sequence[tuple[Gradient, bool]]:
        plain = Value.plain
        if self._zeros:
            heads = [result(plain, numpy.zeros(kind.shape, kind.numpy_dtype), kind, None, 0) if head is None else head
                     for head, kind in zip(heads, self._results)]
        with _arguments_in_words(self.function, self.function.backward, (self, *heads)):
            made = self.function.backward(self, *heads)
        if not keep and self._saved:
            self._saved = None
        return [(gradient, False) for gradient in self._checked(made)]

    def _checked(self, made: Any) -> list[Any]:
        where = f"the backward of {self.function.__name__}"
        given = list(made) if isinstance(made, (tuple, list)) else [made]
        while len(given) > len(self._kinds) and given[-1] is None:
            given.pop()
        if len(given) != len(self._kinds):
            raise ArgumentError(f"{where} returned {len(given)} gradient{'s' * (len(given) != 1)}, and its forward took "
                                f"{len(self._kinds)} argument{'s' * (len(self._kinds) != 1)}",
                                hint="it returns one for each argument of forward after ctx; None for those without")
        for at, (gradient, kind) in enumerate(zip(given, self._kinds)):
            if gradient is None:
                continue
            if not isinstance(gradient, Value):
                raise ArgumentTypeError(f"{where} returned {type_in_words(gradient)} for argument {at}, not a tensor",
                                        hint="None stands for no gradient")
            if kind is not None and self.needs_input_grad[at] and gradient._kind is not kind:
                raise ShapeError(f"{where} returned a gradient {gradient._kind} for argument {at}, which is {kind}",
                                 hint="a gradient has the shape and dtype of its argument")
        return given


class Function:
    """An operation with a derivative of the program's own: a subclass has

        @staticmethod
        def forward(ctx, x, ...):        # computes; ctx.save_for_backward(...) keeps what backward needs
        @staticmethod
        def backward(ctx, grad, ...):    # a gradient for each result comes in, one for each argument goes out

    and is called as `Square.apply(x)`. What forward computes is not recorded; what backward computes is, in a pass that
    creates a graph.
    """

    def __new__(cls, *_: Any, **__: Any) -> Any:
        raise ArgumentTypeError(f"{cls.__name__} is a Function, of which there are no objects",
                                hint=f"{cls.__name__}.apply(x) runs its forward and records it")

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        raise TedslError("Function: forward is not written", hint="write it as a static method: def forward(ctx, x)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise TedslError(f"{ctx.function.__name__}: backward is not written",
                         hint="write it as a static method: def backward(ctx, gradient)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Runs `forward`; records it where an argument needs a gradient."""
        if any(isinstance(arg, Traced) for arg in args):
            raise ArgumentTypeError(f"{cls.__name__} has a derivative of its own, and cannot be compiled within a function",
                                    hint="write it as a function of te with te.register_gradient, and use op(function)")
        needs = tuple(isinstance(arg, Value) and MODE.recording and arg._requires_grad for arg in args)
        node = FunctionNode(cls, args, needs)
        with no_grad(), _arguments_in_words(cls, cls.forward, (node, *args)):
            made = cls.forward(node, *args)
        return node.finish(made, args)


@contextmanager
def _arguments_in_words(cls: type[Function], method: Callable[..., Any], args: Sequence[Any]) -> Iterator[None]:
    """Context manager for a call of a method that a program wrote: says what the method is to take, if it does not."""
    try:
        yield
    except TypeError as cause:
        try:
            signature(method).bind(*args)
        except TypeError as misfit:
            name, what = ("forward", "an argument of apply each") if method is cls.forward else \
                ("backward", "a gradient for each result")
            raise ArgumentTypeError(f"the {name} of {cls.__name__} cannot be called with {len(args)} arguments, "
                                    f"ctx and {what}: {misfit}",
                                    hint=f"write it as a static method: def {name}(ctx, ...)") from None
        raise cause


def _changed(tensor: Any, node: FunctionNode, is_result: bool) -> None:
    if not is_result:
        raise ArgumentError(f"{node.function.__name__}: an argument that is marked dirty is not among the results",
                            hint="return the tensor that forward changed in place")
    if tensor._requires_grad and tensor.grad_fn is None and MODE.recording:
        raise TedslError(f"{node.function.__name__} changes a leaf in place that requires a gradient",
                         hint="pass a copy: x.clone()")
    changes = tensor.changes()
    changes.count += 1
    changes.place = node.place


def _without_circle(tensor: Any, outs: Sequence[Any], results: Sequence[Any]) -> Any:
    """What is kept of a tensor: of a result its array alone, for results keep their node."""
    for number, (out, made) in enumerate(zip(outs, results)):
        if tensor is out and made.grad_fn is not None:
            changes = made.changes()
            return number, made._array, changes, changes.count
    return tensor

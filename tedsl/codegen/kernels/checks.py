"""The checks that every call of a kernel makes: variables, shapes, strides and overlap of its arguments.

`Checks` says what is required, in which order, and in which words. In what the conditions are computed (instructions of LLVM,
expressions), what the arguments are, and what happens where one does not hold, subclasses say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.ir.expr import EQ, GE, LE, LT, Add, Expr, IntImm, Mul, SizeVar, Sub, Var
from tedsl.runtime.arguments import words
from tedsl.runtime.signature import Binding, Signature, TensorParam

V = TypeVar("V")  # a value while the checks are written: a 64-bit integer, a float, an address, or a condition
Words = Callable[[], str]  # what is wrong where a requirement does not hold; called while the code that says it is written


class Checks(ABC, Generic[V]):
    """Writes the checks of the arguments of kernels of the signature `sig`.

    data, dims: the address of the first element and the extents of each array by its position; the subclass fills them in.
    values: those of the variables of the signature that are known so far.
    """

    def __init__(self, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None) -> None:
        self.sig, self.general, self.compact = sig, general, compact
        self.data: dict[int, V] = {}
        self.dims: dict[int, list[V]] = {}
        self.values: dict[Var, V] = {}

    # --- what subclasses compute with ---

    @abstractmethod
    def number(self, value: int) -> V:
        """Returns a constant of 64 bits."""

    @abstractmethod
    def arithmetic(self, kind: type[Expr], a: V, b: V) -> V:
        """Returns the sum, difference or product of two integers, which wraps at 64 bits. kind: Add, Sub or Mul."""

    @abstractmethod
    def compared(self, kind: type[Expr], a: V, b: V) -> V:
        """Returns a comparison of two integers. kind: EQ, LT, LE or GE."""

    @abstractmethod
    def divided(self, value: V, divisor: int) -> tuple[V, V]:
        """Returns the condition that the constant `divisor` divides `value`, and the quotient if it does."""

    @abstractmethod
    def chosen(self, condition: V, yes: V, no: V) -> V:
        """Returns one of two integers."""

    @abstractmethod
    def either(self, a: V, b: V) -> V:
        """Returns the condition that one of two holds."""

    @abstractmethod
    def expression(self, expr: Expr) -> V:
        """Returns the value of an integer expression of a shape: the operators that `runtime/shapes.py` evaluates."""

    @abstractmethod
    def moved(self, address: V, count: V, size: int) -> V:
        """Returns the address `count` elements of `size` bytes behind `address`."""

    @abstractmethod
    def not_behind(self, first: V, second: V) -> V:
        """Returns the condition that one address is at most another one."""

    # --- what subclasses decide ---

    @abstractmethod
    def require(self, condition: V, problem: Words) -> None:
        """Writes that the kernel may run only where `condition` holds: elsewhere the call is refused."""

    @abstractmethod
    def shown(self, value: V) -> str:
        """Returns what stands for an integer in words."""

    @abstractmethod
    def scalar(self, binding: Binding) -> V:
        """Returns the value of the scalar argument of `binding`, and requires that it fits its dtype."""

    def may_meet(self, k: int, other: int) -> bool:
        """Tells whether the memory of two arrays may overlap; a subclass may know that it does not."""
        return True

    # --- variables and shapes ---

    def bind_scalars(self) -> None:
        """Computes the variables that scalar arguments give."""
        for binding in self.sig.bindings:
            if binding.kind == "offset":
                self.values[binding.var] = self.number(0)
            elif binding.kind == "scalar":
                self.values[binding.var] = self.scalar(binding)

    def require_fit(self, var: Var, value: V, below: Words, beyond: Words) -> None:
        """below: words for a size below 0; beyond: for any other value that the dtype of `var` lacks."""
        low, high = (0 if isinstance(var, SizeVar) else var.dtype.min_value), var.dtype.max_value
        if low is not None and low > -2**63:
            self.require(self.compared(GE, value, self.number(low)), below if isinstance(var, SizeVar) else beyond)
        if high is not None and high < 2**63 - 1:
            self.require(self.compared(LE, value, self.number(high)), beyond)

    def bind(self, kind: str, given: dict[int, list[V]] | None = None) -> None:
        """Computes the variables that dimensions (or strides) of the arguments determine, and requires that they fit their
        dtypes.
        """
        for binding in self.sig.bindings:
            if binding.kind == kind and binding.expr is not None:
                self.solve(binding, (given or self.dims)[binding.param][binding.dim])

    def solve(self, binding: Binding, given: V) -> None:
        sig, value = self.sig, given
        if binding.expr is not None and binding.expr is not binding.var:
            self.values[binding.var] = self.number(0)
            value = self.arithmetic(Sub, value, self.expression(binding.expr))
        if binding.scale != 1:
            divides, value = self.divided(value, binding.scale)
            self.require(divides, lambda: words.insoluble(sig, binding, self.shown(given)))
        self.values[binding.var] = value
        self.require_fit(binding.var, value,
                         lambda: words.below_zero(sig, binding, self.shown(given), self.shown(value)),
                         lambda: words.wide(sig, binding, self.shown(given), self.shown(value)))

    def check_shapes(self) -> None:
        for k, param in self.sig.tensors():
            for dim, expr in zip(self.dims[k], param.shape):
                if not self.is_known(dim, expr):
                    self.require(self.compared(EQ, dim, self.expression(expr)), self.shape_words(k, param))

    def is_known(self, given: V, expr: Expr) -> bool:
        """Tells whether `given` is where the value of `expr` comes from."""
        return isinstance(expr, Var) and self.values.get(expr) is given

    def shape_words(self, k: int, param: TensorParam) -> Words:
        return lambda: words.wrong_shape(self.sig, k, param, self.tuple_text(self.dims[k]), self.wanted_text(param.shape),
                                         lambda var: self.shown(self.values[var]))

    def tuple_text(self, values: list[V]) -> str:
        return words.tuple_text([self.shown(value) for value in values])

    def wanted_text(self, exprs: tuple[Expr, ...]) -> str:
        return self.tuple_text([self.expression(expr) for expr in exprs])

    # --- strides and overlap ---

    def check_strides(self, k: int, param: TensorParam, strides: list[V]) -> None:
        for dim, given, expr in zip(self.dims[k], strides, param.strides):
            if not self.is_known(given, expr):
                self.require(self.is_stride(dim, given, self.expression(expr)), lambda: words.wrong_strides(
                    self.sig, k, self.tuple_text(strides), self.wanted_text(param.strides)))

    def is_stride(self, dim: V, given: V, wanted: V) -> V:
        """Returns the condition that the stride `given` of a dimension of extent `dim` serves."""
        return self.compared(EQ, given, wanted)

    def check_overlap(self, strides: dict[int, list[V]]) -> None:
        """Requires that the bounds of no output overlap those of another array."""
        if not self.sig.noalias:
            return
        tensors = dict(self.sig.tensors())
        if len(tensors) < 2 or not any(p.written for p in tensors.values()):
            return
        self.compare({k: self.bounds(k, p, strides.get(k)) for k, p in tensors.items()}, strides)

    def compare(self, bounds: dict[int, tuple[V, V]], strides: dict[int, list[V]]) -> None:
        """Requires that of the arrays with these `bounds` no output meets another one."""
        tensors = dict(self.sig.tensors())
        for k, param in tensors.items():
            for other, beside in tensors.items():
                if param.written and other != k and (other > k or not beside.written) and self.may_meet(k, other):
                    self.require(self.apart(bounds[k], bounds[other]), self.overlap_words(k, other, strides))

    def overlap_words(self, k: int, other: int, strides: dict[int, list[V]]) -> Words:
        compact = k not in strides and other not in strides
        return lambda: self.overlap_text(k, words.position(self.sig, other), compact)

    def overlap_text(self, k: int, other: str, compact: bool) -> str:
        """Returns what is said where the bounds of an output meet those of `other`. compact: so do their elements."""
        if compact:
            return words.overlap(self.sig, k, other)
        return words.possible_overlap(self.sig, k, other, "one begins before the other ends")

    def apart(self, first: tuple[V, V], second: tuple[V, V]) -> V:
        """Returns the condition that two ranges of addresses are disjoint."""
        return self.either(self.not_behind(first[1], second[0]), self.not_behind(second[1], first[0]))

    def bounds(self, k: int, param: TensorParam, strides: list[V] | None) -> tuple[V, V]:
        """Returns the address of the first byte of an array and that of the first byte behind it."""
        if not strides:
            return self.data[k], self.moved(self.data[k], self.bytes_of(k, param), 1)
        low, high, zero = self.number(0), self.number(1), self.number(0)
        for dim, step in zip(self.dims[k], strides):
            reach = self.arithmetic(Mul, self.arithmetic(Sub, dim, self.number(1)), step)
            negative = self.compared(LT, reach, zero)
            low = self.arithmetic(Add, low, self.chosen(negative, reach, zero))
            high = self.arithmetic(Add, high, self.chosen(negative, zero, reach))
        return self.moved(self.data[k], low, param.dtype.bytes), self.moved(self.data[k], high, param.dtype.bytes)

    def bytes_of(self, k: int, param: TensorParam) -> V:
        constant, total = param.dtype.bytes, None
        for dim, expr in zip(self.dims[k], param.shape):
            if isinstance(expr, IntImm):
                constant *= expr.value
            else:
                total = dim if total is None else self.arithmetic(Mul, total, dim)
        if total is None:
            return self.number(constant)
        return total if constant == 1 else self.arithmetic(Mul, total, self.number(constant))

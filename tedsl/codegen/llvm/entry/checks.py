"""Emits the checks that every entry point makes: variables, shapes, strides and overlap, then the choice of a version.

What the arguments are, and where a call goes that fails a check, subclasses of `Checks` say.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tedsl.codegen.kernels.abi import FIRST_ASSERTION
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.writer import Writer
from tedsl.codegen.llvm.types import argument_type, global_name
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, IntImm, SizeVar, Var
from tedsl.runtime.arguments import words
from tedsl.runtime.signature import Binding, Signature, TensorParam

Words = Callable[[], str]  # what is wrong where a requirement does not hold; called while the code that says it is emitted


class Checks(Writer, ABC):
    """Emits one entry point for kernels of the signature `sig`.

    data, dims: the data pointer and the extents, i64, of each array by its position; the subclass fills them in. `%result` is
    the address for the number that the kernel returns, if it returns one.
    """

    def __init__(self, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None) -> None:
        super().__init__()
        self.sig, self.general, self.compact = sig, general, compact
        self.ends: list[tuple[str, str]] = []  # statuses and the blocks they come from
        self.data: dict[int, str] = {}
        self.dims: dict[int, list[str]] = {}

    # --- what subclasses decide ---

    @abstractmethod
    def require(self, instruction: str, problem: Words) -> None:
        """Emits the i1 of `instruction`, without which the kernel may not run: where it is false, the call is refused."""

    def shown(self, value: str) -> str:
        """Returns what stands for the i64 `value` in words; a subclass that emits words says how it is printed."""
        return value

    @abstractmethod
    def next_block(self, label: str) -> None:
        """Ends the block: continues at `label` if everything that was required in it holds."""

    @abstractmethod
    def scalar(self, binding: Binding) -> str:
        """Emits the value of the scalar argument of `binding`, and requires that it fits its dtype."""

    @abstractmethod
    def is_compact(self, k: int) -> str:
        """Emits an i1: whether array `k` is compact row-major."""

    @abstractmethod
    def load_strides(self, k: int) -> list[str]:
        """Emits the strides of array `k`, in elements. Requires of an output that no two of its elements overlap."""

    def may_meet(self, k: int, other: int) -> bool:
        """Tells whether the memory of two arrays may overlap; a subclass may know that it does not."""
        return True

    @abstractmethod
    def call(self, kernel: KernelSymbol) -> None:
        """Emits the call of the kernel, and what follows it."""

    # --- variables and shapes ---

    def bind_scalars(self) -> None:
        """Computes the variables that scalar arguments give."""
        for binding in self.sig.bindings:
            if binding.kind == "offset":
                self.values[binding.var] = "0"
            elif binding.kind == "scalar":
                self.values[binding.var] = self.scalar(binding)

    def require_fit(self, var: Var, value: str, below: Words, beyond: Words) -> None:
        """below: words for a size below 0; beyond: for any other value that the dtype of `var` lacks."""
        low, high = (0 if isinstance(var, SizeVar) else var.dtype.min_value), var.dtype.max_value
        if low is not None and low > -2**63:
            self.require(f"icmp sge i64 {value}, {low}", below if isinstance(var, SizeVar) else beyond)
        if high is not None and high < 2**63 - 1:
            self.require(f"icmp sle i64 {value}, {high}", beyond)

    def narrowed(self, value: str, of: DType, problem: Words) -> str:
        """Emits the double `value` rounded to the float dtype `of`, in its type for kernels; requires that a finite value stays
        finite.
        """
        if of.bits == 64:
            return value
        if of.bits == 32:
            narrow = self.assign(f"fptrunc double {value} to float")
            back = self.assign(f"fpext float {narrow} to double")
        else:
            back = self.rounded(value, *((10, -14, 16) if of.code == "float" else (7, -126, 128)))
            narrow = self.assign(f"fptrunc double {back} to float")
        error = self.assign(f"fsub double {value}, {back}")  # infinite where a finite value became infinite
        for infinity in ("0x7FF0000000000000", "0xFFF0000000000000"):
            self.require(f"fcmp une double {error}, {infinity}", problem)
        return narrow

    def rounded(self, value: str, mantissa: int, lowest: int, limit: int) -> str:
        """Emits `value` rounded to nearest, ties to even, to a format of `mantissa` bits that is normal from 2**lowest on and
        infinite from 2**limit on.
        """
        drop = 52 - mantissa
        bits = self.assign(f"bitcast double {value} to i64")
        odd = self.assign(f"and i64 {self.assign(f'lshr i64 {bits}, {drop}')}, 1")
        up = self.assign(f"add i64 {self.assign(f'add i64 {bits}, {(1 << drop - 1) - 1}')}, {odd}")
        normal = self.assign(f"bitcast i64 {self.assign(f'and i64 {up}, {-(1 << drop)}')} to double")
        magic = 1.5 * 2.0 ** (52 + lowest - mantissa)  # whose last bit is that of the smallest values
        small = self.assign(f"fsub double {self.assign(f'fadd double {value}, {double(magic)}')}, {double(magic)}")
        size = self.assign(f"call double @llvm.fabs.f64(double {value})")
        is_small = self.assign(f"fcmp olt double {size}, {double(2.0 ** lowest)}")
        result = self.assign(f"select i1 {is_small}, double {small}, double {normal}")
        reach = self.assign(f"call double @llvm.fabs.f64(double {result})")
        over = self.assign(f"fcmp oge double {reach}, {double(2.0 ** limit)}")
        finite = self.assign(f"select i1 {over}, double 0x7FF0000000000000, double {reach}")
        signed = self.assign(f"call double @llvm.copysign.f64(double {finite}, double {value})")
        is_nan = self.assign(f"fcmp uno double {value}, {value}")
        return self.assign(f"select i1 {is_nan}, double {value}, double {signed}")

    def bind(self, kind: str, given: dict[int, list[str]] | None = None) -> None:
        """Computes the variables that dimensions (or strides) of the arguments determine, and requires that they fit their
        dtypes.
        """
        for binding in self.sig.bindings:
            if binding.kind == kind and binding.expr is not None:
                self.solve(binding, (given or self.dims)[binding.param][binding.dim])

    def solve(self, binding: Binding, given: str) -> None:
        sig, value = self.sig, given
        if binding.expr is not None and binding.expr is not binding.var:
            self.values[binding.var] = "0"
            value = self.assign(f"sub i64 {value}, {self.expression(binding.expr)}")
        if binding.scale != 1:
            left = self.assign(f"srem i64 {value}, {binding.scale}")
            self.require(f"icmp eq i64 {left}, 0", lambda: words.insoluble(sig, binding, self.shown(given)))
            value = self.assign(f"sdiv i64 {value}, {binding.scale}")
        self.values[binding.var] = value
        self.require_fit(binding.var, value,
                         lambda: words.below_zero(sig, binding, self.shown(given), self.shown(value)),
                         lambda: words.wide(sig, binding, self.shown(given), self.shown(value)))

    def check_shapes(self) -> None:
        for k, param in self.sig.tensors():
            for dim, expr in zip(self.dims[k], param.shape):
                if not self.is_known(dim, expr):
                    self.require(f"icmp eq i64 {dim}, {self.expression(expr)}", self.shape_words(k, param))

    def is_known(self, given: str, expr: Expr) -> bool:
        """Tells whether `given` is where the value of `expr` comes from."""
        return isinstance(expr, Var) and self.values.get(expr) == given

    def shape_words(self, k: int, param: TensorParam) -> Words:
        return lambda: words.wrong_shape(self.sig, k, param, self.tuple_text(self.dims[k]), self.wanted_text(param.shape),
                                         lambda var: self.shown(self.values[var]))

    def tuple_text(self, values: list[str]) -> str:
        return words.tuple_text([self.shown(value) for value in values])

    def wanted_text(self, exprs: tuple[Expr, ...]) -> str:
        return self.tuple_text([self.expression(expr) for expr in exprs])

    # --- strides, overlap, the call ---

    def choose_kernel(self) -> None:
        strided = [k for k, p in self.sig.tensors() if p.strides]
        self.next_block("choose")
        if self.compact is not None:
            bits = [self.is_compact(k) for k in strided]
            self.lines.append(f"  br i1 {self.all_of(bits)}, label %compact, label %strided")
            self.start("compact")
            with self.restored():
                self.check_overlap({})
                self.next_block("compact.run")
                self.call(self.compact)
            self.start("strided")
        strides = {k: self.load_strides(k) for k in strided}
        self.bind("stride", strides)
        for k, param in self.sig.tensors():
            self.check_strides(k, param, strides.get(k, []))
        self.check_overlap(strides)
        self.next_block("run")
        self.call(self.general)

    def check_strides(self, k: int, param: TensorParam, strides: list[str]) -> None:
        for dim, given, expr in zip(self.dims[k], strides, param.strides):
            if not self.is_known(given, expr):
                self.require(self.is_stride(dim, given, self.expression(expr)), lambda: words.wrong_strides(
                    self.sig, k, self.tuple_text(strides), self.wanted_text(param.strides)))

    def is_stride(self, dim: str, given: str, wanted: str) -> str:
        """Returns the instruction that tells whether the stride `given` of a dimension of extent `dim` serves."""
        return f"icmp eq i64 {given}, {wanted}"

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Context in which values may be computed and are forgotten afterwards: its blocks do not dominate what follows."""
        values = dict(self.values)
        yield
        self.values = values

    def check_overlap(self, strides: dict[int, list[str]]) -> None:
        """Requires that the bounds of no output overlap those of another array."""
        if not self.sig.noalias:
            return
        tensors = dict(self.sig.tensors())
        if len(tensors) < 2 or not any(p.written for p in tensors.values()):
            return
        self.compare({k: self.bounds(k, p, strides.get(k)) for k, p in tensors.items()}, strides)

    def compare(self, bounds: dict[int, tuple[str, str]], strides: dict[int, list[str]]) -> None:
        """Requires that of the arrays with these `bounds` no output meets another one."""
        tensors = dict(self.sig.tensors())
        for k, param in tensors.items():
            for other, beside in tensors.items():
                if param.written and other != k and (other > k or not beside.written) and self.may_meet(k, other):
                    self.require(self.apart(bounds[k], bounds[other]), self.overlap_words(k, other, strides))

    def overlap_words(self, k: int, other: int, strides: dict[int, list[str]]) -> Words:
        compact = k not in strides and other not in strides
        return lambda: self.overlap_text(k, words.position(self.sig, other), compact)

    def overlap_text(self, k: int, other: str, compact: bool) -> str:
        """Returns what is said where the bounds of an output meet those of `other`. compact: so do their elements."""
        if compact:
            return words.overlap(self.sig, k, other)
        return words.possible_overlap(self.sig, k, other, "one begins before the other ends")

    def apart(self, first: tuple[str, str], second: tuple[str, str]) -> str:
        """Returns the instruction that tells whether two ranges of addresses are disjoint."""
        below = self.assign(f"icmp ule ptr {first[1]}, {second[0]}")
        above = self.assign(f"icmp ule ptr {second[1]}, {first[0]}")
        return f"or i1 {below}, {above}"

    def bounds(self, k: int, param: TensorParam, strides: list[str] | None) -> tuple[str, str]:
        """Returns the address of the first byte of an array and that of the first byte behind it."""
        if not strides:
            return self.data[k], self.assign(f"getelementptr i8, ptr {self.data[k]}, i64 {self.bytes_of(k, param)}")
        low, high = "0", "1"
        for dim, step in zip(self.dims[k], strides):
            reach = self.assign(f"mul i64 {self.assign(f'sub i64 {dim}, 1')}, {step}")
            negative = self.assign(f"icmp slt i64 {reach}, 0")
            low = self.assign(f"add i64 {low}, {self.assign(f'select i1 {negative}, i64 {reach}, i64 0')}")
            high = self.assign(f"add i64 {high}, {self.assign(f'select i1 {negative}, i64 0, i64 {reach}')}")
        element = f"[{param.dtype.bytes} x i8]"
        return (self.assign(f"getelementptr {element}, ptr {self.data[k]}, i64 {low}"),
                self.assign(f"getelementptr {element}, ptr {self.data[k]}, i64 {high}"))

    def bytes_of(self, k: int, param: TensorParam) -> str:
        constant, total = param.dtype.bytes, ""
        for dim, expr in zip(self.dims[k], param.shape):
            if isinstance(expr, IntImm):
                constant *= expr.value
            else:
                total = self.assign(f"mul i64 {total}, {dim}") if total else dim
        if not total:
            return str(constant)
        return total if constant == 1 else self.assign(f"mul i64 {total}, {constant}")

    def run(self, kernel: KernelSymbol, more: Sequence[str] = ()) -> str:
        """Returns the instruction that calls `kernel` on the arguments; `more` stand behind them."""
        values = [f"ptr {self.data[k]}" for k, _ in self.sig.tensors()]
        values += [f"{argument_type(v.dtype)} {self.values[v]}" for v in kernel.scalars]
        values += ["ptr %result"] if kernel.result is not None else []
        return f"call i32 {global_name(kernel.symbol)}({', '.join([*values, *more])}) noinline"

    def leave(self, status: str, kernel: KernelSymbol) -> None:
        """Emits the jump to `finish` with the status that `kernel` returned."""
        if kernel.messages_before:
            assertion = self.assign(f"icmp sge i32 {status}, {FIRST_ASSERTION}")
            moved = self.assign(f"add i32 {status}, {kernel.messages_before}")
            status = self.assign(f"select i1 {assertion}, i32 {moved}, i32 {status}")
        self.ends.append((status, self.block))
        self.lines.append("  br label %finish")


def double(value: float) -> str:
    """Returns a constant of type double in LLVM's syntax."""
    return "0x" + struct.pack(">d", value).hex().upper()

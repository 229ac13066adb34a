"""Emits the checks that every entry point makes: variables, shapes, strides and overlap, then the choice of a version.

What the arguments are, and where a call goes that fails a check, subclasses of `Checks` say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from tedsl.codegen.llvm.abi import FIRST_ASSERTION, argument_type
from tedsl.codegen.llvm.entry.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.writer import Writer
from tedsl.codegen.llvm.types import global_name
from tedsl.ir.expr import Expr, IntImm, SizeVar, Var
from tedsl.runtime.signature import Binding, Signature, TensorParam


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
        """Emits the strides of array `k`, in elements."""

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

    def require_fit(self, var: Var, value: str) -> None:
        low, high = (0 if isinstance(var, SizeVar) else var.dtype.min_value), var.dtype.max_value
        if low is not None and low > -2**63:
            self.require(f"icmp sge i64 {value}, {low}")
        if high is not None and high < 2**63 - 1:
            self.require(f"icmp sle i64 {value}, {high}")

    def bind(self, kind: str, given: dict[int, list[str]] | None = None) -> None:
        """Computes the variables that dimensions (or strides) of the arguments determine, and requires that they fit their
        dtypes.
        """
        for binding in self.sig.bindings:
            if binding.kind != kind or binding.expr is None:
                continue
            value = (given or self.dims)[binding.param][binding.dim]
            if binding.expr is not binding.var:
                self.values[binding.var] = "0"
                value = self.assign(f"sub i64 {value}, {self.expression(binding.expr)}")
            if binding.scale != 1:
                left = self.assign(f"srem i64 {value}, {binding.scale}")
                self.require(f"icmp eq i64 {left}, 0")
                value = self.assign(f"sdiv i64 {value}, {binding.scale}")
            self.values[binding.var] = value
            self.require_fit(binding.var, value)

    def check_shapes(self) -> None:
        for k, param in self.sig.tensors():
            for dim, expr in zip(self.dims[k], param.shape):
                self.require_equal(dim, expr)

    def require_equal(self, given: str, expr: Expr) -> None:
        if not (isinstance(expr, Var) and self.values.get(expr) == given):
            self.require(f"icmp eq i64 {given}, {self.expression(expr)}")

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
            for given, expr in zip(strides.get(k, []), param.strides):
                self.require_equal(given, expr)
        self.check_overlap(strides)
        self.next_block("run")
        self.call(self.general)

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
        bounds = {k: self.bounds(k, p, strides.get(k)) for k, p in tensors.items()}
        for k, param in tensors.items():
            for other, beside in tensors.items():
                if param.written and other != k and (other > k or not beside.written):
                    below = self.assign(f"icmp ule ptr {bounds[k][1]}, {bounds[other][0]}")
                    above = self.assign(f"icmp ule ptr {bounds[other][1]}, {bounds[k][0]}")
                    self.require(f"or i1 {below}, {above}")

    def bounds(self, k: int, param: TensorParam, strides: list[str] | None) -> tuple[str, str]:
        """Returns the address of the first byte of an array and that of the first byte behind it."""
        if param.written or not strides:
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

    def run(self, kernel: KernelSymbol) -> str:
        """Returns the instruction that calls `kernel` on the arguments."""
        values = [f"ptr {self.data[k]}" for k, _ in self.sig.tensors()]
        values += [f"{argument_type(v.dtype)} {self.values[v]}" for v in kernel.scalars]
        values += ["ptr %result"] if kernel.result is not None else []
        return f"call i32 {global_name(kernel.symbol)}({', '.join(values)}) noinline"

    def leave(self, status: str, kernel: KernelSymbol) -> None:
        """Emits the jump to `finish` with the status that `kernel` returned."""
        if kernel.messages_before:
            assertion = self.assign(f"icmp sge i32 {status}, {FIRST_ASSERTION}")
            moved = self.assign(f"add i32 {status}, {kernel.messages_before}")
            status = self.assign(f"select i1 {assertion}, i32 {moved}, i32 {status}")
        self.ends.append((status, self.block))
        self.lines.append("  br label %finish")

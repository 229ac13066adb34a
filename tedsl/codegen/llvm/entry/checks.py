"""The checks of entry points, written as instructions of LLVM, then the choice of a version and its call.

What the arguments are, and where a call goes that fails a check, subclasses of `EntryChecks` say.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tedsl.codegen.kernels.abi import FIRST_ASSERTION
from tedsl.codegen.kernels.checks import Checks, Words
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.entry.writer import Writer
from tedsl.codegen.llvm.types import argument_type, global_name
from tedsl.ir.dtype import DType
from tedsl.ir.expr import EQ, GE, LE, LT, Add, Expr, Mul, Sub
from tedsl.runtime.signature import Signature

_OPERATORS: dict[type[Expr], str] = {Add: "add", Sub: "sub", Mul: "mul"}
_COMPARED: dict[type[Expr], str] = {EQ: "eq", LT: "slt", LE: "sle", GE: "sge"}


class EntryChecks(Writer, Checks[str]):
    """Emits one entry point for kernels of the signature `sig`. `%result` is the address for the number that the kernel
    returns, if it returns one.
    """

    def __init__(self, sig: Signature, general: KernelSymbol, compact: KernelSymbol | None) -> None:
        Writer.__init__(self)
        Checks.__init__(self, sig, general, compact)
        self.ends: list[tuple[str, str]] = []  # statuses and the blocks they come from

    # --- what subclasses decide ---

    @abstractmethod
    def next_block(self, label: str) -> None:
        """Ends the block: continues at `label` if everything that was required in it holds."""

    @abstractmethod
    def is_compact(self, k: int) -> str:
        """Emits an i1: whether array `k` is compact row-major."""

    @abstractmethod
    def load_strides(self, k: int) -> list[str]:
        """Emits the strides of array `k`, in elements. Requires of an output that no two of its elements overlap."""

    @abstractmethod
    def call(self, kernel: KernelSymbol) -> None:
        """Emits the call of the kernel, and what follows it."""

    def shown(self, value: str) -> str:
        return value

    # --- arithmetic ---

    def number(self, value: int) -> str:
        return str(value)

    def arithmetic(self, kind: type[Expr], a: str, b: str) -> str:
        return self.assign(f"{_OPERATORS[kind]} i64 {a}, {b}")

    def compared(self, kind: type[Expr], a: str, b: str) -> str:
        return self.assign(f"icmp {_COMPARED[kind]} i64 {a}, {b}")

    def divided(self, value: str, divisor: int) -> tuple[str, str]:
        divides = self.assign(f"icmp eq i64 {self.assign(f'srem i64 {value}, {divisor}')}, 0")
        return divides, self.assign(f"sdiv i64 {value}, {divisor}")

    def chosen(self, condition: str, yes: str, no: str) -> str:
        return self.assign(f"select i1 {condition}, i64 {yes}, i64 {no}")

    def either(self, a: str, b: str) -> str:
        return self.assign(f"or i1 {a}, {b}")

    def moved(self, address: str, count: str, size: int) -> str:
        return self.assign(f"getelementptr {'i8' if size == 1 else f'[{size} x i8]'}, ptr {address}, i64 {count}")

    def not_behind(self, first: str, second: str) -> str:
        return self.assign(f"icmp ule ptr {first}, {second}")

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
            self.require(self.assign(f"fcmp une double {error}, {infinity}"), problem)
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

    # --- the call ---

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

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Context in which values may be computed and are forgotten afterwards: its blocks do not dominate what follows."""
        values = dict(self.values)
        yield
        self.values = values

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

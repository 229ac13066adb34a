"""Emits `tir.call_packed` of a function of the same module: its arrays are checked like those of a call from Python, and
determine the variables of its shapes.

The checks for each call are a function of their own. What constants decide is decided at compile time: a call that cannot
succeed is refused, and a call that needs no check has none. A failed check reports one of the caller's assertion messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tedsl.codegen.calls.arrays import ArrayArgument, array_argument
from tedsl.codegen.calls.callees import Callee
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.codegen.llvm.calls.folding import expression_of, folded, is_number
from tedsl.codegen.llvm.calls.raw import emit_direct
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.entry.checks import Checks, Words
from tedsl.codegen.llvm.entry.symbol import QUICK
from tedsl.codegen.llvm.frame import in_argument_type
from tedsl.codegen.llvm.loads_stores import address, buffer_info
from tedsl.codegen.llvm.types import argument_type, global_name, memory_type
from tedsl.codegen.llvm.values.convert import convert
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import FLOAT64, DType
from tedsl.ir.expr import Call, Expr, StringImm
from tedsl.ir.script import shown
from tedsl.runtime.arguments import words
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam


@dataclass
class _Passed:
    """The values that the caller passes to the function of the checks: their `types` and `values`, by the names `%p0`, `%p1`,
    ... in it.

    expressions: for each name the expression in the caller's program.
    """

    out: Emitter
    types: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    expressions: dict[str, Expr] = field(default_factory=dict)

    def value(self, type_: str, value: str, expr: Expr | None = None) -> str:
        """Returns the name of `value` in the function of the checks; a constant is returned unchanged."""
        if type_ == "i64" and is_number(value):
            return value
        name = f"%p{len(self.types)}"
        self.types.append(type_)
        self.values.append(value)
        if expr is not None:
            self.expressions[name] = expr
        return name

    def index(self, expr: Expr) -> str:
        return self.value("i64", self.out.register(self.out.scalar_index(expr))[0], expr)


@dataclass(frozen=True)
class _Array:
    """An array argument within the checks. strides: in elements; empty: compact."""

    argument: ArrayArgument
    data: str
    dims: list[str]
    strides: list[str]


def emit_own_packed(out: Emitter, e: Call, called: Callee) -> str:
    """Emits the checks and the call, and returns its value: the number that the function returns, else 0."""
    sig, args = called.signature, e.args[1:]
    if len(args) != len(sig.params):
        raise LoweringError(f"{out.function.owner}: {words.wrong_count(sig, str(len(args)))}")
    passed = _Passed(out)
    arrays: dict[int, _Array] = {}
    numbers: dict[int, tuple[str, DType]] = {}
    for k, (param, arg) in enumerate(zip(sig.params, args)):
        if isinstance(param, TensorParam):
            arrays[k] = _passed_array(passed, sig, k, param, arg)
        else:
            numbers[k] = _passed_number(passed, sig, k, param, arg)
    symbol = f"{out.function.name}.call{out.module.next_number()}"
    checks = _PackedChecks(symbol, called, arrays, numbers, passed, out.function.status, out.function.owner)
    out.module.functions.append(checks.text())
    return emit_direct(out, e.dtype, called, symbol, [f"{t} {value}" for t, value in zip(passed.types, passed.values)])


def _refusal(passed: _Passed, problem: str, hint: str = "") -> LoweringError:
    return LoweringError(f"{passed.out.function.owner}: {problem}", hint=hint)


def _passed_array(passed: _Passed, sig: Signature, k: int, param: TensorParam, arg: Expr) -> _Array:
    array = array_argument(arg)
    if array is None:
        raise _refusal(passed, f"{words.argument(sig, k)} is {shown(arg)}, and an array is needed",
                       hint="pass a buffer, or its elements by access_ptr")
    if array.dtype is not param.dtype:
        raise _refusal(passed, words.wrong_dtype(sig, k, str(array.dtype)))
    if len(array.shape) != len(param.shape):
        raise _refusal(passed, words.wrong_rank(sig, k, param, str(len(array.shape)),
                                                words.tuple_text([shown(dim) for dim in array.shape])))
    if param.written and array.read_only:
        raise _refusal(passed, f"{words.argument(sig, k)} is an output, and the call passes it to be read only")
    out = passed.out
    pointer = address(out, buffer_info(out, array.data), out.scalar_index(array.offset), memory_type(array.dtype))
    return _Array(array, passed.value("ptr", pointer), [passed.index(dim) for dim in array.shape],
                  [passed.index(step) for step in array.strides])


def _passed_number(passed: _Passed, sig: Signature, k: int, param: ScalarParam, arg: Expr) -> tuple[str, DType]:
    given, of, out = arg.dtype, param.dtype, passed.out
    alike = (given.is_float and of.is_float) or (given.is_integer and of.is_integer) or (given.is_bool and of.is_bool) or (
        given.is_handle and of.is_handle)
    if isinstance(arg, StringImm) or array_argument(arg) is not None or given.lanes > 1 or not alike:
        what = "an array" if array_argument(arg) is not None else f"{shown(arg)} of {given}"
        raise _refusal(passed, f"{words.argument(sig, k)} is {what}, it needs a number of {of}",
                       hint=f"cast it: x.astype({str(of)!r})")
    value = out.value(arg)
    if given.is_float and given is not of:
        return passed.value("double", convert(out, value, given, FLOAT64), arg), FLOAT64
    return passed.value(argument_type(given), in_argument_type(out, value, given), arg), given


class _PackedChecks(Checks):
    """Emits the function that checks the arguments of one call and then calls the general or the compact version."""

    def __init__(self, symbol: str, called: Callee, arrays: dict[int, _Array], numbers: dict[int, tuple[str, DType]],
                 passed: _Passed, status: Callable[[str], int], caller: str) -> None:
        super().__init__(called.signature, called.general, called.compact)
        self.symbol, self.called, self.arrays, self.numbers, self.passed = symbol, called, arrays, numbers, passed
        self.status, self.caller = status, caller
        self.expressions: dict[str, Expr] = dict(passed.expressions)
        self.requirements = 0
        self.data = {k: array.data for k, array in arrays.items()}
        self.dims = {k: array.dims for k, array in arrays.items()}

    def text(self) -> str:
        for k in self.arrays:
            for dim in self.dims[k]:
                self.require(f"icmp sge i64 {dim}, 0", self.extent_words(k))
        self.bind_scalars()
        self.bind("shape")
        self.check_shapes()
        self.choose_kernel()
        takes = [f"{t} %p{k}" for k, t in enumerate(self.passed.types)]
        takes += ["ptr %result"] if self.sig.result is not None else []
        takes += ["ptr %error"] if self.called.takes_frame else []
        return "\n".join([f"define internal i32 {global_name(self.symbol)}({', '.join(takes)}) {QUICK} {{", *self.lines, "}"])

    # --- constants, and the words of refusals ---

    def assign(self, instruction: str) -> str:
        known = folded(instruction)
        if known is not None:
            return known
        name = super().assign(instruction)
        expr = expression_of(instruction, self.expression_for)
        if expr is not None:
            self.expressions[name] = expr
        return name

    def expression_for(self, value: str) -> Expr | None:
        return build.const(int(value), "int64" if abs(int(value)) >> 31 else "int32") if is_number(value) \
            else self.expressions.get(value)

    def shown(self, value: str) -> str:
        expr = self.expression_for(value)
        return "?" if expr is None else shown(expr)

    def require(self, instruction: str, problem: Words) -> None:
        condition = self.assign(instruction)
        if condition == "true":
            return
        if condition == "false":
            raise LoweringError(f"{self.caller}: {problem()}")
        self.requirements += 1
        fine, refused = f"fine{self.requirements}", f"refused{self.requirements}"
        self.lines.append(f"  br i1 {condition}, label %{fine}, label %{refused}")
        self.start(refused)
        self.lines.append(f"  ret i32 {self.status(problem())}")
        self.start(fine)

    def next_block(self, label: str) -> None:
        """Does nothing: each requirement is tested at once, so that no blocks are needed."""

    # --- the arguments ---

    def scalar(self, binding: Binding) -> str:
        (value, given), of = self.numbers[binding.param], binding.var.dtype
        beyond = lambda: words.too_large(self.sig, binding.param, of, self.shown(value))
        if of.is_float:
            return self.narrowed(value, of, beyond) if given is FLOAT64 and of is not FLOAT64 else value
        if of.is_handle or of.is_bool:
            return value
        if given.is_uint != of.is_uint and 64 in (given.bits, of.bits) and (given.bits == 64 or of.is_uint):
            self.require(f"icmp sge i64 {value}, 0", beyond)
        if of.is_uint and of.bits == 64:
            return value
        self.require_fit(binding.var, value, lambda: words.negative_size(self.sig, binding.param, self.shown(value)), beyond)
        return value

    def compact_strides(self, k: int) -> list[str]:
        strides, step = [], "1"
        for dim in reversed(self.dims[k]):
            strides.append(step)
            step = self.assign(f"mul i64 {step}, {dim}") if step != "1" else dim
        return strides[::-1]

    def is_empty(self, k: int) -> str:
        """Emits an i1: whether array `k` has no element, so that its strides do not matter."""
        empty = "false"
        for dim in self.dims[k]:
            empty = self.assign(f"or i1 {empty}, {self.assign(f'icmp eq i64 {dim}, 0')}")
        return empty

    def is_compact(self, k: int) -> str:
        same = []
        for dim, step, usual in zip(self.dims[k], self.arrays[k].strides, self.compact_strides(k)):
            single = self.assign(f"icmp eq i64 {dim}, 1")
            same.append(self.assign(f"or i1 {single}, {self.assign(f'icmp eq i64 {step}, {usual}')}"))
        return self.assign(f"or i1 {self.is_empty(k)}, {self.all_of(same)}") if same else "true"

    def load_strides(self, k: int) -> list[str]:
        param, array = self.sig.params[k], self.arrays[k]
        assert isinstance(param, TensorParam)
        broadcasts, empty = param.buffer.buffer_type == "auto_broadcast", self.is_empty(k)
        strides = []
        for dim, given, usual in zip(self.dims[k], array.strides or self.compact_strides(k), self.compact_strides(k)):
            single = self.assign(f"icmp eq i64 {dim}, 1")
            step = self.assign(f"select i1 {empty}, i64 {usual}, i64 {given}")
            strides.append(self.assign(f"select i1 {single}, i64 {'0' if broadcasts else usual}, i64 {step}"))
            shown_as = self.expression_for(given)
            if shown_as is not None and not is_number(strides[-1]):
                self.expressions.setdefault(strides[-1], shown_as)
        if param.written and array.strides:
            self.require_distinct(k, strides)
        return strides

    def require_distinct(self, k: int, strides: list[str]) -> None:
        """Requires that no two elements of an output overlap: each stride exceeds the span of the dimensions with smaller
        strides.
        """
        sizes = [self.absolute(step) for step in strides]
        empty = self.is_empty(k)
        reaches = [self.assign(f"mul i64 {self.assign(f'sub i64 {dim}, 1')}, {size}") for dim, size in zip(self.dims[k], sizes)]
        for d, (dim, size) in enumerate(zip(self.dims[k], sizes)):
            span = "0"
            for other in range(len(sizes)):
                if other != d:
                    smaller = self.assign(f"icmp sle i64 {sizes[other]}, {size}")
                    inner = self.assign(f"select i1 {smaller}, i64 {reaches[other]}, i64 0")
                    span = self.assign(f"add i64 {span}, {inner}")
            single, over = self.assign(f"icmp sle i64 {dim}, 1"), self.assign(f"icmp sgt i64 {size}, {span}")
            self.require(f"or i1 {self.assign(f'or i1 {single}, {empty}')}, {over}", lambda: words.shared_elements(
                self.sig, k, f"{self.tuple_text(strides)} in elements", self.tuple_text(self.dims[k]), surely=False))

    def absolute(self, value: str) -> str:
        negative = self.assign(f"icmp slt i64 {value}, 0")
        return self.assign(f"select i1 {negative}, i64 {self.assign(f'sub i64 0, {value}')}, i64 {value}")

    # --- the call ---

    def may_meet(self, k: int, other: int) -> bool:
        out = self.passed.out
        memory, beside = (buffer_info(out, self.arrays[j].argument.data) for j in (k, other))
        return memory.may_meet(beside, out.function.noalias)

    def choose_kernel(self) -> None:
        for k, param in self.sig.tensors():
            if not param.strides and self.arrays[k].strides:
                self.require(f"and i1 true, {self.is_compact(k)}", self.contiguity_words(k))
        if self.compact is None:
            self.call_general()
            return
        compact = self.all_of([self.is_compact(k) for k, param in self.sig.tensors() if param.strides])
        if compact not in ("true", "false"):
            self.lines.append(f"  br i1 {compact}, label %compact, label %strided")
            self.start("compact")
        if compact != "false":
            with self.restored():
                self.check_overlap({})
                self.call(self.compact)
        if compact != "true":
            if compact != "false":
                self.start("strided")
            self.call_general()

    def extent_words(self, k: int) -> Words:
        return lambda: f"{words.argument(self.sig, k)} has shape {self.tuple_text(self.dims[k])}, with an extent below 0"

    def contiguity_words(self, k: int) -> Words:
        return lambda: words.not_contiguous(self.sig, k, f"{self.tuple_text(self.arrays[k].strides)} in elements",
                                            self.tuple_text(self.dims[k]))

    def call_general(self) -> None:
        strides = {k: self.load_strides(k) for k, param in self.sig.tensors() if param.strides}
        self.bind("stride", strides)
        for k, param in self.sig.tensors():
            self.check_strides(k, param, strides.get(k, []))
        self.check_overlap(strides)
        self.call(self.general)

    def is_stride(self, dim: str, given: str, wanted: str) -> str:
        single = self.assign(f"icmp sle i64 {dim}, 1")
        return f"or i1 {single}, {self.assign(f'icmp eq i64 {given}, {wanted}')}"

    def call(self, kernel: KernelSymbol) -> None:
        status = self.assign(self.run(kernel, ["ptr %error"] if self.called.takes_frame else []))
        self.lines.append(f"  ret i32 {status}")

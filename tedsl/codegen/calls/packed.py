"""Calls by `tir.call_packed` of functions of the same module: the arrays are checked like those of a call from Python, and
determine the variables of the function's shapes.

The checks of each call become a function of the loop IR, which then calls the general or the compact version; every backend
writes it as it writes other functions. What constants decide is decided here: a call that cannot succeed is refused, and a
call that needs no check has none. A failed check reports one of the caller's assertion messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tedsl.codegen.calls.arrays import ArrayArgument, array_argument
from tedsl.codegen.calls.callees import Callee
from tedsl.codegen.kernels.abi import COMPACT
from tedsl.codegen.kernels.checks import Checks, Words
from tedsl.codegen.kernels.symbol import KernelSymbol
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import BOOL, FLOAT64, HANDLE, INT32, INT64, VOID, DType
from tedsl.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    StringImm,
    Sub,
    Var,
)
from tedsl.ir.func import PrimFunc
from tedsl.ir.node import FrozenDict
from tedsl.ir.ops import ACCESS_PTR, CALL_EXTERN, ISFINITE, REINTERPRET, RET, TYPE_ANNOTATION
from tedsl.ir.script import shown
from tedsl.ir.stmt import AssertStmt, Evaluate, IfThenElse, LetStmt, Stmt, seq
from tedsl.ir.types import PrimType
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record
from tedsl.runtime.arguments import words
from tedsl.runtime.signature import Binding, ScalarParam, Signature, TensorParam

MayMeet = Callable[[Var, Var], bool]  # whether two pointers of the caller may point to common memory
_OPERATORS: dict[type[Expr], Callable[[Expr, Expr], Expr]] = {
    Add: build.add, Sub: build.sub, Mul: build.mul, FloorDiv: build.floordiv, FloorMod: build.floormod, Div: build.truncdiv,
    Mod: build.truncmod, Min: build.minimum, Max: build.maximum, EQ: build.equal, NE: build.not_equal, LT: build.less,
    LE: build.less_equal, GT: build.greater, GE: build.greater_equal, And: build.logical_and, Or: build.logical_or}
_ZERO, _ONE = build.const(0, INT64), build.const(1, INT64)


@record
class Passed:
    """What a call passes for the variable `param` of its function of checks: the address of the first element of an array, a
    number, or an extent or stride, `wide`, which is index arithmetic in 64 bits.
    """

    param: Var
    value: ArrayArgument | Expr
    wide: bool = False


@record
class PackedCall:
    """A call in its function of checks `func`: its raw arguments are the values `passed`, in this order."""

    func: PrimFunc
    passed: tuple[Passed, ...]


def packed_call(e: Call, called: Callee, caller: str, may_meet: MayMeet, name: str) -> PackedCall:
    """Returns the call `e` of `called` in the function `caller`; its function of checks is called `name`.

    Raises LoweringError for a call that cannot succeed.
    """
    arguments = _Arguments(called.signature, caller)
    arguments.read(e.args[1:])
    checks = _PackedChecks(called, arguments, may_meet)
    checks.write()
    handles = {Var(arguments.buffers[k].name, HANDLE): arguments.buffers[k] for k in arguments.arrays}
    result = called.signature.result
    func = PrimFunc((*handles, *(passed.param for passed in arguments.numbers)), _sequence(checks.steps),
                    None if result is None else PrimType(result), FrozenDict(handles),
                    FrozenDict({"global_symbol": name, "tir.noalias": False}))
    pointers = [Passed(arguments.buffers[k].data, array) for k, array in arguments.arrays.items()]
    return PackedCall(func, (*pointers, *arguments.numbers))


class _Arguments:
    """The arguments of one call, as its function of checks receives them.

    arrays: those that are arrays, by position, and `buffers`, what points to them there. numbers: what is passed beside the
    pointers. values: the arguments that are numbers, by position. said: the caller's expression for each value, for messages.
    """

    def __init__(self, sig: Signature, caller: str) -> None:
        self.sig, self.caller = sig, caller
        self.arrays: dict[int, ArrayArgument] = {}
        self.buffers: dict[int, Buffer] = {}
        self.dims: dict[int, list[Expr]] = {}
        self.strides: dict[int, list[Expr]] = {}
        self.numbers: list[Passed] = []
        self.values: dict[int, Expr] = {}
        self.said: dict[Expr, Expr] = {}

    def read(self, args: Sequence[Expr]) -> None:
        """Reads the arguments `args`; raises LoweringError for one of another kind, dtype or rank than the function takes."""
        sig = self.sig
        if len(args) != len(sig.params):
            raise self.refusal(words.wrong_count(sig, str(len(args))))
        for k, (param, arg) in enumerate(zip(sig.params, args)):
            if isinstance(param, TensorParam):
                self._read_array(k, param, arg)
            else:
                self._read_number(k, param, arg)

    def refusal(self, problem: str, hint: str = "") -> LoweringError:
        return LoweringError(f"{self.caller}: {problem}", hint=hint)

    def _read_array(self, k: int, param: TensorParam, arg: Expr) -> None:
        array = array_argument(arg)
        if array is None:
            raise self.refusal(f"{words.argument(self.sig, k)} is {shown(arg)}, and an array is needed",
                               hint="pass a buffer, or its elements by access_ptr")
        if array.dtype is not param.dtype:
            raise self.refusal(words.wrong_dtype(self.sig, k, str(array.dtype)))
        if len(array.shape) != len(param.shape):
            raise self.refusal(words.wrong_rank(self.sig, k, param, str(len(array.shape)),
                                                words.tuple_text([shown(dim) for dim in array.shape])))
        if param.written and array.read_only:
            raise self.refusal(f"{words.argument(self.sig, k)} is an output, and the call passes it to be read only")
        self.arrays[k] = array
        self.buffers[k] = decl_buffer((1,), param.dtype, param.name)
        self.dims[k] = self._indices(array.shape, f"{param.name}_shape")
        self.strides[k] = self._indices(array.strides, f"{param.name}_stride")

    def _indices(self, exprs: Iterable[Expr], name: str) -> list[Expr]:
        return [self._passed(expr, f"{name}{d}", INT64, wide=True) for d, expr in enumerate(exprs)]

    def _passed(self, expr: Expr, name: str, of: DType, *, wide: bool = False) -> Expr:
        """Returns what stands in the function of checks for `expr`: itself if it is a constant, else a variable."""
        if isinstance(expr, IntImm):
            value: Expr = build.const(expr.value, of)
        else:
            value = Var(name, of)
            self.numbers.append(Passed(value, expr, wide))
        self.said[value] = expr
        return value

    def _read_number(self, k: int, param: ScalarParam, arg: Expr) -> None:
        given, of = arg.dtype, param.dtype
        alike = (given.is_float and of.is_float) or (given.is_integer and of.is_integer) or (given.is_bool and of.is_bool) or (
            given.is_handle and of.is_handle)
        if isinstance(arg, StringImm) or array_argument(arg) is not None or given.lanes > 1 or not alike:
            what = "an array" if array_argument(arg) is not None else f"{shown(arg)} of {given}"
            raise self.refusal(f"{words.argument(self.sig, k)} is {what}, it needs a number of {of}",
                               hint=f"cast it: x.astype({str(of)!r})")
        self.values[k] = self._passed(arg, param.name, given)


class _PackedChecks(Checks[Expr]):
    """Writes the statements `steps` that check the arguments of one call and then call the general or the compact version."""

    def __init__(self, called: Callee, arguments: _Arguments, may_meet: MayMeet) -> None:
        super().__init__(called.signature, called.general, called.compact)
        self.called, self.arguments, self.are_alike = called, arguments, may_meet
        self.steps: list[Stmt | tuple[Var, Expr]] = []  # statements, and variables with their values in what follows
        self.dims = arguments.dims
        self.extents: set[Expr] = set()  # that are known to be at least 0
        self.data = {k: Call(INT64, REINTERPRET, (self.pointer(k, written=False),)) for k in arguments.arrays}

    def write(self) -> None:
        for k in self.arguments.arrays:
            for dim in self.dims[k]:
                self.require(self.compared(GE, dim, _ZERO), self.extent_words(k))
            self.extents.update(self.dims[k])
        self.bind_scalars()
        self.bind("shape")
        self.check_shapes()
        self.choose_kernel()

    def pointer(self, k: int, *, written: bool) -> Expr:
        """Returns the address of the first element of array `k`."""
        buffer = self.arguments.buffers[k]
        mask = build.const(Buffer.READ | Buffer.WRITE if written else Buffer.READ, INT32)
        marker = Call(buffer.dtype, TYPE_ANNOTATION, ())
        return Call(HANDLE, ACCESS_PTR, (marker, buffer.data, build.const(0, INT32), build.const(1, INT32), mask))

    # --- values, and the caller's words for them ---

    def made(self, operation: Callable[..., Expr], *operands: Expr) -> Expr:
        """Returns the `operation` on values; in words it is that of what the operands are to the caller."""
        result = operation(*operands)
        said = [self.said_as(operand) for operand in operands]
        known = [expr for expr in said if expr is not None]
        if len(known) == len(said) and result not in self.arguments.said:
            self.arguments.said[result] = operation(*known)
        return result

    def said_as(self, value: Expr) -> Expr | None:
        if isinstance(value, IntImm):
            return build.const(value.value) if value.dtype is INT64 else value
        return self.arguments.said.get(value)

    def shown(self, value: Expr) -> str:
        expr = self.said_as(value)
        return "?" if expr is None else shown(expr)

    def number(self, value: int) -> Expr:
        return build.const(value, INT64)

    def arithmetic(self, kind: type[Expr], a: Expr, b: Expr) -> Expr:
        return self.made(_OPERATORS[kind], a, b)

    def compared(self, kind: type[Expr], a: Expr, b: Expr) -> Expr:
        if a is b or (kind is GE and a in self.extents and isinstance(b, IntImm) and b.value <= 0):
            return build.const(kind in (EQ, LE, GE))
        return _OPERATORS[kind](a, b)

    def divided(self, value: Expr, divisor: int) -> tuple[Expr, Expr]:
        by = self.number(divisor)
        return self.compared(EQ, build.floormod(value, by), _ZERO), self.made(build.floordiv, value, by)

    def chosen(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        same = yes is no or (isinstance(yes, IntImm) and isinstance(no, IntImm) and yes.value == no.value)
        return yes if same else build.select(condition, yes, no)

    def either(self, a: Expr, b: Expr) -> Expr:
        return build.logical_or(a, b)

    def moved(self, address: Expr, count: Expr, size: int) -> Expr:
        return build.add(address, build.mul(count, self.number(size)))

    def not_behind(self, first: Expr, second: Expr) -> Expr:
        return self.compared(LE, first, second)

    def expression(self, expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in post_order(expr):
            match node:
                case IntImm(value=value, dtype=of):
                    done[node] = build.const(value, BOOL if of.is_bool else INT64)
                case Var() if node in self.values:
                    done[node] = self.values[node]
                case Cast(value=inner, dtype=of):  # an integer keeps its value, as in `runtime/shapes.py`
                    done[node] = _converted(done[inner], BOOL if of.is_bool else INT64)
                case Not(a=a):
                    done[node] = build.logical_not(done[a])
                case Select(condition=c, true_value=t, false_value=f):
                    done[node] = build.select(done[c], done[t], done[f])
                case Expr() if type(node) in _OPERATORS:
                    operands = [done[child] for child in node.child_nodes() if isinstance(child, Expr)]
                    done[node] = self.made(_OPERATORS[type(node)], *operands)
                case _:
                    raise LoweringError(f"the shape {shown(expr)} of an argument cannot be evaluated at the call",
                                        hint="build shapes from variables, numbers and + - * // % min max")
        return done[expr]

    # --- requirements ---

    def require(self, condition: Expr, problem: Words) -> None:
        if isinstance(condition, IntImm):
            if not condition.value:
                raise self.arguments.refusal(problem())
            return
        self.steps.append(AssertStmt(condition, StringImm(problem()), Evaluate(build.const(0, INT32))))

    def scalar(self, binding: Binding) -> Expr:
        value, of, k = self.arguments.values[binding.param], binding.var.dtype, binding.param
        beyond: Words = lambda: words.too_large(self.sig, k, of, self.shown(value))
        if of.is_float:
            return self.rounded(value, of, beyond)
        if of.is_handle or of.is_bool:
            return value
        if value.dtype.is_uint and value.dtype.bits == 64 and not (of.is_uint and of.bits == 64):
            self.require(self.compared(LE, value, build.const(2**63 - 1, value.dtype)), beyond)
        if value.dtype.is_int and of.is_uint and of.bits == 64:
            self.require(self.compared(GE, value, build.const(0, value.dtype)), beyond)
        wide = build.cast(INT64, value)
        self.arguments.said.setdefault(wide, self.arguments.said[value])
        if not (of.is_uint and of.bits == 64):
            self.require_fit(binding.var, wide, lambda: words.negative_size(self.sig, k, self.shown(value)), beyond)
        return wide

    def rounded(self, value: Expr, of: DType, beyond: Words) -> Expr:
        """Returns a float as one of dtype `of`; requires that a finite value stays finite."""
        result = build.cast(of, value)
        if of is not value.dtype and of.bits < 64 and (of.bits < value.dtype.bits or of.bits == 16):
            finite, stays = (Call(BOOL, ISFINITE, (build.cast(FLOAT64, x),)) for x in (value, result))
            self.require(build.logical_or(build.logical_not(finite), stays), beyond)
        return result

    # --- strides ---

    def compact_strides(self, k: int) -> list[Expr]:
        strides, step = [], _ONE
        for dim in reversed(self.dims[k]):
            strides.append(step)
            step = self.arithmetic(Mul, step, dim)
        return strides[::-1]

    def is_empty(self, k: int) -> Expr:
        """Returns the condition that array `k` has no element, so that its strides do not matter."""
        empty = build.const(False)
        for dim in self.dims[k]:
            empty = self.either(empty, self.compared(EQ, dim, _ZERO))
        return empty

    def is_compact(self, k: int) -> Expr:
        same = build.const(True)
        for dim, step, usual in zip(self.dims[k], self.arguments.strides[k], self.compact_strides(k)):
            fits = self.either(self.compared(EQ, dim, _ONE), self.compared(EQ, step, usual))
            same = build.logical_and(same, fits)
        return self.either(self.is_empty(k), same)

    def load_strides(self, k: int) -> list[Expr]:
        """Returns the strides of array `k`, in elements. Requires of an output that no two of its elements overlap."""
        param, given = self.sig.params[k], self.arguments.strides[k]
        assert isinstance(param, TensorParam)
        broadcasts, empty, usual = param.buffer.buffer_type == "auto_broadcast", self.is_empty(k), self.compact_strides(k)
        strides: list[Expr] = []
        for dim, step, compact in zip(self.dims[k], given or usual, usual):
            single = self.compared(EQ, dim, _ONE)
            stride = self.chosen(single, _ZERO if broadcasts else compact, self.chosen(empty, compact, step))
            strides.append(self.named(stride, f"{param.name}_step{len(strides)}", self.said_as(step)))
        if param.written and given:
            self.require_distinct(k, strides)
        return strides

    def named(self, value: Expr, name: str, said: Expr | None) -> Expr:
        """Returns a variable with a value that is computed once, unless it is a constant or a variable. said: what it is in
        words.
        """
        if not isinstance(value, (Var, IntImm)):
            var = Var(name, INT64)
            self.steps.append((var, value))
            value = var
        if said is not None and not isinstance(value, IntImm):
            self.arguments.said.setdefault(value, said)
        return value

    def require_distinct(self, k: int, strides: list[Expr]) -> None:
        """Requires that no two elements of an output overlap: each stride exceeds the span of the dimensions with smaller
        strides.
        """
        sizes = [self.chosen(self.compared(LT, step, _ZERO), self.arithmetic(Sub, _ZERO, step), step) for step in strides]
        reaches = [build.mul(build.sub(dim, _ONE), size) for dim, size in zip(self.dims[k], sizes)]
        for d, (dim, size) in enumerate(zip(self.dims[k], sizes)):
            span = _ZERO
            for other in range(len(sizes)):
                if other != d:
                    span = build.add(span, self.chosen(self.compared(LE, sizes[other], size), reaches[other], _ZERO))
            alone = self.either(self.compared(LE, dim, _ONE), self.is_empty(k))
            self.require(self.either(alone, self.compared(LT, span, size)), lambda: words.shared_elements(
                self.sig, k, f"{self.tuple_text(strides)} in elements", self.tuple_text(self.dims[k]), surely=False))

    def is_stride(self, dim: Expr, given: Expr, wanted: Expr) -> Expr:
        return self.either(self.compared(LE, dim, _ONE), self.compared(EQ, given, wanted))

    def may_meet(self, k: int, other: int) -> bool:
        return self.are_alike(self.arguments.arrays[k].data, self.arguments.arrays[other].data)

    def extent_words(self, k: int) -> Words:
        return lambda: f"{words.argument(self.sig, k)} has shape {self.tuple_text(self.dims[k])}, with an extent below 0"

    def contiguity_words(self, k: int) -> Words:
        return lambda: words.not_contiguous(self.sig, k, f"{self.tuple_text(self.arguments.strides[k])} in elements",
                                            self.tuple_text(self.dims[k]))

    # --- the call ---

    def choose_kernel(self) -> None:
        for k, param in self.sig.tensors():
            if not param.strides and self.arguments.strides[k]:
                self.require(self.is_compact(k), self.contiguity_words(k))
        if self.compact is None:
            self.call_general()
            return
        compact = build.const(True)
        for k, param in self.sig.tensors():
            compact = build.logical_and(compact, self.is_compact(k) if param.strides else build.const(True))
        if isinstance(compact, IntImm):
            self.call_compact(self.compact) if compact.value else self.call_general()
            return
        before, values = self.steps, dict(self.values)
        self.steps = []
        self.call_compact(self.compact)
        then, self.steps, self.values = _sequence(self.steps), [], values
        self.call_general()
        self.steps = [*before, IfThenElse(compact, then, _sequence(self.steps))]

    def call_compact(self, kernel: KernelSymbol) -> None:
        self.check_overlap({})
        self.call(self.called.func.name + COMPACT, kernel)

    def call_general(self) -> None:
        strides = {k: self.load_strides(k) for k, param in self.sig.tensors() if param.strides}
        self.bind("stride", strides)
        for k, param in self.sig.tensors():
            self.check_strides(k, param, strides.get(k, []))
        self.check_overlap(strides)
        self.call(self.called.func.name, self.general)

    def call(self, name: str, kernel: KernelSymbol) -> None:
        args: list[Expr] = [self.pointer(k, written=param.written) for k, param in self.sig.tensors()]
        args += [_converted(self.values[v], v.dtype) for v in kernel.scalars]
        result = self.sig.result
        call = Call(VOID if result is None else result, CALL_EXTERN, (StringImm(name), *args))
        self.steps.append(Evaluate(call if result is None else Call(result, RET, (call,))))


def _sequence(steps: Sequence[Stmt | tuple[Var, Expr]]) -> Stmt:
    """Returns the statement that `steps` are."""
    result: Stmt = seq()
    for step in reversed(steps):
        result = LetStmt(step[0], step[1], result) if isinstance(step, tuple) else seq(step, result)
    return result


def _converted(value: Expr, of: DType) -> Expr:
    """Returns a value of 64 bits, or a condition, in the dtype that a variable or expression of the program has."""
    if value.dtype.is_bool and not of.is_bool:
        return build.select(value, _ONE, _ZERO)
    if of.is_bool and not value.dtype.is_bool:
        return build.not_equal(value, _ZERO)
    return value if of.is_handle or value.dtype is of else build.cast(of, value)

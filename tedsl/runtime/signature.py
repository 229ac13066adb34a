"""The signature of a kernel: its parameters, and how the arguments of a call determine every variable of its shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.raw import scalar_variables
from tedsl.ir.calls.returns import result_of
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, FloatImm, IntImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ACCESS_PTR, ELEMENTS_PAST_LINE, MAKE_ARRAY
from tedsl.ir.stmt import BufferStore, Store
from tedsl.ir.walk.contents import of_kinds
from tedsl.ir.walk.visitor import variables
from tedsl.record import record
from tedsl.runtime.shapes import coefficient

# Attribute of a function whose kernels run elsewhere: the positions of the parameters that they write.
WRITTEN = "tedsl.written"


@record
class TensorParam:
    """An array parameter: `shape` and `strides` (in elements; empty: compact row-major) may use variables.
    `written`: an output.
    """

    name: str
    buffer: Buffer
    written: bool

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.buffer.shape

    @property
    def strides(self) -> tuple[Expr, ...]:
        return self.buffer.strides

    @cached_property
    def shape_text(self) -> str:
        return "(" + ", ".join(map(_text, self.shape)) + ("," if len(self.shape) == 1 else "") + ")"


@record
class ScalarParam:
    """A number parameter, passed for a variable."""

    name: str
    var: Var

    @property
    def dtype(self) -> DType:
        return self.var.dtype


@record
class Binding:
    """The argument of a call that determines `var`: parameter number `param`, whose value is `scale * var + rest`.

    kind: "scalar" (the argument itself), "shape" or "stride" (its dimension `dim`; `expr` is the whole expression, whose
    value at var = 0 is the rest), "offset" (arrays start at their first element, so the value is 0).
    """

    var: Var
    kind: str
    param: int
    dim: int = 0
    expr: Expr | None = None
    scale: int = 1


@record
class Signature:
    """The parameters of a kernel. `scalars`: the variables it receives beside the data pointers, in order.

    noalias: outputs may not overlap other arguments. result: the dtype of the number that it returns; None: it returns nothing.
    """

    name: str
    params: tuple[TensorParam | ScalarParam, ...]
    bindings: tuple[Binding, ...]
    scalars: tuple[Var, ...]
    noalias: bool
    result: DType | None = None

    def tensors(self) -> Iterator[tuple[int, TensorParam]]:
        """Iterates over the array parameters with their positions."""
        return ((k, p) for k, p in enumerate(self.params) if isinstance(p, TensorParam))

    def has_scalars(self) -> bool:
        """Tells whether numbers are among the parameters."""
        return any(isinstance(p, ScalarParam) for p in self.params)

    @property
    def names(self) -> str:
        return ", ".join(p.name for p in self.params)

    @property
    def described(self) -> str:
        """How the function is called, and the dtype of what it returns."""
        return f"{self.name}({self.names})" + (f" -> {self.result}" if self.result is not None else "")

    def has_symbolic_strides(self) -> bool:
        """Tells whether arrays that are not compact are accepted."""
        return any(not isinstance(s, IntImm) for _, p in self.tensors() for s in p.strides)


def signature_of(func: PrimFunc) -> Signature:
    """Returns the signature of `func`, before or after `flatten_storage`.

    Raises LoweringError if the arguments do not determine a variable of a shape.
    """
    written = _written(func)
    params: list[TensorParam | ScalarParam] = []
    for var in func.params:
        buffer = func.buffer_map.get(var)
        params.append(ScalarParam(var.name, var) if buffer is None else
                      TensorParam(buffer.name, _of_numbers(buffer), buffer.data in written))
    scalars = scalar_variables(func)
    noalias = bool(func.attrs.get("tir.noalias", False))
    return Signature(func.name, tuple(params), _solve(func.name, params, scalars), scalars, noalias, result_of(func))


def _of_numbers(buffer: Buffer) -> Buffer:
    """`buffer` as the array that a call passes: lanes of elements that are vectors are its last dimension."""
    lanes = buffer.dtype.lanes
    if lanes == 1:
        return buffer
    one = build.const(1, "int32")
    return buffer.replace(dtype=buffer.dtype.element, shape=(*buffer.shape, build.const(lanes, "int32")),
                          strides=(*[build.mul(stride, lanes) for stride in buffer.strides], one) if buffer.strides else ())


def _written(func: PrimFunc) -> set[Var]:
    """Returns the data pointers that the body may write through. A pointer passed to an external call counts unless it is
    marked read-only.
    """
    if WRITTEN in func.attrs:
        return {func.buffer_map[func.params[k]].data for k in func.attrs[WRITTEN]}
    written: set[Var] = set()
    for node in of_kinds(func.body, Store, BufferStore, Call):
        match node:
            case Store(buffer_var=v):
                written.add(v)
            case BufferStore(buffer=b):
                written.add(b.data)
            case Call(op=op, args=(_, Var() as v, _, _, IntImm(value=mask))) if op is ACCESS_PTR:
                if mask & Buffer.WRITE:
                    written.add(v)
            case Call(op=op, args=(_, _, _, _, marker, _)) if op is MAKE_ARRAY and \
                    isinstance(marker, (IntImm, FloatImm)) and marker.value == 1:
                pass  # an array that is only read
            case Call(op=op) if op is ELEMENTS_PAST_LINE:
                pass  # asks where an array begins
            case Call(args=args):
                written.update(a for a in args if isinstance(a, Var) and a.dtype.is_handle)
    return written


def _solve(name: str, params: list[TensorParam | ScalarParam], scalars: tuple[Var, ...]) -> tuple[Binding, ...]:
    bindings: dict[Var, Binding] = {}
    for k, param in enumerate(params):
        if isinstance(param, ScalarParam):
            bindings[param.var] = Binding(param.var, "scalar", k)
        elif isinstance(param.buffer.elem_offset, Var):
            bindings.setdefault(param.buffer.elem_offset, Binding(param.buffer.elem_offset, "offset", k))
    sources = list(_sources(params))
    for source in sources:  # a dimension that is a variable says it most plainly
        if isinstance(source.expr, Var):
            bindings.setdefault(source.expr, Binding(source.expr, source.kind, source.param, source.dim, source.expr))
    while True:
        before = len(bindings)
        for source in sources:
            _solve_one(source, bindings)
        if len(bindings) == before:
            break
    missing = [v.name for v in scalars if v not in bindings]
    if missing:
        raise LoweringError(f"{name}: no argument determines {', '.join(missing)}",
                            hint=f"add {', '.join(missing)} to the arguments: build(s, [..., {', '.join(missing)}])")
    return tuple(bindings.values())


@record
class _Source:
    kind: str
    param: int
    dim: int
    expr: Expr


def _sources(params: list[TensorParam | ScalarParam]) -> Iterator[_Source]:
    for kind in ("shape", "stride"):
        for k, param in enumerate(params):
            if isinstance(param, TensorParam):
                for dim, expr in enumerate(param.shape if kind == "shape" else param.strides):
                    yield _Source(kind, k, dim, expr)


def _solve_one(source: _Source, found: dict[Var, Binding]) -> None:
    """Adds the binding of the one variable of `source` that is not known yet, if the expression is linear in it."""
    unknown = [v for v in variables(source.expr) if v not in found]
    if len(unknown) == 1:
        scale = coefficient(source.expr, unknown[0])
        if scale:
            found[unknown[0]] = Binding(unknown[0], source.kind, source.param, source.dim, source.expr, scale)


def _text(expr: Expr) -> str:
    return str(expr.value) if isinstance(expr, IntImm) else repr(expr)

"""Operations: the nodes of the graph. Immutable, compared and hashed by identity; their outputs are tensors.

A formula (`te.compute`) is a ComputeOp: `axis` and `reduce_axis` range over `body`, one expression per output. Where
`body[0]` is a Reduce, every `body[i]` is value number i of that same reduction.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.display.facts import facts_page
from tedsl.errors import ArgumentError, ArgumentTypeError, missing_attribute
from tedsl.ir import build
from tedsl.ir.container import Array
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, IntImm, ProducerLoad, Reduce, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import script
from tedsl.ir.source_line import SourceLine
from tedsl.ir.walk.contents import of_kinds
from tedsl.lang.redirect import redirected
from tedsl.lang.tensor import Tensor
from tedsl.record import record

if TYPE_CHECKING:
    from typing_extensions import Self


_NOT_SAVED = ("source", "info", "lines", "by_threads")  # the last fields of operations: what it comes from


class Operation:
    """Base of all operations.

    name: also the name of its outputs; tag: a word by which schedules find it; attrs: data of the user's.
    """

    name: str
    tag: str
    attrs: Mapping[str, Any]
    axis_are_loops: ClassVar[bool] = False  # rather than the dimensions of the outputs
    checked_methods: ClassVar[tuple[str, ...]] = ("shape_of", "dtype_of")  # called by tedsl, for every tensor

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves
        def __getattr__(self, name: str) -> Any:
            if name == "body" and "_unwritten" in vars(self):  # a formula that follows others
                return self._write_body()
            if name.startswith("_") or name == "name":
                raise AttributeError(name)
            instead = {one: f"{self.name}.{one}, of the tensor" for one in ("shape", "dtype", "ndim")}
            if isinstance(self, PlaceholderOp):
                loops = f"the loops of what reads {self.name}, or of a copy: s.cache_read({self.name}, 'global', [reader])"
                instead |= dict.fromkeys(("axis", "reduce_axis"), loops)
            raise missing_attribute(f"the operation {self.name}", name, self, instead)

        def __call__(self, *args: Any, **named: Any) -> Any:
            raise ArgumentTypeError(f"the operation {self.name} cannot be called",
                                    hint=f"its result is {self.name}.output(0), a tensor; an element of that is A[i]")

    def __parts__(self) -> tuple[Any, ...]:
        """The class and the arguments that make such an operation: what `save_json` writes of it."""
        made: Any = self  # of a class that has fields
        names = [one.name for one in fields(made) if one.init and one.name not in _NOT_SAVED]
        return type(self).__name__, *[getattr(self, name) for name in names]

    @property
    def num_outputs(self) -> int:
        raise NotImplementedError

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors that are read, each once, in the order in which the formula reads them."""
        return []

    @cached_property
    def sources(self) -> frozenset[Operation]:
        """The operations whose tensors are read."""
        return frozenset([tensor.op for tensor in self.input_tensors])

    @property
    def without_loops(self) -> tuple[IterVar, ...]:
        """The axes that have no loops because a tensor intrinsic computes them."""
        return ()

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        """The shape of output number `index`."""
        raise NotImplementedError

    def dtype_of(self, index: int) -> DType:
        """The dtype of output number `index`."""
        raise NotImplementedError

    def output(self, index: int) -> Tensor:
        """Output number `index` as a tensor."""
        if not 0 <= index < self.num_outputs:
            raise ArgumentError(f"{self.name} has {self.num_outputs} output{'s' * (self.num_outputs > 1)}; "
                                f"there is no output({index})")
        return Tensor(self, index)

    def reading(self, mapping: Mapping[Tensor, Tensor]) -> Self:
        """A copy of this operation that reads `mapping[t]` wherever it reads `t`; itself if it reads none of them."""
        return self

    def following(self, replaced: Mapping[Operation, Operation]) -> Self:
        """A copy of this operation that reads the outputs of `replaced[op]` wherever it reads those of op; itself if it reads
        none of them.
        """
        return self if self.sources.isdisjoint(replaced) else self.reading(OutputsOf(replaced))

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other

    def facts(self) -> dict[str, object]:
        """The properties of this operation that a notebook shows, as texts by name."""
        source = getattr(self, "source", None)
        return {"operation": type(self).__name__, "reads": ", ".join(tensor.name for tensor in self.input_tensors),
                "tag": self.tag, "written in": "" if source is None else source.short}

    def _repr_html_(self) -> str:
        return facts_page(f"Operation {self.name}", self.facts())

    def replace(self, **changed: Any) -> Self:
        """A new operation with the named fields changed."""
        cls: Any = type(self)
        kept = {f.name: getattr(self, f.name) for f in fields(cls) if f.name not in changed}
        made: Self = cls(**kept, **changed)
        return made


@record(eq=False, repr=False)
class PlaceholderOp(Operation):
    """A tensor that the caller of the compiled function passes."""

    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    tag: str = ""
    attrs: Mapping[str, Any] = field(default_factory=FrozenDict)

    @property
    def num_outputs(self) -> int:
        return 1

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        return self.shape

    def dtype_of(self, index: int) -> DType:
        return self.dtype

    def __repr__(self) -> str:
        return f"placeholder({self.name}, {_listed(self.shape)})"


@record(eq=False, repr=False)
class ComputeOp(Operation):
    """`body[v]` for all values of `axis` (the shape), reduced over `reduce_axis`.

    info: a typed record of the operator family that made it, for schedules to find its stages by; None for plain formulas.
    source: the line of the user's program that wrote the formula, or the one from which a directive derived it.

    The body of a formula that is `following` others is written when it is first asked for: one directive after the other
    redirects all that follows a stage, and only the last bodies are read.
    """

    name: str
    tag: str
    attrs: Mapping[str, Any]
    axis: tuple[IterVar, ...]
    reduce_axis: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    info: Any = None
    source: SourceLine | None = None

    @property
    def num_outputs(self) -> int:
        return len(self._dtypes)

    def shape_of(self, index: int) -> tuple[Expr, ...]:
        return self.shape

    def dtype_of(self, index: int) -> DType:
        return self._dtypes[index]

    @cached_property
    def _dtypes(self) -> tuple[DType, ...]:
        return tuple([value.dtype for value in self.body])

    @cached_property
    def shape(self) -> tuple[Expr, ...]:
        """The shape of every output: the extents of the axes."""
        return Array([extent_of(axis) for axis in self.axis])

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(self._inputs)

    @cached_property
    def _inputs(self) -> tuple[Tensor, ...]:
        tensors: dict[Tensor, None] = {}
        if "_unwritten" in self.__dict__:
            written, reads = self.__dict__["_unwritten"]
            outputs = OutputsOf(_changed(reads))
            return tuple(dict.fromkeys([outputs.get(tensor, tensor) for tensor in written.input_tensors]))
        roots: list[Any] = [axis.dom for axis in self.reduce_axis]  # the extent of a reduction may be read from a tensor
        roots.extend(self.body)
        for root in roots:
            for node in of_kinds(root, ProducerLoad):
                if type(node) is ProducerLoad:
                    tensors.setdefault(node.producer)
        return tuple(tensors)

    def reading(self, mapping: Mapping[Tensor, Tensor]) -> Self:
        """A copy of this formula that reads `mapping[t]` wherever it reads t; itself if it reads none of them.

        The axes stay the same objects, so that schedules that refer to them stay valid. Therefore an extent that is read from
        a tensor is still read from the old tensor.
        """
        body = redirected(self.body, mapping)
        return self if all(a is b for a, b in zip(body, self.body)) else self.replace(body=body)

    def following(self, replaced: Mapping[Operation, Operation]) -> Self:
        if self.sources.isdisjoint(replaced):
            return self
        if not all(isinstance(part, IntImm) for axis in self.reduce_axis for part in _bounds(axis)):
            return self.reading(OutputsOf(replaced))
        written, reads = self.__dict__.get("_unwritten") or (self, {op: op for op in self.sources})
        reads = {op: replaced.get(now, now) for op, now in reads.items()}
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _unwritten=(written, reads), sources=frozenset(reads.values()),
                              _dtypes=self._dtypes)
        for name in ("body", "_inputs"):
            other.__dict__.pop(name, None)
        return other

    def _write_body(self) -> tuple[Expr, ...]:
        """Writes the body of a formula that follows others."""
        written, reads = self.__dict__["_unwritten"]
        body = self.__dict__["body"] = redirected(written.body, OutputsOf(_changed(reads)))
        del self.__dict__["_unwritten"]
        return body

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def reduction(self) -> Reduce | None:
        """The reduction that the body is, or None."""
        first = self.body[0]
        return first if isinstance(first, Reduce) else None

    def facts(self) -> dict[str, object]:
        return {**super().facts(), "axes": ", ".join(map(_range_of, self.axis)),
                "reduced over": ", ".join(map(_range_of, self.reduce_axis)), "formula": "\n".join(map(script, self.body))}

    def __repr__(self) -> str:
        return (f"compute({self.name}, body={_listed(self.body)}, axis={_listed(self.axis)}, "
                f"reduce_axis={_listed(self.reduce_axis)}, tag={self.tag}, attrs={dict(self.attrs)!r})")


def _changed(replaced: Mapping[Operation, Operation]) -> dict[Operation, Operation]:
    return {op: now for op, now in replaced.items() if now is not op}


class OutputsOf(Mapping[Tensor, Tensor]):
    """Maps each output of an operation to that of the operation that replaces it."""

    def __init__(self, replaced: Mapping[Operation, Operation]) -> None:
        self.replaced = replaced

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and tensor.op in self.replaced

    def __getitem__(self, tensor: Tensor) -> Tensor:
        return self.replaced[tensor.op].output(tensor.value_index)

    def __iter__(self) -> Iterator[Tensor]:
        return iter([op.output(index) for op in self.replaced for index in range(op.num_outputs)])

    def __len__(self) -> int:
        return sum(op.num_outputs for op in self.replaced)


def _range_of(axis: IterVar) -> str:
    """An axis with its range, as `i in 0..16`."""
    if axis.dom is None or axis.dom.extent is None:
        return axis.var.name
    return f"{axis.var.name} in {axis.dom.min!r}..{build.add(axis.dom.min, axis.dom.extent)!r}"


def as_attrs(given: Mapping[str, Any] | None) -> FrozenDict[str, Any]:
    """The attributes of an operation in the form that programs read: numbers become constants with a `.value`, lists tuples."""
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentTypeError(f"attrs is a mapping of names to values, got {given!r}", hint='attrs={"layout": "NCHW"}')
    return FrozenDict({name: _attr(value) for name, value in (given or {}).items()})


def _attr(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return build.const(value)
    if isinstance(value, (list, tuple)):
        return tuple([_attr(element) for element in value])
    return as_attrs(value) if isinstance(value, dict) else value


def _listed(items: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(repr, items))}]"


def root_axes(op: Operation) -> tuple[IterVar, ...]:
    """The axes of an operation, reduce axes last; a scan has one, over its steps."""
    fields = vars(op)  # an operation writes a message for an attribute that it does not have
    scan_axis = fields.get("scan_axis")
    return (scan_axis,) if scan_axis is not None else (*fields.get("axis", ()), *fields.get("reduce_axis", ()))


def _bounds(axis: IterVar) -> tuple[Expr | None, ...]:
    return (None,) if axis.dom is None else (axis.dom.min, axis.dom.extent)


def extent_of(axis: IterVar) -> Expr:
    """The extent of an axis whose range is known."""
    assert axis.dom is not None and axis.dom.extent is not None, f"the axis {axis.name} has no range"
    return axis.dom.extent


# The variables of axes, so that a formula that uses an axis of another one can be told from one that uses te.var; and
# which computes reduce over an axis. Weak: both forget what nobody else holds.
_AXES: weakref.WeakSet[Var] = weakref.WeakSet()
_THREADS: weakref.WeakKeyDictionary[Var, weakref.ref[IterVar]] = weakref.WeakKeyDictionary()
_REDUCED_BY: weakref.WeakKeyDictionary[Var, list[weakref.ref[ComputeOp]]] = weakref.WeakKeyDictionary()


def note_axis(axis: IterVar) -> IterVar:
    """Register the variable of `axis` for `is_axis_variable`; returns `axis`."""
    _AXES.add(axis.var)
    return axis


def is_axis_variable(var: Var) -> bool:
    """Whether `var` belongs to an axis of some compute or to a reduce axis."""
    return var in _AXES


def note_thread_axis(axis: IterVar) -> IterVar:
    """Register the variable of the thread axis `axis` for `thread_axis_of`; returns `axis`."""
    _THREADS[axis.var] = weakref.ref(axis)
    return axis


def thread_axis_of(var: Var) -> IterVar | None:
    """The thread axis, still referenced, whose variable is `var`; None for any other variable."""
    known = _THREADS.get(var)
    return None if known is None else known()


def note_reduction(op: ComputeOp) -> None:
    """Register `op` as a reducer over its reduce axes, for `reducers_over`."""
    for axis in op.reduce_axis:
        _REDUCED_BY.setdefault(axis.var, []).append(weakref.ref(op))


def reducers_over(axis: IterVar) -> list[ComputeOp]:
    """The computes, of those still referenced, that reduce over `axis`."""
    return [op for ref in _REDUCED_BY.get(axis.var, ()) if (op := ref()) is not None]

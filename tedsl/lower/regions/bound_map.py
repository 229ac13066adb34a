"""TVM's API of bound inference: the ranges of loops, and the loops of a schedule without arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import BufferLoad, Expr, StringImm, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import shown
from tedsl.ir.stmt import AttrStmt, BufferRealize, BufferStore, Stmt
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.operation import Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.arguments import Arguments, TensorBuffers
from tedsl.lower.computations import placed_computations
from tedsl.lower.place_stages import place_stages
from tedsl.lower.plan import Key, Program
from tedsl.lower.regions.bounds import infer_bounds
from tedsl.lower.regions.producers import over_buffers, producers
from tedsl.lower.uneven_splits import check_tails
from tedsl.schedule.handles import Schedule
from tedsl.schedule.state import ScheduleState

NOTHING = Arguments((), {}, {})


def infer_bound(sch: Schedule) -> FrozenDict[IterVar, Range]:
    """The range of every axis and every loop made of one, for the stages that have loops.

    An axis of a stage that is computed at a loop of another ranges over what is needed there; loops start at 0.
    """
    program, _ = planned(_checked(sch))
    return FrozenDict(_ranges(program))


def schedule_ops(sch: Schedule, bounds: Mapping[IterVar, Range], debug_keep_trivial_loop: bool = False) -> Stmt:
    """The loops of `sch` over buffers: every tensor that is computed is allocated, every input is free.

    `bounds` are those of `infer_bound`: a schedule has no other loops. debug_keep_trivial_loop: accepted; loops of one
    iteration are kept here in any case, and simplified by passes.
    """
    program, analyzer = planned(_checked(sch))
    known = _ranges(program)
    for axis, known_range in known.items():
        given = bounds.get(axis) if isinstance(bounds, Mapping) else None
        if given is None or not _agree(given, known_range):
            raise ArgumentError(f"ScheduleOps: {axis.name} ranges over {shown(known_range)}, and bounds say {shown(given)}",
                                hint="give te.schedule.InferBound(s) of the same schedule")
    check_tails(program.plans, NOTHING)
    memory = TensorBuffers(sch.state, NOTHING)
    body, _ = place_stages(program, memory, analyzer)
    for key, buffer in memory.buffers.items():
        _STANDS_FOR[buffer] = sch.state, key
    scoped: Stmt = _InScopes({buffer: key[0] for key, buffer in memory.buffers.items()})(body)
    return scoped


class _InScopes(Rewriter):
    """Writes around the allocation of a tensor, as TVM does, an attribute that says of what operation it is, and its scope."""

    def __init__(self, operations: Mapping[Buffer, Operation]) -> None:
        super().__init__()
        self.operations = operations

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, BufferRealize) or node.buffer not in self.operations:
            return node
        scope = node.buffer.scope()
        return AttrStmt(self.operations[node.buffer], _SCOPE, StringImm("" if scope == "global" else scope), node)


_SCOPE = "realize_scope"


def _agree(given: Range, known: Range) -> bool:
    """Tells whether a range is the one that is known. Variables correspond by their names: a range may be of a copy of the
    schedule.
    """
    if not isinstance(given, Range):
        return False
    named = {var.name: var for var in _variables(known)}
    renamed = {var: named[var.name] for var in _variables(given) if var.name in named}
    parts = ((given.min, known.min), (given.extent, known.extent))
    return all(a is not None and b is not None and _same(substitute(a, renamed), b) for a, b in parts)


def _same(a: Expr, b: Expr) -> bool:
    return structural_equal(a, b) or Analyzer().can_prove(build.equal(a, b))


def _variables(given: Range) -> list[Var]:
    parts = [part for part in (given.min, given.extent) if part is not None]
    return [node for part in parts for node in post_order(part) if isinstance(node, Var)]


def as_prim_func(arg_list: Sequence[Any], body: Stmt, extern_buffer_map: Mapping[Tensor, Buffer] | None = None) -> PrimFunc:
    """The statement of `schedule_ops` as a function of tensors, buffers and variables; results among them are not allocated.

    A statement of `tir.ProducerStore`, `ProducerLoad` and `ProducerRealize` gets buffers for its tensors: those of
    `extern_buffer_map`, the arguments', and one for each tensor that is realized.
    """
    tensors = producers(body)
    extern = dict(extern_buffer_map or {})
    if extern and not tensors:
        raise ArgumentError("SchedulePostProcToPrimFunc: the loops are made already, over buffers of their own",
                            hint="give buffers to lower: tedsl.lower(s, args, binds={A: buffer})")
    params: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    for arg in arg_list:
        if isinstance(arg, Var):
            params.append(arg)
            continue
        if isinstance(arg, Tensor) and arg in tensors:
            buffer = extern.setdefault(arg, decl_buffer(arg.shape, arg.dtype, arg.name))
        else:
            buffer = arg if isinstance(arg, Buffer) else _buffer_of(arg, body)
        handle = Var(buffer.name, HANDLE)
        params.append(handle)
        buffer_map[handle] = buffer
    given = set(buffer_map.values())
    body = over_buffers(body, extern) if tensors else body
    attrs = {"from_legacy_te_schedule": True}
    return PrimFunc(tuple(params), _WithoutRealizeOf(given)(body), None, buffer_map, attrs)


class _WithoutRealizeOf(Rewriter):
    """Drops the allocations of tensors that the caller passes, and the attributes that say of what operations others are."""

    def __init__(self, given: set[Buffer]) -> None:
        super().__init__()
        self.given = given

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, AttrStmt) and node.attr_key == _SCOPE:
            return node.body
        return node.body if isinstance(node, BufferRealize) and node.buffer in self.given else node


# What tensor a buffer of `schedule_ops` stands for, in the schedule it was made from. Forgotten with the statement.
_STANDS_FOR: WeakKeyDictionary[Buffer, tuple[ScheduleState, Key]] = WeakKeyDictionary()


def _output_of(tensor: Tensor, state: ScheduleState) -> Key:
    """The current tensor for `tensor`, whose operation cache_write or rfactor may have replaced."""
    stage = state.stage_map.get(tensor.op)
    return (tensor.op if stage is None else stage.op), tensor.value_index


def _buffer_of(tensor: Any, body: Stmt) -> Buffer:
    """The buffer that stands for `tensor` in `body`; a new one for an input that is not read."""
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"SchedulePostProcToPrimFunc: an argument is {shown(tensor)}",
                                hint="arguments are tensors, variables of te.var, and buffers of tir.decl_buffer")
    for node in post_order(body):
        if isinstance(node, (BufferLoad, BufferStore, BufferRealize)):
            known = _STANDS_FOR.get(node.buffer)
            if known is not None and _output_of(tensor, known[0]) == known[1]:
                return node.buffer
    if not isinstance(tensor.op, PlaceholderOp):
        raise ArgumentError(f"SchedulePostProcToPrimFunc: the statement does not compute {tensor.name}",
                            hint="give the statement that te.schedule.ScheduleOps made of the same schedule; what is computed "
                                 "inline has no memory")
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name)


def _checked(sch: Schedule) -> Schedule:
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"a Schedule is needed, not {shown(sch)}", hint="s = te.create_schedule(C.op)")
    return sch


def planned(sch: Schedule) -> tuple[Program, Analyzer]:
    """The program of a schedule; the analyzer knows the loops. Without arguments no array begins behind a line."""
    placements, _ = placed_computations(sch.state)
    analyzer = Analyzer()
    inputs = [stage.op for stage in sch.state.stages if isinstance(stage.op, PlaceholderOp)]
    analyzer.bind_sizes([dim for op in inputs for dim in op.shape_of(0)], at_least=0)
    return infer_bounds(sch.state, placements, analyzer, lambda split: None), analyzer


def _ranges(program: Program) -> dict[IterVar, Range]:
    """The range of each axis in the variables of the schedule's loops, which the caller has, and of threads."""
    ranges: dict[IterVar, Range] = {}
    leaves = {loop.var: loop.leaf.var for plan in program.plans for loop in plan.loops
              if loop.var is not None and loop.attr.bind_thread is None}
    for plan in program.plans:
        for axis, extent in plan.extents.items():
            low: Expr = plan.mins.get(axis, build.const(0, axis.dtype))
            ranges[axis] = Range.from_min_extent(substitute(low, leaves), substitute(extent, leaves))
    return ranges

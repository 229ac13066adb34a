"""A schedule and its arguments become a function of loops over buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.returns import with_result
from tedsl.ir.expr import Add, BufferLoad, FloatImm, IntImm, Let, Mul, StringImm, Sub, Var
from tedsl.ir.func import Accesses, PrimFunc
from tedsl.ir.iters import IterVar
from tedsl.ir.stmt import BIND_SCOPE, Allocate, AssertStmt, AttrStmt, BufferRealize, BufferStore, For, LetStmt, Stmt
from tedsl.ir.text import key_text
from tedsl.ir.verify import verify
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.extern import ExternOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.arguments import (
    Arguments,
    TensorBuffers,
    bind_requirements,
    bound_symbols,
    broadcasting,
    check_arguments,
    make_arguments,
)
from tedsl.lower.checks import Requirement
from tedsl.lower.computations import placed_computations
from tedsl.lower.in_vectors import check_lanes
from tedsl.lower.legality import check_legality
from tedsl.lower.place_stages import Guards, place_stages
from tedsl.lower.plan import Program
from tedsl.lower.regions.bounds import infer_bounds
from tedsl.lower.regions.counts import count_requirements
from tedsl.lower.regions.lines import Leads
from tedsl.lower.request import PLAIN_BUFFERS, BufferOptions
from tedsl.lower.threads.launches import parted_memory
from tedsl.lower.uneven_splits import check_tails
from tedsl.lower.written.function import check_parts, check_written, is_vouched_for, vouch_for, well_formed
from tedsl.schedule.handles import Schedule

_NAMELESS = frozenset((IntImm, FloatImm, Add, Sub, Mul))  # frequent kinds of nodes that name no variables


def lower_schedule(sch: Schedule, args: Sequence[Tensor | Var | Buffer], name: str = "main",
                   binds: Mapping[Tensor, Buffer] | None = None, *, to_run: bool = True,
                   accesses: Accesses = Accesses.PROVED,
                   buffers: BufferOptions = PLAIN_BUFFERS,
                   observe: Callable[[Program, Guards, Analyzer], None] | None = None) -> PrimFunc:
    """The loops of `sch` as a function of `args`, over multi-dimensional buffers. The schedule is not changed.

    An output that is not among `args` is allocated inside. `binds` maps tensors to buffers that the caller declared.
    to_run: refuse an argument that the loops would not write because its stage is inlined. accesses: AT_RUN_TIME adds
    attributes for `passes/checked` that say which stage each loop computes. buffers: options for the tensors among `args`.
    observe: called with the Program.
    """
    state = sch.state
    arguments = make_arguments(state, args, binds, buffers)
    placements, requirements = placed_computations(state, accesses=accesses)
    check_arguments(state, placements, arguments, to_run)
    analyzer = Analyzer()
    dims = [dim for buffer in arguments.buffer_map.values() for dim in buffer.shape]
    analyzer.bind_sizes(dims, at_least=0)
    with ExitStack() as known:
        for dim in dims:
            if not isinstance(dim, (Var, IntImm)):
                known.enter_context(analyzer.constraint_scope(build.greater_equal(dim, 0)))
        requirements += count_requirements(state, placements, bound_symbols(arguments), analyzer)
        memory = TensorBuffers(state, arguments)
        leads = Leads(memory, analyzer)
        program = infer_bounds(state, placements, analyzer, leads)
        notes = check_tails(program.plans, arguments)
        check_lanes(program.plans)
        check_legality(state, program, analyzer)
        body, guards = place_stages(program, memory, analyzer, accesses=accesses)
        if observe is not None:
            observe(program, guards, analyzer)
    body = _with_requirements(leads.around(body), [*bind_requirements(binds), *broadcasting(requirements, binds)])
    if (unbound := _unbound(body, arguments, [*_in_predicates(program), *memory.forgotten()])) is not None:
        refuse_to_run(unbound)
    attrs = {"from_legacy_te_schedule": True, "global_symbol": name, "tir.noalias": True, **notes,
             **parted_memory(program.plans)}
    func = PrimFunc(arguments.params, body, None, arguments.buffer_map, attrs)
    if any(isinstance(plan.op, ExternOp) for plan in placements):  # statements of the user's
        func = with_result(func)
        verify(func, flat=False, error=LoweringError)
    return vouch_for(func)


def _with_requirements(body: Stmt, requirements: Sequence[Requirement]) -> Stmt:
    """`body` after assertions of the requirements, each once; variables that share a name are told apart."""
    once = {(key_text(needed.condition), tuple(variables(needed.condition))): needed for needed in requirements}
    for requirement in reversed(once.values()):
        body = AssertStmt(requirement.condition, StringImm(requirement.message), body)
    return body


def check_function(func: PrimFunc, *, accesses: Accesses = Accesses.PROVED) -> PrimFunc:
    """`func`, safe to run: a handwritten function is bounds-checked by `written`.

    accesses: AT_RUN_TIME leaves the bounds checks of all accesses to `passes/checked`.
    """
    check_parts(func)
    if is_vouched_for(func):
        return func
    if (unbound := _unbound(func.body, Arguments(func.params, func.buffer_map, {}))) is not None:
        raise unbound
    return well_formed(func) if accesses is Accesses.AT_RUN_TIME else check_written(func, accesses)


def _in_predicates(program: Program) -> list[Var]:
    """The variables of the store predicates, which `check_legality` has looked at."""
    return [v for plan in program.plans if plan.stage.store_predicate is not None
            for v in variables(plan.stage.store_predicate)]


def _unbound(body: Stmt, arguments: Arguments, known: Sequence[Var] = ()) -> LoweringError | None:
    """The refusal of variables, other than `known`, that no argument gives a value to; None if there are none."""
    bound = {**bound_symbols(arguments), **dict.fromkeys(known)}
    used: dict[Var, None] = {}
    for node in post_order(body):
        if type(node) in _NAMELESS:
            continue
        match node:
            case Var():
                used[node] = None
            case For(loop_var=v) | LetStmt(var=v) | Let(var=v) | AttrStmt(node=IterVar(var=v)):
                bound[v] = None
            case AttrStmt(attr_key=key, node=(Buffer() as window, _)) if key == BIND_SCOPE:
                for part in (window.data, window.elem_offset, *window.strides):
                    bound.update(dict.fromkeys(variables(part)))
            case BufferLoad(buffer=buffer) | BufferStore(buffer=buffer):
                used.setdefault(buffer.data)
            case BufferRealize(buffer=buffer):
                bound[buffer.data] = None
            case Allocate(buffer_var=v):
                bound[v] = None
    free = [v for v in used if v not in bound]
    if not free:
        return None
    names = ", ".join(dict.fromkeys(v.name for v in free))
    return LoweringError(f"the loops use {names}, and no argument gives {'it a value' if len(free) == 1 else 'them values'}",
                         hint=f"pass {names} as an argument, or a tensor whose shape contains it", about=free[0])

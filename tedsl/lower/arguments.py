"""The parameters of the function and the memory of every tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.equal import structural_equal
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.iters import IterVar
from tedsl.ir.visitor import variables
from tedsl.lang.operation import Operation, PlaceholderOp
from tedsl.lang.tensor import Tensor
from tedsl.lower.checks import Requirement
from tedsl.lower.plan import StagePlan
from tedsl.schedule.state import AttachType, ScheduleState

Key = tuple[Operation, int]


@dataclass(frozen=True, eq=False)
class Arguments:
    """The parameters in order, and the buffer behind each handle. tensors: the ones that were given, as they are now."""

    params: tuple[Var, ...]
    buffer_map: Mapping[Var, Buffer]
    tensors: Mapping[Key, Buffer]


def make_arguments(schedule: ScheduleState, args: Sequence[Any], binds: Mapping[Tensor, Buffer] | None) -> Arguments:
    """A parameter for each of `args`: tensors and buffers become handles, variables stay."""
    bound = _checked_binds(binds)
    params: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    tensors: dict[Key, Buffer] = {_key(schedule, tensor): buffer for tensor, buffer in bound.items()}
    seen: set[Any] = set()
    for position, arg in enumerate(args):
        arg = arg.var if isinstance(arg, IterVar) else arg
        if not isinstance(arg, (Tensor, Var, Buffer)):
            raise LoweringError(f"argument {position} of the function is {arg!r} ({type(arg).__name__})",
                                hint="arguments are tensors, variables of te.var, and buffers of tir.decl_buffer")
        if arg in seen:
            raise LoweringError(f"{arg.name} is given twice in the arguments: {_names(args)}", hint="list each argument once")
        seen.add(arg)
        if isinstance(arg, Var):
            params.append(arg)
            continue
        if isinstance(arg, Tensor):
            key = _key(schedule, arg)
            buffer = tensors[key] if key in tensors else argument_buffer(arg)
            tensors[key] = buffer
        else:
            buffer = arg
        handle = Var(buffer.name, HANDLE)
        params.append(handle)
        buffer_map[handle] = buffer
    return Arguments(tuple(params), buffer_map, tensors)


def _checked_binds(binds: Any) -> dict[Tensor, Buffer]:
    """`binds` as a dict; LoweringError where a buffer cannot hold its tensor."""
    if binds is None:
        return {}
    if not isinstance(binds, Mapping) or not all(isinstance(t, Tensor) and isinstance(b, Buffer) for t, b in binds.items()):
        raise LoweringError(f"binds is a dict from tensors to buffers, not {binds!r}",
                            hint="binds={A: tir.decl_buffer(A.shape, A.dtype)}")
    for tensor, buffer in binds.items():
        constant = [(a.value, b.value) for a, b in zip(tensor.shape, buffer.shape)
                    if isinstance(a, IntImm) and isinstance(b, IntImm)]
        if buffer.dtype != tensor.dtype or len(buffer.shape) != len(tensor.shape) or any(a != b for a, b in constant):
            raise LoweringError(f"binds: the buffer {buffer.name} has shape {list(buffer.shape)} and dtype {buffer.dtype}; "
                                f"{tensor.name} has shape {list(tensor.shape)} and dtype {tensor.dtype}",
                                hint=f"make it by tir.decl_buffer({tensor.name}.shape, {tensor.name}.dtype)")
    return dict(binds)


def bind_requirements(binds: Mapping[Tensor, Buffer] | None) -> list[Requirement]:
    """The dimensions of a buffer of the caller's must be its tensor's: checked at the call where they are not the same."""
    return [Requirement(build.equal(a, b), f"dimension {k} of {buffer.name} is {b!r}, that of {tensor.name} {a!r}: they differ")
            for tensor, buffer in (binds or {}).items() for k, (a, b) in enumerate(zip(tensor.shape, buffer.shape))
            if not structural_equal(a, b, map_free_vars=False)]


def _names(args: Iterable[Any]) -> str:
    return ", ".join(str(getattr(arg, "name", arg)) for arg in args)


def _key(schedule: ScheduleState, tensor: Tensor) -> Key:
    """The output that `tensor` is now: its operation may have been replaced by cache_write or rfactor."""
    stage = schedule.stage_map.get(tensor.op)
    return (tensor.op if stage is None else stage.op), tensor.value_index


def argument_buffer(tensor: Tensor) -> Buffer:
    """The buffer of a tensor that the caller passes: compact for a constant shape, any strides for a symbolic one."""
    if all(isinstance(dim, IntImm) for dim in tensor.shape):
        return decl_buffer(tensor.shape, tensor.dtype, tensor.name)
    strides = tuple(Var("stride", dim.dtype) for dim in tensor.shape)
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name, strides=strides, buffer_type="auto")


class Memory:
    """The buffer of each tensor: that of the argument, or one that the function allocates itself."""

    def __init__(self, schedule: ScheduleState, arguments: Arguments) -> None:
        self.schedule = schedule
        self.given = set(arguments.buffer_map.values()) | set(arguments.tensors.values())
        self.buffers: dict[Key, Buffer] = dict(arguments.tensors)

    def __call__(self, tensor: Tensor) -> Buffer:
        key = _key(self.schedule, tensor)
        found = self.buffers.get(key)
        if found is None:
            scope = self.schedule.stage_map[tensor.op].scope
            found = self.buffers[key] = decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=scope)
        return found

    def outputs(self, plan: StagePlan) -> tuple[Buffer, ...]:
        return tuple(self(plan.op.output(i)) for i in range(plan.op.num_outputs))

    def is_argument(self, buffer: Buffer) -> bool:
        return buffer in self.given


def check_arguments(schedule: ScheduleState, plans: Sequence[StagePlan], arguments: Arguments) -> None:
    """Refuse arguments without which, or with which, the loops would be wrong."""
    _check_inputs(schedule, plans, arguments)
    for stage in schedule.stages:
        given = [stage.op.output(i).name for i in range(stage.op.num_outputs) if (stage.op, i) in arguments.tensors]
        if not given or stage.is_placeholder:
            continue
        hint = f"drop {given[0]} from the arguments, or call s[{stage.name}].compute_root()"
        if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
            raise LoweringError(f"{given[0]} is an argument, and its stage is computed inline: nothing would write it",
                                hint=hint)
        if stage.attach_type == AttachType.SCOPE:
            raise LoweringError(f"{given[0]} is an argument, and its stage is computed inside a loop of another one: only the "
                                "parts that are read there would be written", hint=hint)


def _check_inputs(schedule: ScheduleState, plans: Sequence[StagePlan], arguments: Arguments) -> None:
    missing: dict[str, None] = {}
    for plan in plans:
        for load in plan.reads:
            op, index = _key(schedule, load.producer)
            if isinstance(op, PlaceholderOp) and (op, index) not in arguments.tensors:
                missing[load.producer.name] = None
    if missing:
        names, one = ", ".join(missing), len(missing) == 1
        raise LoweringError(f"the program reads {names}, which {'is' if one else 'are'} not among the arguments",
                            hint=f"pass {'it' if one else 'them'} to lower or build too: lower(s, [..., {names}])")


def bound_symbols(arguments: Arguments) -> dict[Var, None]:
    """The variables that a call gives values to: scalar parameters, data pointers, symbols of shapes and strides."""
    found: dict[Var, None] = dict.fromkeys(arguments.params)
    for buffer in arguments.buffer_map.values():
        found[buffer.data] = None
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            found.update(dict.fromkeys(variables(part)))
    return found


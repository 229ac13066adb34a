"""The parameters of the function and the memory of every tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tedsl.errors import LoweringError
from tedsl.findings import refuse_to_run
from tedsl.ir import build
from tedsl.ir.buffer import Buffer, decl_buffer
from tedsl.ir.dtype import HANDLE
from tedsl.ir.expr import Expr, IntImm, ProducerLoad, Var
from tedsl.ir.iters import IterType, IterVar
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import variables
from tedsl.lang.extern import ExternOp
from tedsl.lang.operation import PlaceholderOp, extent_of
from tedsl.lang.reads import guarded_loads
from tedsl.lang.tensor import Tensor
from tedsl.lower.checks import Requirement
from tedsl.lower.in_place import check_in_place
from tedsl.lower.plan import Key, Placement, StagePlan
from tedsl.lower.request import PLAIN_BUFFERS, BufferOptions
from tedsl.lower.scan.step_regions import check_shared, shared_memory
from tedsl.record import record
from tedsl.schedule.causes import attached
from tedsl.schedule.state import AttachType, ScheduleState
from tedsl.schedule.thread_ranks import memory_scope


@record(eq=False)
class Arguments:
    """The parameters of the function in order, and the buffer of each parameter that is a handle.

    tensors: the buffers of those arguments that are tensors.
    """

    params: tuple[Var, ...]
    buffer_map: Mapping[Var, Buffer]
    tensors: Mapping[Key, Buffer]


def make_arguments(schedule: ScheduleState, args: Sequence[Any], binds: Mapping[Tensor, Buffer] | None,
                   buffers: BufferOptions = PLAIN_BUFFERS) -> Arguments:
    """Returns a parameter for each of `args`: a handle for a tensor or a buffer, the variable itself for a scalar."""
    bound = _checked_binds(binds)
    params: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    tensors: dict[Key, Buffer] = {_key(schedule, tensor): buffer for tensor, buffer in bound.items()}
    seen: set[Any] = set()
    compact, strided = _memory_of_externs(schedule)
    for position, arg in enumerate(args):
        arg = arg.var if isinstance(arg, IterVar) else arg
        if not isinstance(arg, (Tensor, Var, Buffer)):
            raise LoweringError(f"argument {position + 1} of the function is {_not_an_argument(arg)}",
                                hint="arguments are tensors, variables of te.var, and buffers of tir.decl_buffer" +
                                     "; arrays are given when the built function is called" * hasattr(arg, "__array__"))
        if arg in seen:
            raise LoweringError(f"{arg.name} is given twice in the arguments: {_names(args)}", hint="list each argument once")
        seen.add(arg)
        if isinstance(arg, Var):
            params.append(arg)
            continue
        if isinstance(arg, Tensor):
            key = _key(schedule, arg)
            if key not in tensors:
                shape = key[0].shape_of(key[1])
                tensors[key] = argument_buffer(arg, shape, buffers, compact=compact and arg not in strided)
            buffer = tensors[key]
        else:
            buffer = arg
        handle = Var(buffer.name, HANDLE)
        params.append(handle)
        buffer_map[handle] = buffer
    _check_computed(schedule, args)
    _check_buffers(buffer_map.values())
    for tensor, buffer in bound.items():
        if buffer not in buffer_map.values():
            raise LoweringError(f"binds: {tensor.name} is bound to the buffer {buffer.name}, and neither is an argument",
                                hint=f"pass the tensor {tensor.name} or that buffer too; memory between stages is laid out by "
                                     f"s[{tensor.name}].storage_align and transform_layout")
    return Arguments(tuple(params), buffer_map, tensors)


def _not_an_argument(value: Any) -> str:
    """A value that is no argument of a function, in words: an array by its shape, not by its elements."""
    is_array = hasattr(value, "__array__") and hasattr(value, "shape")
    return f"{f'an array of shape {tuple(value.shape)}' if is_array else shown(value)} ({type(value).__name__})"


def dropped_outputs(schedule: ScheduleState, args: Sequence[Any], binds: Mapping[Tensor, Buffer] | None) -> list[str]:
    """The names of the schedule's outputs that are not among `args`: they are computed, and their values are lost."""
    given = {_key(schedule, arg)[0] for arg in (*args, *(binds or ())) if isinstance(arg, Tensor)}
    return [op.name for op in schedule.outputs if schedule.stage_map[op].op not in given]


def _check_computed(schedule: ScheduleState, args: Iterable[Any]) -> None:
    """Refuses tensors that are computed by operations outside the schedule: the loops would not write them."""
    for arg in args:
        if isinstance(arg, Tensor) and not isinstance(arg.op, PlaceholderOp) and arg.op not in schedule.stage_map:
            outputs = ", ".join(op.name for op in schedule.outputs)
            raise LoweringError(f"{arg.name} is an argument, and the schedule does not compute it: it is made for {outputs}",
                                hint=f"drop {arg.name}, or make the schedule for it too: "
                                     f"te.create_schedule([{outputs}.op, {arg.name}.op])")


def _check_buffers(buffers: Iterable[Buffer]) -> None:
    """Refuses buffers that cannot be arrays of a call: those with an element offset, and those that share a data pointer."""
    given = list(buffers)
    sizes = {v for buffer in given for part in (*buffer.shape, *buffer.strides) for v in variables(part)}
    first: dict[Var, Buffer] = {}
    for buffer in given:
        offset = buffer.elem_offset
        if build.as_int(offset) != 0 and (not isinstance(offset, Var) or offset in sizes):
            raise LoweringError(f"the buffer {buffer.name} begins at element {shown(offset)} (elem_offset), and an array of a "
                                "call begins with its first element", hint="leave elem_offset out, and pass a view: a[2:]")
        if buffer.data in first:
            raise LoweringError(f"the buffers {first[buffer.data].name} and {buffer.name} are two arguments with one pointer "
                                f"({buffer.data.name}): only one of the two arrays would be used",
                                hint="declare a buffer for each argument (build with noalias=False if the arrays may overlap); "
                                     f"to compute in place, pass {buffer.name} once and bind both tensors to it")
        first[buffer.data] = buffer


def _checked_binds(binds: Any) -> dict[Tensor, Buffer]:
    """`binds` as a dict; LoweringError where a buffer cannot hold its tensor."""
    if binds is None:
        return {}
    if not isinstance(binds, Mapping) or not all(isinstance(t, Tensor) and isinstance(b, Buffer) for t, b in binds.items()):
        raise LoweringError(f"binds is a dict from tensors to buffers, not {shown(binds)}",
                            hint="binds={A: tir.decl_buffer(A.shape, A.dtype)}")
    for tensor, buffer in binds.items():
        constant = [(a.value, b.value) for a, b in zip(tensor.shape, buffer.shape)
                    if isinstance(a, IntImm) and isinstance(b, IntImm)]
        if buffer.dtype != tensor.dtype or len(buffer.shape) != len(tensor.shape) or any(a != b for a, b in constant):
            raise LoweringError(f"binds: the buffer {buffer.name} has shape {shown(list(buffer.shape))} and dtype "
                                f"{buffer.dtype}; {tensor.name} has shape {shown(list(tensor.shape))} and dtype {tensor.dtype}",
                                hint=f"make it by tir.decl_buffer({tensor.name}.shape, {tensor.name}.dtype)")
    return dict(binds)


def bind_requirements(binds: Mapping[Tensor, Buffer] | None) -> list[Requirement]:
    """The requirements that dimensions of bound buffers equal those of their tensors, where they are different expressions."""
    return [Requirement(build.equal(a, b), f"dimension {k} of {buffer.name} is {shown(b)}, that of {tensor.name} {shown(a)}: "
                                           "they differ")
            for tensor, buffer in (binds or {}).items() for k, (a, b) in enumerate(zip(tensor.shape, buffer.shape))
            if not structural_equal(a, b, map_free_vars=False)]


def broadcasting(requirements: Iterable[Requirement], binds: Mapping[Tensor, Buffer] | None) -> list[Requirement]:
    """The requirements, where dimensions of buffers that broadcast may be of extent 1: their stride is 0 then."""
    broadcast = {tensor for tensor, buffer in (binds or {}).items()
                 if buffer.buffer_type == "auto_broadcast" and buffer.strides}
    return [_or_of_extent_1(needed, *needed.read) if needed.read is not None and needed.read[0] in broadcast else needed
            for needed in requirements]


def _or_of_extent_1(needed: Requirement, tensor: Tensor, dim: int) -> Requirement:
    return Requirement(build.logical_or(build.equal(tensor.shape[dim], 1), needed.condition), needed.message)


def _names(args: Iterable[Any]) -> str:
    return ", ".join(str(getattr(arg, "name", arg)) for arg in args)


def _key(schedule: ScheduleState, tensor: Tensor) -> Key:
    """The current output of the schedule for `tensor`, whose operation cache_write or rfactor may have replaced."""
    stage = schedule.stage_map.get(tensor.op)
    return (tensor.op if stage is None else stage.op), tensor.value_index


def _memory_of_externs(schedule: ScheduleState) -> tuple[bool, set[Tensor]]:
    """Returns whether the schedule has a te.extern, whose statements assume compact memory by default, and the tensors for
    which a te.extern declares strides.
    """
    externs = [stage.op for stage in schedule.stages if isinstance(stage.op, ExternOp)]
    strided = {tensor for op in externs for tensor, placeholder in op.bindings() if placeholder.strides}
    return bool(externs), strided


def argument_buffer(tensor: Tensor, shape: Sequence[Expr], options: BufferOptions, *, compact: bool = False) -> Buffer:
    """The buffer of a tensor that the caller passes. With a symbolic shape it accepts any strides unless it must be `compact`.

    shape: that of the tensor as it is now, which transform_layout changes.
    """
    if compact or all(isinstance(dim, IntImm) for dim in shape):
        return decl_buffer(shape, tensor.dtype, tensor.name, data_alignment=options.data_alignment,
                           offset_factor=options.offset_factor)
    strides = tuple(Var("stride", dim.dtype) for dim in shape)
    return decl_buffer(shape, tensor.dtype, tensor.name, strides=strides, data_alignment=options.data_alignment,
                       offset_factor=options.offset_factor, buffer_type="auto")


class TensorBuffers:
    """The buffer of each tensor: that of the argument, or one that the function allocates itself."""

    def __init__(self, schedule: ScheduleState, arguments: Arguments) -> None:
        self.shared = shared_memory(schedule, arguments.tensors)
        self.schedule = schedule
        self.given = set(arguments.buffer_map.values()) | set(arguments.tensors.values())
        self.buffers: dict[Key, Buffer] = dict(arguments.tensors)

    def __call__(self, tensor: Tensor) -> Buffer:
        key = _key(self.schedule, tensor)
        if key in self.shared:
            scan, number = self.shared[key]
            return self(scan.output(number))
        buffer = self.buffers.get(key)
        if buffer is None:
            scope = memory_scope(self.schedule.stage_map[tensor.op])
            buffer = self.buffers[key] = decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=scope)
        return buffer

    def argument(self, tensor: Tensor) -> Buffer | None:
        """The buffer of the argument in which `tensor` is; None if its memory is no argument."""
        key = _key(self.schedule, tensor)
        if key in self.shared:
            scan, number = self.shared[key]
            return self.argument(scan.output(number))
        buffer = self.buffers.get(key)
        return buffer if buffer in self.given else None

    def outputs(self, plan: StagePlan) -> tuple[Buffer, ...]:
        return tuple(self(plan.op.output(i)) for i in range(plan.op.num_outputs))

    def is_shared(self, plan: StagePlan, index: int) -> bool:
        """Whether output number `index` of a stage uses the memory of another stage's output."""
        return (plan.op, index) in self.shared

    def is_argument(self, buffer: Buffer) -> bool:
        return buffer in self.given

    def forgotten(self) -> list[Var]:
        """The memory of the inputs that are not among the arguments, which `check_arguments` has refused."""
        return [buffer.data for (op, _), buffer in self.buffers.items()
                if isinstance(op, PlaceholderOp) and buffer not in self.given]


def check_arguments(schedule: ScheduleState, plans: Sequence[Placement], arguments: Arguments, to_run: bool) -> None:
    """Refuses missing arguments, arguments that the loops would not write, and tensors that share a buffer and would overwrite
    each other.

    to_run=False (the loops are only read) allows the argument of an inlined stage to stay unwritten, as TVM's tutorials do.
    """
    shared = shared_memory(schedule, arguments.tensors)
    check_shared(schedule, shared, arguments.tensors)
    _check_inputs(schedule, plans, arguments, shared)
    check_in_place(schedule, plans, arguments.tensors)
    for stage in schedule.stages:
        given = [stage.op.output(i).name for i in range(stage.op.num_outputs) if (stage.op, i) in arguments.tensors]
        if not given or stage.is_placeholder:
            continue
        hint = f"drop {given[0]} from the arguments, or call {stage.written}.compute_root()"
        if stage.attach_type in (AttachType.INLINE, AttachType.INLINED) and to_run:
            raise LoweringError(f"{given[0]} is an argument, and its stage is computed inline: nothing would write it",
                                hint=hint, about=attached(stage))
        own = [plan for plan in plans if plan.stage is stage]
        if stage.attach_type == AttachType.SCOPE and not all(_is_computed_whole(plan, schedule, plans) for plan in own):
            refuse_to_run(LoweringError(
                f"{given[0]} is an argument, and its stage is computed inside a loop of another one: it is not sure that all "
                "of it would be written, by one thread at a time", hint=hint, about=attached(stage)))


def _is_computed_whole(plan: Placement, schedule: ScheduleState, plans: Sequence[Placement]) -> bool:
    """Whether the loops compute every element of `plan`, each element on one thread only.

    True as well where a stage that is itself computed whole reads `plan` by its own axes, as C[i] = B[i] * 2 does.
    """
    if plan.host is None:
        return True
    if len(plan.axes) > len(plan.data_axes) and _is_in_parallel(plan):
        return False  # regions may overlap: one thread may start an element over while another reads it
    return any(schedule.stage_map[load.producer.op] is plan.stage and facts is None and _is_every_element(load, reader)
               and _is_computed_whole(reader, schedule, plans)
               for reader in plans for body in reader.bodies for load, facts in guarded_loads(body))


def _is_in_parallel(plan: Placement) -> bool:
    """Whether a loop around `plan` runs on several threads."""
    while plan.host is not None:
        around = plan.host.stage.leaf_iter_vars[:plan.position + 1]
        said = [plan.host.stage.attr_of(loop) for loop in around]
        if any(attr.iter_type == IterType.PARALLELIZED or attr.bind_thread is not None for attr in said):
            return True
        plan = plan.host
    return False


def _is_every_element(load: ProducerLoad, reader: Placement) -> bool:
    """Whether `load` is indexed by axes of `reader` that run over the whole of each dimension."""
    axes = {axis.var: axis for axis in reader.axes}
    if len(set(load.indices)) != len(load.indices):
        return False
    for index, size in zip(load.indices, load.producer.shape):
        axis = axes.get(index) if isinstance(index, Var) else None
        if axis is None or axis.dom is None or build.as_int(axis.dom.min) != 0:
            return False
        if not structural_equal(extent_of(axis), size, map_free_vars=False):
            return False
    return True


def _check_inputs(schedule: ScheduleState, plans: Sequence[Placement], arguments: Arguments,
                  shared: Mapping[Key, Key]) -> None:
    missing: dict[str, None] = {}
    for plan in plans:
        for read in plan.reads:
            op, index = _key(schedule, read.tensor)
            if isinstance(op, PlaceholderOp) and (op, index) not in arguments.tensors and (op, index) not in shared:
                missing[read.tensor.name] = None
    if missing:
        names, single = ", ".join(missing), len(missing) == 1
        refuse_to_run(LoweringError(
            f"the program reads {names}, which {'is' if single else 'are'} not among the arguments",
            hint=f"pass {'it' if single else 'them'} to lower or build too: lower(s, [..., {names}])"))


def bound_symbols(arguments: Arguments) -> dict[Var, None]:
    """The variables that a call gives values to: scalar parameters, data pointers, symbols of shapes and strides."""
    bound: dict[Var, None] = dict.fromkeys(arguments.params)
    for buffer in arguments.buffer_map.values():
        bound[buffer.data] = None
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            bound.update(dict.fromkeys(variables(part)))
    return bound


"""What is asked of lowering: its options, and the key of a schedule in the cache on disk, with everything that lowering reads,
so that a schedule seen before is not lowered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from tedsl.cache.store import current_store
from tedsl.ir.buffer import Buffer
from tedsl.ir.expr import Var
from tedsl.ir.func import Accesses
from tedsl.ir.walk.identity import identity
from tedsl.lang.tensor import Tensor
from tedsl.record import record
from tedsl.runtime.versions import machine, versions
from tedsl.schedule.handles import Schedule
from tedsl.target.target import Target


@record
class BufferOptions:
    """Options of `tir.decl_buffer` for the buffers of tensor arguments. data_alignment: in bytes; -1: the default."""

    offset_factor: int = 0
    data_alignment: int = -1


PLAIN_BUFFERS = BufferOptions()


@record
class FunctionOptions:
    """Options of lowering.

    to_run: lower for execution rather than for reading. accesses, buffers: as for `lower_schedule`.
    """

    to_run: bool
    accesses: Accesses = Accesses.PROVED
    buffers: BufferOptions = PLAIN_BUFFERS


def schedule_key(sch: object, args: object, name: str, binds: object, options: FunctionOptions, config: object,
                 target: Target) -> str | None:
    """Returns the key for a build of `sch` with these arguments and options; None if it has none.

    There is none without a cache, for anything but a schedule with a list of arguments, for code that cannot run here, and if
    an argument, an option or a part of the schedule is an object whose meaning another process could not compare: a function,
    as passes of `tir.add_lower_pass` are, an instrument, an object of another package.
    """
    if not isinstance(sch, Schedule) or current_store() is None or not _are_plain(args) or not isinstance(name, str):
        return None
    if binds is not None and not (isinstance(binds, Mapping) and _are_plain([*binds, *binds.values()])):
        return None
    environment = versions() if target.runs_here else None
    return None if environment is None else identity((
        environment, machine(target), sch.state, tuple(args), name, None if binds is None else dict(binds), options, config))


def _are_plain(args: object) -> TypeGuard[Sequence[object]]:
    """Tells whether `args` is a list of what functions take; anything else is for lowering to refuse."""
    return isinstance(args, (list, tuple)) and all(isinstance(arg, (Tensor, Var, Buffer)) for arg in args)

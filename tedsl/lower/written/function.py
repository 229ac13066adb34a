"""Checks of a function that the user wrote, made before any pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import ArgumentTypeError, DTypeError
from tedsl.ir.buffer import Buffer
from tedsl.ir.calls.returns import with_result
from tedsl.ir.func import Accesses, PrimFunc
from tedsl.ir.node import Node
from tedsl.ir.ops import RET
from tedsl.ir.script import shown
from tedsl.ir.stmt import Stmt
from tedsl.ir.verify import verify
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.substitute import bind_once
from tedsl.ir.wellformed import check_name
from tedsl.lower.written.demand import asserted
from tedsl.lower.written.known_memory import MemoryTable
from tedsl.lower.written.statements import StatementChecker

# Bodies that tedsl made, with the buffers that they were made for: their accesses are in range by construction.
_OURS: WeakKeyDictionary[Node, Mapping[Any, Buffer]] = WeakKeyDictionary()
# Bodies of host functions that tedsl made, with the bodies and parameters of the kernels that they launch, by name.
_KERNELS: WeakKeyDictionary[Node, Mapping[str, tuple[Stmt, tuple[Any, ...]]]] = WeakKeyDictionary()
# Bodies of kernels that passes of tedsl made: their parameters, and the body and parameters of the kernel as it was split off.
_ORIGINS: WeakKeyDictionary[Node, tuple[tuple[Any, ...], tuple[Stmt, tuple[Any, ...]]]] = WeakKeyDictionary()


def vouch_for(func: PrimFunc) -> PrimFunc:
    """Marks `func` as generated from checked parts, so that it is not checked again until its body or its buffers change."""
    _OURS[func.body] = func.buffer_map
    return func


def disown(func: PrimFunc) -> PrimFunc:
    """Takes back what `vouch_for` said: the accesses of `func` are checked before it runs, as those of any function."""
    _OURS.pop(func.body, None)
    return func


def is_vouched_for(func: PrimFunc) -> bool:
    return _OURS.get(func.body) is func.buffer_map


def vouch_for_parts(host: PrimFunc, kernels: Sequence[PrimFunc]) -> None:
    """Marks `host` and the kernels that it launches as parts of one checked function. A kernel takes bare pointers: it is known
    to be safe with this host alone.
    """
    vouch_for(host)
    _KERNELS[host.body] = {kernel.name: (kernel.body, kernel.params) for kernel in kernels}


def vouch_as_for(given: PrimFunc, made: PrimFunc) -> PrimFunc:
    """Marks `made`, which a pass of tedsl made of `given`, as safe where that is, also as the host or kernel of a split one."""
    if made.body is given.body and made.buffer_map is given.buffer_map:
        return made
    if is_vouched_for(given):
        vouch_for(made)
        if given.body in _KERNELS:
            _KERNELS[made.body] = _KERNELS[given.body]
    elif not given.buffer_map and "calling_conv" in given.attrs:
        _ORIGINS[made.body] = made.params, _origin(given)
    return made


def _origin(kernel: PrimFunc) -> tuple[Stmt, tuple[Any, ...]]:
    """Returns the body and the parameters that a kernel had before passes of tedsl changed it."""
    params, origin = _ORIGINS.get(kernel.body, (kernel.params, (kernel.body, kernel.params)))
    return origin if params is kernel.params else (kernel.body, kernel.params)


def is_vouched_for_with(host: PrimFunc, functions: Mapping[str, PrimFunc]) -> bool:
    """Tells whether `host`, and all kernels of `functions` that it launches, are the parts of one checked function."""
    kernels = _KERNELS.get(host.body)
    return kernels is not None and is_vouched_for(host) and all(
        name in functions and all(a is b for a, b in zip(_origin(functions[name]), kernel))
        for name, kernel in kernels.items())


def well_formed(func: PrimFunc) -> PrimFunc:
    """Bind each variable of `func` once and state what it returns; DTypeError for types that do not fit, LoweringError for a
    return where iterations run together.
    """
    func = with_result(func.with_body(bind_once(func.body)))
    verify(func, flat=False, error=DTypeError)
    return func


def check_parts(func: PrimFunc) -> None:
    """Raise ArgumentTypeError for a name that is not a str, and for a buffer_map that does not map parameters to buffers."""
    check_name(func.name, "a function")
    for param, buffer in func.buffer_map.items():
        if not isinstance(buffer, Buffer) or param not in func.params:
            raise ArgumentTypeError(f"buffer_map of {func.name} maps {shown(param)} to {shown(buffer)}",
                                    hint="it maps parameters to buffers: {handle: tir.decl_buffer(shape)}")


def check_written(func: PrimFunc, accesses: Accesses = Accesses.PROVED) -> PrimFunc:
    """Make `func` well-formed and every access bounds-checked: proved, asserted, or clamped.

    Raises LoweringError and DTypeError for errors that cannot be repaired.
    """
    func = well_formed(func)
    return func.with_body(checked_accesses(func.body, func.buffers, accesses=accesses))


def checked_accesses(body: Stmt, buffers: tuple[Buffer, ...], *,
                     accesses: Accesses = Accesses.PROVED) -> Stmt:
    """Makes every access of `body`, which uses `buffers`, bounds-checked: proved, asserted, or clamped.

    accesses: AT_RUN_TIME refuses only accesses that are certainly wrong; `passes/checked` checks the other loads and stores.
    """
    analyzer = Analyzer()
    analyzer.bind_sizes([dim for buffer in buffers for dim in buffer.shape], at_least=0)
    checker = StatementChecker(MemoryTable(buffers), analyzer, may_return=contains(body, RET), accesses=accesses)
    checked = checker(body)
    return asserted(checked, checker.demands)

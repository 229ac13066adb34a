"""Outlined bodies that are equal but for the memory that they use are one function: equal layers of a network are compiled
once. The function has the name of the first of them, and line tables say that its instructions belong to that one.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass

from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices.forms import Index
from tedsl.codegen.llvm.outlined.environment import Field
from tedsl.ir.expr import IntImm, Var
from tedsl.ir.stmt import For, Store
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.visitor import statements


@dataclass
class Body:
    """A parallel loop whose body has been written as the function `name`."""

    loop: For
    name: str

    @functools.cached_property
    def outline(self) -> list[Hashable]:
        """What is quick to compare: the kinds of the statements, and how long loops are."""
        return _outline(self.loop)


def bodies_like(inner: Emitter, loop: For, used: list[Var], fields: list[Field], ends: tuple[Index, ...]) -> list[Body]:
    """Returns the bodies written so far that are told the same as that of `loop`, to which more can be added.

    inner: the function that the body would be written to. used: the variables of the body. ends: what the function knows about
    the iterations.
    """
    function = inner.function
    key = (function.owner, function.noalias, function.takes_frame, function.result, tuple(field.type for field in fields),
           tuple(map(_known, ends)), tuple(_told(inner, var) for var in used))
    return inner.module.bodies.setdefault(key, [])


def equal_body(loop: For, bodies: list[Body]) -> Body | None:
    """Returns the body among `bodies` that does what that of `loop` does, to other memory; None if there is none."""
    outline = _outline(loop) if bodies else []
    return next((body for body in bodies
                 if body.outline == outline and structural_equal(loop, body.loop, map_free_vars=True)), None)


def _told(inner: Emitter, var: Var) -> Hashable:
    """Returns all that the function knows about a variable."""
    scope = inner.scope
    is_stream = var in inner.streams, inner.streams.get(var) is None
    if var in scope.buffers:
        info = scope.buffers[var]
        return "buffer", info.alignment, info.own, is_stream
    if var in scope.index:
        return "index", _known(scope.index[var])
    return var in scope.data, is_stream


def _known(index: Index) -> Hashable:
    return bool(index.terms), index.bounds()


def _outline(loop: For) -> list[Hashable]:
    seen: list[Hashable] = []
    for s in statements(loop):
        extent = s.extent if isinstance(s, For) else None
        seen.append((type(s), extent.value if isinstance(extent, IntImm) else None,
                     s.value.dtype if isinstance(s, Store) else None))
    return seen

"""Memories of a scope with a tag, which names one memory of a machine, become parts of one allocation.

before:  allocate(S, [6]), storage_scope = local.L1 { allocate(T, [8]), storage_scope = local.L1 { ... T[i] ... } }
after:   allocate(S, [14]), storage_scope = local.L1 { ... S[i + 6] ... }

Those that stand directly in each other are joined if they have constant sizes, and if nothing but their elements is used. Of
several dtypes they hold their bits (`as_bits.py`) where that is possible; else each dtype has an allocation. Each begins at a
multiple of 32 bits, or of what the program says of the memory: the attribute `max_simd_bits` of what its function
"tvm.info.mem.SCOPE" returns. `max_num_bits` of it is the size of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Expr, IntImm, Load, Ramp, Var, pointer_var
from tedsl.ir.func import PrimFunc
from tedsl.ir.functions import FUNCTIONS
from tedsl.ir.stmt import LOGICAL_SHAPE, Allocate, Stmt, Store
from tedsl.ir.types import PointerType, memory_kind
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.visitor import statements
from tedsl.passes.storage.as_bits import accessed_side_by_side, as_bits, bits_of, has_bits, only_loaded_and_stored

WORD = 32  # bits


def pool_tagged(func: PrimFunc) -> PrimFunc:
    """Returns `func` with memories of one tagged scope in one allocation; itself if there are none.

    Raises LoweringError where they are larger than the memory.
    """
    if not contains(func.body, Allocate):
        return func
    func = func.with_body(_of_one_dtype(func.body))
    pools: dict[Allocate, _Pool] = {}  # by their first allocations
    parts: dict[Var, tuple[Var, int]] = {}
    for chain in _chains(func.body):
        for pool in _pools_of(chain):
            pools[pool.nodes[0]] = pool
            parts.update(pool.parts())
    return func.with_body(_Pooled(pools, parts)(func.body)) if parts else func


def _chains(body: Stmt) -> Iterator[list[Allocate]]:
    """Iterates over the allocations that stand directly in each other, those of them that can be joined."""
    plain = only_loaded_and_stored(body)
    inner: set[Allocate] = set()
    for stmt in statements(body):
        if not isinstance(stmt, Allocate) or stmt in inner:
            continue
        chain = [stmt]
        while isinstance(chain[-1].body, Allocate):
            chain.append(chain[-1].body)
        inner.update(chain)
        yield [node for node in chain if _can_move(node, plain)]


def _of_one_dtype(body: Stmt) -> Stmt:
    """Returns `body` with the memories of one tagged scope that have several dtypes made unsigned integers of the narrowest
    width, where all of them can be.
    """
    side_by_side = accessed_side_by_side(body)
    bits: dict[Var, Var] = {}
    for chain in _chains(body):
        for scope in {_scope(node): None for node in chain}:
            nodes = [node for node in chain if _scope(node) == scope]
            dtypes = {node.dtype for node in nodes}
            widths = {of.bits for of in dtypes}
            if len(dtypes) > 1 and all(map(has_bits, dtypes)) \
                    and (len(widths) == 1 or all(node.buffer_var in side_by_side for node in nodes)):
                for node in nodes:
                    bits[node.buffer_var] = pointer_var(node.buffer_var.name, bits_of(min(widths)), scope)
    return as_bits(body, bits) if bits else body


class _Pool:
    """The allocations that become one."""

    def __init__(self, first: Allocate) -> None:
        self.nodes = [first]
        scope = _scope(first)
        registered = FUNCTIONS.get(f"tvm.info.mem.{scope}")
        said: Any = None if registered is None else registered.function()
        self.align = int(getattr(said, "max_simd_bits", WORD) or WORD)
        most = getattr(said, "max_num_bits", None)
        self.most = None if most is None else int(most)

    def places(self) -> list[int]:
        """Returns the first element of each part, and the number of elements of all."""
        step, places = max(self.align // self.nodes[0].dtype.bits, 1), [0]
        for node in self.nodes:
            places[-1] = -(-places[-1] // step) * step
            places.append(places[-1] + _size(node))
        return places

    def parts(self) -> dict[Var, tuple[Var, int]]:
        """Maps the pointers of all parts but the first to the pointer in their place and the element at which they begin."""
        first, total = self.nodes[0], self.places()[-1]
        if self.most is not None and total * first.dtype.bits > self.most:
            names = ", ".join(node.buffer_var.name for node in self.nodes)
            raise LoweringError(f"the memory {_scope(first)} has {self.most} bits, and {names} take {total * first.dtype.bits} "
                                "at one time", hint="make them smaller, or compute one of them where it is used", about=first)
        return {node.buffer_var: (first.buffer_var, place) for node, place in zip(self.nodes[1:], self.places()[1:])}


def _pools_of(chain: list[Allocate]) -> list[_Pool]:
    """Returns the allocations of `chain`, of each tagged scope and dtype; those that stand alone are checked, and stay."""
    pools: dict[tuple[str, DType], _Pool] = {}
    for node in chain:
        key = _scope(node), node.dtype
        if key in pools:
            pools[key].nodes.append(node)
        else:
            pools[key] = _Pool(node)
    return [pool for pool in pools.values() if pool.parts()]


def _can_move(node: Allocate, plain: frozenset[Var]) -> bool:
    scope = _scope(node)
    return (memory_kind(scope) not in (scope, "wmma") and scope != "shared.dyn" and node.buffer_var in plain
            and build.is_true(node.condition) and node.dtype.lanes == 1
            and all(isinstance(extent, IntImm) for extent in node.extents) and not set(node.annotations) - {LOGICAL_SHAPE})


def _size(node: Allocate) -> int:
    size = 1
    for extent in node.extents:
        size *= build.as_int(extent) or 0
    return size


def _scope(node: Allocate) -> str:
    annotation = node.buffer_var.type_annotation
    return annotation.storage_scope if isinstance(annotation, PointerType) else ""


class _Pooled(Rewriter):
    kinds = (Allocate, Load, Store)

    def __init__(self, pools: dict[Allocate, _Pool], parts: dict[Var, tuple[Var, int]]) -> None:
        super().__init__()
        self.pools, self.parts = pools, parts

    def rebuilt(self, node: Any) -> Any:
        made = super().rebuilt(node)
        pool = self.pools.get(node) if isinstance(node, Allocate) else None
        if pool is None:
            return made
        return made.replace(extents=(build.const(pool.places()[-1], made.extents[0].dtype),), annotations={})

    def rewrite(self, node: Any) -> Any:
        match node:
            case Allocate(buffer_var=var, body=body) if var in self.parts:
                return body
            case Load(buffer_var=var, index=index) | Store(buffer_var=var, index=index) if var in self.parts:
                whole, place = self.parts[var]
                return node.replace(buffer_var=whole, index=_moved(index, place))
            case _:
                return node


def _moved(index: Expr, by: int) -> Expr:
    if isinstance(index, Ramp):
        return index.replace(base=build.add(index.base, by))
    return build.add(index, by)

"""Multiply matrices by tile registers, where a pragma says that loops are such a product and the processor has them.

before:  // attr [i] pragma_tile_products
         for (i: 0, m) { for (j: 0, n) { C[i*n + j] = 0 }
                         for (k: 0, p) { for (j: 0, n) { for (r: 0, 4) {
                             C[i*n + j] = C[i*n + j] + int32(A[i*p*4 + k*4 + r])*int32(B[k*n*4 + j*4 + r]) } } } }
after:   assert(tiles_allowed()); tile_product(&C[0], &A[0], &B[0], m, n, p*4, n, 32, p*4, n*4, 128, 1)

What a loop is follows from the arrays that step with it: the rows are those of C and A, the columns those of C and B, those of
A and B are summed. The second matrix lies by groups of terms that fill 32 bits, the columns beside each other or in panels of
32. Loops that the call has no place for stay around it. A guard may end the rows, the columns or the panels. Products of
arrays that may overlap, or whose strides are variables, keep their loops, and those whose every access is checked.

Sums of bfloat16 are then taken in an order of the processor's own, and denormal numbers count as zero. The function fails where
the system does not let the process use tile registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tedsl.arith.analyzer import Analyzer
from tedsl.errors import LoweringError
from tedsl.ir import build
from tedsl.ir.calls.tile_products import PANEL, can_multiply, terms_of_group
from tedsl.ir.dtype import BOOL, HANDLE, INT32, INT64
from tedsl.ir.expr import Add, Call, Cast, Expr, IntImm, Load, Mul, StringImm, Sub, Var
from tedsl.ir.func import PrimFunc
from tedsl.ir.ops import ADDRESS_OF, CALL_PACKED, TILE_PRODUCT, TILES_ALLOWED
from tedsl.ir.stmt import Allocate, AssertStmt, AttrStmt, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, seq
from tedsl.ir.walk.contents import contains
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import ScopedRewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, statements
from tedsl.passes.facts.conjunctions import conjuncts, without_likely
from tedsl.passes.facts.guard_ranges import guard_end
from tedsl.passes.facts.structure import Numbering
from tedsl.target.target import Target

PRAGMA = "pragma_tile_products"
_SHOWN = 400  # characters of a statement in an error
_REFUSED = ("the operating system does not let this process use the tile registers of the processor (AMX): build it for a "
            "target without them, such as llvm -mcpu=icelake-server")


class _Part(NamedTuple):
    """A store with the loops and conditions around it, outermost first."""

    store: Store
    loops: tuple[For, ...]
    guards: tuple[Expr, ...]


class _Factor(NamedTuple):
    """The loops by the elements that an iteration steps in C, A and B."""

    loop: For
    c: int
    a: int
    b: int


class _Sum(NamedTuple):
    """A store that adds a product to an element."""

    part: _Part
    c: Load
    a: Load
    b: Load


def use_tile_products(func: PrimFunc, target: Target) -> PrimFunc:
    """Returns `func` with the products under "tile_products" taken by tile registers, if the target has those of their dtypes.

    Raises LoweringError if loops under that pragma are no such product.
    """
    if not any(isinstance(s, AttrStmt) and s.attr_key == PRAGMA for s in statements(func.body)):
        return func
    allocated = {node.buffer_var for node in statements(func.body) if isinstance(node, Allocate)}
    body = _Tiles(target, bool(func.attrs.get("tir.noalias")), allocated)(func.body)
    if not contains(body, TILE_PRODUCT):
        return func if body is func.body else func.with_body(body)
    return func.with_body(AssertStmt(Call(BOOL, TILES_ALLOWED, ()), StringImm(_REFUSED), body))


class _Tiles(ScopedRewriter):
    """noalias: arrays of the caller do not overlap."""

    def __init__(self, target: Target, noalias: bool, allocated: set[Var]) -> None:
        self.target, self.noalias, self.allocated = target, noalias, allocated
        self.number, self.analyzer = Numbering(), Analyzer()

    def expr(self, expr: Expr) -> Expr:
        return expr

    def stmt(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, AttrStmt) or stmt.attr_key != PRAGMA:
            return self.descend(stmt)
        if contains(stmt.body, CALL_PACKED):
            return stmt.body  # it tells of accesses that are out of bounds
        parts = self.parts(stmt.body, (), ())
        sums = {id(part): found for part in parts if (found := _sum(part.store)) is not None}
        loops = tuple(loop for part in parts for loop in part.loops)
        strided = any(_is_strided(load.index, loops) for loads in sums.values() for load in loads)
        if strided or not all(self.can_take(*loads) for loads in sums.values()):
            return stmt.body
        zeros = [part for part in parts if id(part) not in sums]
        for part in zeros:
            if not _is_zero(part.store.value):
                raise _refusal(part.store, "it neither adds a product of two bytes to 32 bits or of bfloat16 to float32, "
                                           "nor sets an element to zero")
            before = [other for other in parts[:parts.index(part)] if other.store.buffer_var is part.store.buffer_var]
            if any(id(other) in sums for other in before):
                raise _refusal(part.store, "it sets elements to zero after products were added")
        return self.products(zeros, [_Sum(part, *sums[id(part)]) for part in parts if id(part) in sums])

    def can_take(self, c: Load, a: Load, b: Load) -> bool:
        """Tells whether tiles multiply such elements, and the sums share no memory with the factors."""
        apart = self.noalias or c.buffer_var in self.allocated or {a.buffer_var, b.buffer_var} <= self.allocated
        return apart and self.target.multiplies_tiles(a.dtype, b.dtype)

    def parts(self, stmt: Stmt, loops: tuple[For, ...], guards: tuple[Expr, ...]) -> list[_Part]:
        """Returns the stores in `stmt`, each with what is around it."""
        match stmt:
            case For(kind=ForKind.SERIAL):
                return self.parts(stmt.body, (*loops, stmt), guards)
            case SeqStmt(seq=inner):
                return [part for s in inner for part in self.parts(s, loops, guards)]
            case IfThenElse(condition=condition, then_case=then, else_case=None):
                return self.parts(then, loops, (*guards, *(without_likely(c) for c in conjuncts(condition))))
            case AttrStmt(body=body):
                return self.parts(body, loops, guards)
            case Store(predicate=None) if stmt.value.dtype.lanes == 1:
                return [_Part(stmt, loops, guards)]
        raise _refusal(stmt, "a product has serial loops, conditions of their ends and sums of single elements")

    def products(self, zeros: list[_Part], sums: list[_Sum]) -> Stmt:
        """Returns the sums as products; those whose elements are set to zero before begin from there."""
        cleared = {self.region(part): part for part in zeros}
        calls = []
        for of in sums:
            # A loop that steps nowhere adds the same again, or is left of the guard of a single row: zeros come before it, and
            # before loops that come to an element twice.
            factors = [self.factor(loop, of) for loop in of.part.loops if _count(loop) != 1]
            again = any(not (f.c or f.a or f.b) for f in factors)
            if not any(_mentions(guard, of.part.loops) for guard in of.part.guards):
                again = again or _overlap([f for f in factors if f.c])
            begins = None if again else cleared.pop(self.region(of.part), None)
            calls.append(self.product(of, begins is not None))
        return seq(*(_nest(part.loops, part.guards, part.store) for part in cleared.values()), *calls)

    def region(self, part: _Part) -> object:
        """Returns a key of the elements that a store writes: equal for the same elements."""
        index, steps = part.store.index, []
        for loop in part.loops:
            step = _step(index, loop)
            if step != 0:
                steps.append((step or 0, *map(self.number, (loop.min, loop.extent, *self.ends(loop, part.guards)))))
        first = self.analyzer.simplify(substitute(index, {loop.loop_var: loop.min for loop in part.loops}))
        over = [self.number(guard) for guard in part.guards if not _mentions(guard, part.loops)]
        return part.store.buffer_var, tuple(sorted(steps)), self.number(first), tuple(sorted(over))

    # --- one product ------------------------------------------------------------------------------------------------

    def product(self, of: _Sum, from_zero: bool) -> Stmt:
        """Returns a sum as a product, in the loops that the product has no place for."""
        group = terms_of_group(of.a.dtype)
        factors = [self.factor(loop, of) for loop in of.part.loops if _count(loop) != 1]
        if any((f.c, f.a, f.b) == (1, group, 0) for f in factors):  # the columns step with the first factor
            of = of._replace(a=of.b, b=of.a)
            factors = [_Factor(f.loop, f.c, f.b, f.a) for f in factors]
        inside = next((f for f in factors if (f.c, f.a, f.b) == (0, 1, 1) and _count(f.loop) == group), None)
        summed = [f for f in factors if not f.c and f is not inside and (f.a or f.b)]
        if inside is None or not all(f.a and f.b and (_count(f.loop) or 0) > 0 for f in summed):
            raise _refusal(of.part.store, f"sums run over constant loops that step in both factors, {of.a.dtype} and "
                                          f"{of.b.dtype}, and one of them over {group} neighbours, which are added at once")
        terms = next((f for f in reversed(summed) if f.a == group), None)
        lines = _joined([f for f in factors if f.c and f.a and not f.b])
        rows = lines[-1] if lines else None
        columns = next((f for f in factors if (f.c, f.a, f.b) == (1, 0, group)), None)
        ends = {f.loop: end for f in (*lines, columns) if f is not None for end in self.ends(f.loop, of.part.guards)}
        if len(lines) > 1 and any(f.loop in ends for f in lines):
            lines = lines[-1:]
        is_panel = columns is not None and _count(columns.loop) == PANEL and columns.loop not in ends
        panels = next((f for f in factors if f.c and not f.a and f.b and f is not columns), None) if is_panel else None
        if panels is not None:
            ends.update((panels.loop, end) for end in self.ends(panels.loop, of.part.guards))
        if _overlap([f for f in (*lines, columns, panels) if f is not None]):
            raise _refusal(of.part.store, "its rows and columns have elements in common")
        used = [f.loop for f in (inside, *summed, *lines, columns, panels) if f is not None]
        guards = [guard for guard in of.part.guards if not _mentions(guard, tuple(ends))]
        if any(_mentions(guard, tuple(used)) for guard in guards):
            raise _refusal(of.part.store, "a condition ends none of the loops over its rows or columns")
        wide = build.mul(self.extent(panels, ends), PANEL) if panels is not None else self.extent(columns, ends)
        tall = self.extent(rows, ends)
        for line in lines[:-1]:
            tall = build.mul(line.loop.extent, tall)
        numbers = (tall, wide, group * (1 if terms is None else _count(terms.loop) or 0),
                   rows.c if rows else 0, panels.c if panels else PANEL, rows.a if rows else 0, terms.b if terms else 0,
                   panels.b if panels else PANEL * group, int(from_zero),
                   *(n for f in summed if f is not terms for n in (f.loop.extent, f.a, f.b)))
        first = {loop.loop_var: loop.min for loop in used}
        places = [Call(HANDLE, ADDRESS_OF, (Load(load.dtype, load.buffer_var, substitute(load.index, first), None),))
                  for load in (of.c, of.a, of.b)]
        call = Call(INT32, TILE_PRODUCT, (*places, *(n if isinstance(n, Expr) else _number(n) for n in numbers)))
        around = [loop for loop in of.part.loops if loop not in used]
        if any(_mentions(e, tuple(used)) for e in (call, *(e for loop in around for e in (loop.min, loop.extent)))):
            raise _refusal(of.part.store, "where one of its loops begins or ends depends on another one",
                           "reorder the loops of a split, outer and inner, in this order")
        return _nest(around, guards, Evaluate(call))

    def factor(self, loop: For, of: _Sum) -> _Factor:
        """Returns how far an iteration of `loop` steps in the three arrays."""
        steps = [_step(load.index, loop) for load in (of.c, of.a, of.b)]
        if None in steps:
            name = (of.c, of.a, of.b)[steps.index(None)].buffer_var.name
            raise _refusal(of.part.store, f"the place in {name} does not step evenly with {loop.loop_var.name}",
                           "split the loops by the groups of terms and the panels in which the second matrix lies")
        return _Factor(loop, *(step or 0 for step in steps))

    def ends(self, loop: For, guards: tuple[Expr, ...]) -> list[Expr]:
        """Returns where guards end `loop`: the least value of its variable for which one of them fails, at most one."""
        found: list[Expr] = []
        for guard in guards:
            if not _mentions(guard, (loop,)):
                continue
            end = guard_end(guard, loop.loop_var, (), self.analyzer)
            if end is None or found:
                raise _refusal(guard, f"the condition does not end the loop {loop.loop_var.name}")
            found.append(end)
        return found

    def extent(self, of: _Factor | None, ends: dict[For, Expr]) -> Expr:
        """Returns the number of iterations that are left of a loop; 1 if there is none."""
        if of is None:
            return IntImm(INT32, 1)
        end = ends.get(of.loop)
        if end is None:
            return of.loop.extent
        return self.analyzer.simplify(build.minimum(of.loop.extent, build.sub(end, of.loop.min)))


def _sum(store: Store) -> tuple[Load, Load, Load] | None:
    """Returns the element that a store adds a product of widened numbers to, and the factors; None if it does anything else."""
    value = store.value
    if not isinstance(value, Add):
        return None
    for before, product in ((value.a, value.b), (value.b, value.a)):
        if isinstance(before, Load) and before.buffer_var is store.buffer_var and isinstance(product, Mul):
            factors = [f.value for f in (product.a, product.b) if isinstance(f, Cast)]
            loads = [f for f in factors if isinstance(f, Load) and f.predicate is None]
            if len(loads) == 2 and structural_equal(before.index, store.index):
                a, b = loads
                if store.buffer_var in (a.buffer_var, b.buffer_var):
                    return None
                return (before, a, b) if can_multiply(before.dtype, a.dtype, b.dtype) else None
    return None


def _joined(factors: list[_Factor]) -> list[_Factor]:
    """Returns the loop of the most iterations among those over rows, last, after those that continue its steps: all of them are
    one loop over rows.
    """
    found = sorted(factors, key=lambda f: _count(f.loop) or 0)[-1:]
    while found:
        first, count = found[0], _count(found[0].loop)
        outer = next((f for f in factors if f not in found and count and (f.c, f.a) == (count * first.c, count * first.a)),
                     None)
        if outer is None:
            break
        found.insert(0, outer)
    return found


def _overlap(factors: list[_Factor]) -> bool:
    """Tells whether loops are known to write an element twice."""
    reach = 1
    for f in sorted(factors, key=lambda f: abs(f.c)):
        count = _count(f.loop)
        if abs(f.c) < reach:
            return True
        if count is None:
            return False
        reach = abs(f.c) * (count - 1) + reach
    return False


def _is_zero(value: Expr) -> bool:
    return getattr(value, "value", None) == 0


def _number(value: int) -> IntImm:
    return IntImm(INT32 if abs(value) < 1 << 31 else INT64, value)


def _count(loop: For) -> int | None:
    return build.as_int(loop.extent)


def _step(index: Expr, loop: For) -> int | None:
    """Returns how far an iteration of `loop` steps in `index`; None if that is no constant."""
    step, parts = 0, [(1, index)]
    while parts:
        factor, part = parts.pop()
        if isinstance(part, (Add, Sub)):
            parts += [(factor, part.a), (factor if isinstance(part, Add) else -factor, part.b)]
        elif isinstance(part, Mul) and isinstance(part.b, IntImm):
            parts.append((factor * part.b.value, part.a))
        elif isinstance(part, Cast) and part.dtype.bits >= part.value.dtype.bits:
            parts.append((factor, part.value))
        elif part is loop.loop_var:
            step += factor
        elif _mentions(part, (loop,)):
            return None
    return step


def _is_strided(index: Expr, loops: Sequence[For]) -> bool:
    """Tells whether an iteration of one of `loops` steps by a variable."""
    return any(isinstance(node, Mul) and not isinstance(node.b, IntImm) and _mentions(node, loops)
               for node in post_order(index))


def _mentions(e: Expr, loops: Sequence[For]) -> bool:
    """Tells whether `e` depends on the variable of one of `loops`."""
    own = {loop.loop_var for loop in loops}
    return any(node in own for node in post_order(e))


def _nest(loops: Sequence[For], guards: Sequence[Expr], body: Stmt) -> Stmt:
    """Returns `body` in the loops, and under the conditions."""
    for guard in reversed(guards):
        body = IfThenElse(guard, body, None)
    for loop in reversed(loops):
        body = loop.replace(body=body)
    return body


def _refusal(node: Stmt | Expr, why: str, hint: str = "") -> LoweringError:
    text = str(node).strip()
    return LoweringError('the pragma "tile_products" stands around what is no product for tile registers: '
                         f"{why}\n{text if len(text) <= _SHOWN else text[:_SHOWN] + ' ...'}",
                         hint=hint or "C[i, j] += A[i, k] * B[k // g, j, k % g], with k split by g (4 bytes, or 2 bfloat16) "
                                      "and the loop over k % g inside; see Stage.pragma")

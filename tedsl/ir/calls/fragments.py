"""Fragments: matrices that the 32 threads of a warp hold together, and the calls that fill, load, multiply and store them.

    tvm_load_matrix_sync(A, 16, 16, 16, 2, S.access_ptr("r"), 24, "row_major")       A[2][i, j] = S[i*24 + j]
    tvm_mma_sync(D, 0, A, 2, B, 0, D, 0)                                             D[0][i, j] += sum_k A[2][i, k] * B[0][k, j]

A memory of scope "wmma.matrix_a", "wmma.matrix_b" or "wmma.accumulator" holds fragments of one shape, one after the other: of
m x k, k x n or m x n elements, in the order of their rows. The order in memory elsewhere, "row_major" or "col_major", is that
of the load or store; a matrix_a or matrix_b is always loaded in the same order. All threads of a warp make such a call
together, with the same arguments; each of them has all of the fragment. Products with n = 8 are the instructions mma.

A product is the sum of the products of the elements in the order of k, added to c one after the other: in float32 for float16
and bfloat16 (rounded to float16 at the end for an accumulator of that dtype), in int32, which wraps, for integers.
"""

from __future__ import annotations

from tedsl.errors import LoweringError
from tedsl.ir.build import as_int
from tedsl.ir.dtype import DType
from tedsl.ir.expr import Call, Expr, Load, StringImm, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import ACCESS_PTR, ADDRESS_OF, BMMA, FRAGMENT_OPS, LOAD_MATRIX, MMA, STORE_MATRIX
from tedsl.ir.script import shown
from tedsl.ir.types import PointerType, PrimType
from tedsl.ir.walk.visitor import post_order
from tedsl.record import record

A, B, ACCUMULATOR = "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"
SCOPES = (A, B, ACCUMULATOR)
ORDERS = ("row_major", "col_major")
SHAPES = ((16, 16, 16), (8, 32, 16), (32, 8, 16), (16, 8, 16), (16, 8, 32))  # m, n, k
NARROW = 8  # columns of the results whose elements lie in known threads: 16 x 8, of 32 bytes of k
# What is multiplied, and what may be added to it.
SUMS = {"float16": ("float32", "float16"), "bfloat16": ("float32",), "int8": ("int32",), "uint8": ("int32",)}


@record
class Fragment:
    """What is known of the fragments of a memory. order: in which a matrix_a or matrix_b is loaded, "" if it never is."""

    scope: str
    dtype: DType
    shape: tuple[int, int, int]
    order: str = ""

    @property
    def rows(self) -> int:
        return self.shape[2 if self.scope == B else 0]

    @property
    def columns(self) -> int:
        return self.shape[2 if self.scope == A else 1]

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def is_dealt(self) -> bool:
        """Whether it is known which thread has which element (`mma`); else only the device knows (`wmma`)."""
        return self.shape[:2] == (16, NARROW)


@record(eq=False)
class Moved:
    """The arguments of a load or store: the fragment `which` of `fragments`; the elements of `memory` from `offset` on,
    `stride` elements from row to row, or from column to column.
    """

    fragments: Var
    shape: tuple[int, int, int]
    which: Expr
    memory: Var
    offset: Expr
    stride: Expr
    order: str


def is_fragment(var: Var) -> bool:
    """Tells whether `var` is the memory of fragments."""
    return scope_of(var) in SCOPES


def scope_of(var: Var) -> str:
    """Returns the memory scope of a data pointer, with its suffix."""
    annotation = var.type_annotation
    return annotation.storage_scope if isinstance(annotation, PointerType) else ""


def moved(call: Call) -> Moved:
    """Returns the arguments of LOAD_MATRIX or STORE_MATRIX; LoweringError if there is no such load or store."""
    fragments, address, order = _fragments(call, 0), call.args[5], call.args[7]
    match address:
        case Call(op=op, args=(_, Var() as memory, offset, *_)) if op is ACCESS_PTR:
            pass
        case Call(op=op, args=(Load(buffer_var=memory, index=offset),)) if op is ADDRESS_OF:
            pass
        case _:
            raise LoweringError(f"{shown(call)}: {shown(address)} is not the address of an element",
                                hint='write buffer.access_ptr("r"), or "w" for a store')
    if not isinstance(order, StringImm) or order.value not in ORDERS:
        raise LoweringError(f"{shown(call)}: {shown(order)} is not an order of elements", hint='"row_major" or "col_major"')
    if is_fragment(memory):
        raise LoweringError(f"{shown(call)} moves elements between the fragments {fragments.name} and {memory.name}",
                            hint='fragments are loaded from and stored to memory of scope "shared" or "global"')
    return Moved(fragments, shape_of(call), call.args[4], memory, offset, call.args[6], order.value)


def products(call: Call) -> list[tuple[Var, Expr]]:
    """Returns the fragments of MMA and which of them, of d, a, b and c."""
    return [(_fragments(call, at), call.args[at + 1]) for at in (0, 2, 4, 6)]


def shape_of(call: Call) -> tuple[int, int, int]:
    """Returns m, n and k of FILL_FRAGMENT, LOAD_MATRIX or STORE_MATRIX."""
    shape = tuple(as_int(arg) or 0 for arg in call.args[1:4])
    if shape not in SHAPES:
        raise LoweringError(f"{shown(call)}: no tensor core multiplies matrices of m, n, k = {', '.join(map(str, shape))}",
                            hint=f"the shapes are {', '.join('x'.join(map(str, known)) for known in SHAPES)}")
    return shape


def fragments_of(body: Node) -> dict[Var, Fragment]:
    """Returns what the calls in `body` say of the fragments of each memory; LoweringError where they contradict each other."""
    known: dict[Var, Fragment] = {}
    multiplied: list[Call] = []
    for node in post_order(body):
        if not isinstance(node, Call) or node.op not in FRAGMENT_OPS:
            continue
        if node.op is BMMA:
            raise LoweringError(f"{shown(node)}: products of single bits are not known",
                                hint="tvm_mma_sync multiplies float16, bfloat16 and int8")
        if node.op is MMA:
            multiplied.append(node)
            continue
        var = _fragments(node, 0)
        order = moved(node).order if node.op is LOAD_MATRIX and scope_of(var) != ACCUMULATOR else ""
        _note(known, var, Fragment(scope_of(var), _dtype(var), shape_of(node), order), node)
        if node.op is STORE_MATRIX and scope_of(var) != ACCUMULATOR:
            raise LoweringError(f"{shown(node)}: {var.name} has scope {scope_of(var)!r}, and only accumulators are stored",
                                hint=f'store the result of tvm_mma_sync, of scope "{ACCUMULATOR}"')
    for call in multiplied:
        _check_product(known, call)
    return known


def _note(known: dict[Var, Fragment], var: Var, fact: Fragment, call: Call) -> None:
    if fact.is_dealt and fact.shape[2] != _terms(fact):
        raise LoweringError(f"{shown(call)}: fragments of {fact.dtype} for m, n = 16, {NARROW} have k = {_terms(fact)}",
                            hint="k is 16 for float16 and bfloat16, 32 for int8 and uint8")
    before = known.setdefault(var, fact)
    if before.shape != fact.shape:
        raise LoweringError(f"{shown(call)}: the fragments {var.name} are of m, n, k = {before.shape} elsewhere",
                            hint="a memory holds fragments of one shape")
    if before.order and fact.order and before.order != fact.order:
        raise LoweringError(f"{shown(call)}: fragments of {var.name} are loaded as {before.order} elsewhere",
                            hint="the order of a matrix_a or matrix_b is a part of tvm_mma_sync: use a memory for each order")
    if fact.order and not before.order:
        known[var] = fact


def _terms(fact: Fragment) -> int:
    """The k of products of 16 x 8 elements: 32 bytes of each factor."""
    if fact.scope == ACCUMULATOR:
        return 16 if fact.dtype.is_float else 32
    return 32 // fact.dtype.bytes


def _check_product(known: dict[Var, Fragment], call: Call) -> None:
    facts = []
    for (var, _), scope in zip(products(call), (ACCUMULATOR, A, B, ACCUMULATOR)):
        if scope_of(var) != scope:
            raise LoweringError(f"{shown(call)}: {var.name} has scope {scope_of(var)!r}, and stands in the place of {scope!r}",
                                hint="the arguments are: accumulator, its number, matrix_a, its number, matrix_b, its number, "
                                     "accumulator, its number")
        if var not in known:
            raise LoweringError(f"{shown(call)}: nothing loads or fills {var.name}",
                                hint="tvm_load_matrix_sync, or tvm_fill_fragment with 0")
        facts.append(known[var])
    d, a, b, c = facts
    _check_orders(call, (a, b))
    if len({fact.shape for fact in facts}) > 1:
        shapes = ", ".join(str(fact.shape) for fact in facts)
        raise LoweringError(f"{shown(call)}: the shapes of its fragments differ: {shapes}",
                            hint="m, n and k are those of the product, in each call")
    if a.dtype is not b.dtype or c.dtype is not d.dtype or str(c.dtype) not in SUMS[str(a.dtype)]:
        raise LoweringError(f"{shown(call)}: no tensor core multiplies {a.dtype} by {b.dtype}, adds {c.dtype}, gives {d.dtype}",
                            hint="; ".join(f"{one} into {' or '.join(sums)}" for one, sums in SUMS.items()))


def _check_orders(call: Call, factors: tuple[Fragment, Fragment]) -> None:
    """Compares the orders that the product names, if it does, with those of the loads."""
    for wanted, fact, name in zip(call.args[8:], factors, "ab"):
        assert isinstance(wanted, StringImm)
        if fact.order and fact.order != wanted.value:
            raise LoweringError(f"{shown(call)}: matrix_{name} is loaded as {fact.order}, and the product takes it as "
                                f"{wanted.value}", hint=f'give both one order: wmma_load_{name}(order="{fact.order}") and '
                                                        f'wmma_mma({name}_order="{fact.order}"), and tensors that lie so')


def _fragments(call: Call, at: int) -> Var:
    var = call.args[at]
    if not isinstance(var, Var) or not is_fragment(var):
        where = f"has scope {scope_of(var) or 'global'!r}" if isinstance(var, Var) else "is not the memory of a buffer"
        raise LoweringError(f"{shown(call)}: {shown(var)} {where}, not one of fragments",
                            hint=f"pass buffer.data of a buffer of scope {', '.join(SCOPES)}")
    _dtype(var)
    return var


def _dtype(var: Var) -> DType:
    annotation = var.type_annotation
    assert isinstance(annotation, PointerType)
    allowed = sorted({one for sums in SUMS.values() for one in sums}) if scope_of(var) == ACCUMULATOR else list(SUMS)
    element = annotation.element_type
    if not isinstance(element, PrimType) or str(element.dtype) not in allowed:
        raise LoweringError(f"{var.name} of scope {scope_of(var)!r} holds {element!r}",
                            hint=f"fragments of that scope hold {', '.join(allowed)}")
    return element.dtype



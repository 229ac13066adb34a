"""Comparison of the formula of an intrinsic with that of loops whose axes were renamed to the intrinsic's.

    w[i, k] * x[k]   and   B[k] * A[yo*16 + i, k]     the same, with w = A from (yo*16, 0) on and x = B from (0) on

The inputs of the intrinsic are found by walking both side by side: where the intrinsic reads an input, the loops must read some
tensor, always the same one, at the same distance. Operands of commutative operators may stand the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import EQ, NE, Add, And, Call, Expr, FloatImm, IntImm, Let, Max, Min, Mul, Or, ProducerLoad, Reduce, Var
from tedsl.ir.node import Node
from tedsl.ir.ops import Op
from tedsl.ir.script import shown
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order, variables
from tedsl.lang.intrinsics.tensor_intrin import Region
from tedsl.lang.reads import has_load
from tedsl.lang.tensor import Tensor
from tedsl.record import record

COMMUTATIVE = (Add, Mul, Min, Max, And, Or, EQ, NE)
MOST_STEPS = 20_000


@record(eq=False)
class Difference:
    """The first difference between two formulas: its kind ("dtype", "operator", ...), the intrinsic's side and the loops'
    side.
    """

    what: str
    ours: object
    theirs: object


class Comparison:
    """Compares the formula of an intrinsic with that of loops; collects the regions that the inputs stand for and the values of
    scalar parameters.

    axes: the variables of the intrinsic's axes, which occur in both formulas. scalars: its scalar parameters.
    """

    def __init__(self, axes: Iterable[Var], scalars: Iterable[Var], analyzer: Analyzer) -> None:
        self.axes, self.scalars, self.analyzer = set(axes), set(scalars), analyzer
        self.regions: dict[Tensor, Region] = {}
        self.values: dict[Var, Expr] = {}
        self.difference: Difference | None = None
        self.steps = 0

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether the intrinsic's expression `a` equals the loops' expression `b`. If not, `difference` is the first
        difference.
        """
        self.steps += 1
        if self.steps > MOST_STEPS:
            return self.differ("structure (the formulas are too large to compare)", a, b)
        if isinstance(a, Var) and a in self.scalars:
            return self.scalar(a, b)
        if a.dtype is not b.dtype:
            return self.differ("dtype", f"{shown(a)} is {a.dtype}", f"{shown(b)} is {b.dtype}")
        if isinstance(a, Reduce) or isinstance(b, Reduce):
            return self.reduction(a, b)
        if type(a) is ProducerLoad and type(b) is ProducerLoad:
            return self.load(a, b)
        if a.dtype.is_integer and a.dtype.lanes == 1 and not has_load(a) and not has_load(b) and self.equal(a, b):
            return True
        if type(a) is not type(b):
            return self.differ("operator", a, b)
        return self.children(a, b)

    def children(self, a: Any, b: Any) -> bool:
        match a:
            case Var():
                return a is b or self.differ("variable", a, b)
            case IntImm() | FloatImm():
                return repr(a.value) == repr(b.value) or self.differ("constant", a, b)
            case Let():
                return self.same(a.value, b.value) and self.same(substitute(a.body, {a.var: b.var}), b.body)
        if _own(a) != _own(b):
            return self.differ("operator", a, b)
        if isinstance(a, COMMUTATIVE):
            saved = dict(self.regions), dict(self.values)
            if self.same(a.a, b.a) and self.same(a.b, b.b):
                return True
            first = self.difference
            self.regions, self.values = saved
            if self.same(a.a, b.b) and self.same(a.b, b.a):
                return True
            self.difference = first
            return False
        ours, theirs = a.child_nodes(), b.child_nodes()
        if len(ours) != len(theirs):
            return self.differ("operator", a, b)
        return all(self.same(x, y) for x, y in zip(ours, theirs))

    def reduction(self, a: Expr, b: Expr) -> bool:
        if not isinstance(a, Reduce) or not isinstance(b, Reduce):
            return self.differ("operator", a, b)
        if len(a.source) != len(b.source) or a.value_index != b.value_index:
            return self.differ("reduction", a, b)
        if len(a.init) != len(b.init):
            own = "that of the combiner"
            return self.differ("start value", a.init[0] if a.init else own, b.init[0] if b.init else own)
        ours, theirs = a.combiner, b.combiner
        renamed = dict(zip((*ours.lhs, *ours.rhs), (*theirs.lhs, *theirs.rhs)))
        for x, y in zip((*ours.result, *ours.identity_element), (*theirs.result, *theirs.identity_element)):
            if not self.same(substitute(x, renamed), y):
                return self.differ("combiner", x, y, instead=True)
        pairs = zip((*a.source, a.condition, *a.init), (*b.source, b.condition, *b.init))
        return all(self.same(x, y) for x, y in pairs)

    def load(self, a: ProducerLoad, b: ProducerLoad) -> bool:
        """Whether the input that `a` loads can stand for a region of the tensor that `b` loads; records that region."""
        region = self.region(a, b)
        if region is None:
            return self.differ("indices", a, b)
        known = self.regions.setdefault(a.producer, region)
        if known is region:
            return True
        if known.tensor != region.tensor:
            return self.differ(f"input {a.producer.name}", "always the same tensor",
                               f"{known.tensor.name} and {region.tensor.name}")
        same = known.dims == region.dims and all(self.equal(x, y) for x, y in zip(known.mins, region.mins))
        return same or self.differ(f"input {a.producer.name}", f"{shown(a)} of one region", f"{shown(b)}, at another distance")

    def region(self, a: ProducerLoad, b: ProducerLoad) -> Region | None:
        """The region of the tensor loaded by `b` that the input loaded by `a` stands for; None if there is none.

        Each index of `a`, from the last on, must equal an index of `b` minus an invariant start; the other indices of `b` must
        not depend on the axes.
        """
        mins = [index if has_load(index) else self.analyzer.simplify(index) for index in b.indices]
        dims: list[int] = []
        wanted = list(a.indices)
        for at in reversed(range(len(mins))):
            distance = None if not wanted else self.distance(mins[at], wanted[-1])
            if distance is not None:
                mins[at] = distance
                dims.append(at)
                wanted.pop()
            elif not self.is_fixed(mins[at]):
                return None
        return None if wanted else Region(b.producer, tuple(mins), tuple(reversed(dims)))

    def distance(self, theirs: Expr, ours: Expr) -> Expr | None:
        """`theirs - ours` if that is invariant over the iterations of the region, else None."""
        if has_load(theirs) or has_load(ours):
            return None
        difference = self.analyzer.simplify(build.sub(theirs, ours))
        return difference if self.is_fixed(difference) else None

    def is_fixed(self, expr: Expr) -> bool:
        return not has_load(expr) and not any(v in self.axes for v in variables(expr))

    def scalar(self, a: Var, b: Expr) -> bool:
        """Whether `b` is invariant over the region, so that a scalar parameter can stand for it; records its value."""
        if a.dtype is not b.dtype:
            return self.differ("dtype", f"{shown(a)} is {a.dtype}", f"{shown(b)} is {b.dtype}")
        if not self.is_fixed(b):
            return self.differ(f"scalar parameter {a.name}", "one value", b)
        known = self.values.setdefault(a, b)
        same = known is b or self.equal(known, b) or (_is_pure(b) and structural_equal(known, b))
        return same or self.differ(f"scalar parameter {a.name}", known, b)

    def equal(self, a: Expr, b: Expr) -> bool:
        if a is b:
            return True
        if not a.dtype.is_integer or a.dtype is not b.dtype:
            return False
        if a.dtype.is_bool:
            return self.analyzer.simplify(a) is self.analyzer.simplify(b)
        return build.as_int(self.analyzer.simplify(build.sub(a, b))) == 0

    def differ(self, what: str, ours: object, theirs: object, instead: bool = False) -> bool:
        """Records a difference, unless an earlier one is recorded (`instead`: replaces it), and returns False."""
        if self.difference is None or instead:
            self.difference = Difference(what, ours, theirs)
        return False


def _own(node: Any) -> Mapping[str, object]:
    """The fields of a node that are not child expressions, such as its dtype and operator."""
    return {name: value for name, value in vars_of(node).items()
            if isinstance(value, (str, int, Op)) and not isinstance(value, Node)}


def _is_pure(expr: Expr) -> bool:
    """Whether `expr` has the same value each time it is evaluated, as two calls of a random number generator have not."""
    return not any(isinstance(node, Call) and node.op.effect != "pure" for node in post_order(expr))


def vars_of(node: Any) -> dict[str, object]:
    """The fields of a node by name."""
    return {name: getattr(node, name) for name in node.__dataclass_fields__}

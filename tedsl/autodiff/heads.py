"""What a derivative is multiplied by: the head, which has the shape of the output behind any leading dimensions.

Without one, the head is the identity, and the result the whole Jacobian. The identity is never stored: formulas read it as a
condition, under which everything else is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.autodiff.sweep import Branch, Path
from tedsl.ir import build
from tedsl.ir.expr import Expr, Var
from tedsl.lang.declare import define
from tedsl.lang.elementwise import ElementwiseOp
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor, load
from tedsl.record import record


@record
class IdentityOp:
    """The record of a head that is 1 where the first half of its indices equals the second, else 0."""


@record(eq=False)
class RowsFromOp:
    """The record of a head that has `rows` in reverse order, from row `begin` on, and is 0 before it.

    The rows are the first dimension of `rows`, before the leading dimensions of the head.
    """

    rows: Tensor
    begin: Expr

    def seed(self, prefix: Sequence[Expr], axes: Sequence[Expr]) -> tuple[Path, Expr]:
        """The element of the head at these indices: a value, and the condition without which it is 0."""
        last = build.sub(self.rows.shape[0], 1)
        value = load(self.rows, (build.sub(last, axes[0]), *prefix, *axes[1:]))
        return (Branch(build.greater_equal(axes[0], self.begin), True, True),), value


def identity(output: Tensor) -> Tensor:
    """The head of the whole Jacobian of `output`, of its shape twice."""
    rank = output.ndim

    def element(*axes: Var) -> Expr:
        return build.select(_equal(axes[:rank], axes[rank:]), build.const(1.0, output.dtype), build.const(0.0, output.dtype))

    names = [*(f"p{d}" for d in range(rank)), *(f"i{d}" for d in range(rank))]
    return Tensor(define((*output.shape, *output.shape), element, names, "identity", info=IdentityOp()))


def zeros(shape: Sequence[Expr], like: Tensor, name: str) -> Tensor:
    """A tensor of zeros in the dtype of `like`."""
    names = [f"j{d}" for d in range(len(shape))]
    return Tensor(define(tuple(shape), lambda *_: build.const(0.0, like.dtype), names, name))


def results_of(found: Sequence[Tensor], *names: str) -> list[Tensor]:
    """Derivatives as results, each a tensor that is computed and of its own: of one that programs pass to a kernel, as the head
    is, and of one that stands before, a copy, by its name in `names`.
    """
    made: list[Tensor] = []
    for tensor, name in zip(found, names):
        made.append(_copy(tensor, name) if isinstance(tensor.op, PlaceholderOp) or tensor in made else tensor)
    return made


def _copy(tensor: Tensor, name: str) -> Tensor:
    names = [f"j{d}" for d in range(tensor.ndim)]
    return Tensor(define(tensor.shape, lambda *axes: load(tensor, axes), names, name, tag="elemwise",
                         info=ElementwiseOp("identity")))


def seed(head: Tensor, prefix: Sequence[Expr], axes: Sequence[Expr]) -> tuple[Path, Expr]:
    """The element of `head` at these indices: a value, and conditions without which it is 0."""
    if isinstance(getattr(head.op, "info", None), IdentityOp):
        one = build.const(1.0, head.dtype)
        return ((Branch(_equal(prefix, axes), True, False),) if prefix else (), one)
    if isinstance(getattr(head.op, "info", None), RowsFromOp):
        info: RowsFromOp = head.op.info
        return info.seed(prefix, axes)
    return (), load(head, (*prefix, *axes))


def _equal(first: Sequence[Expr], second: Sequence[Expr]) -> Expr:
    total = build.true()
    for a, b in zip(first, second):
        total = build.logical_and(total, build.equal(a, b))
    return total

"""Products of narrow integers, whose sums take a group of neighbouring terms in one instruction.

    out[i, j] += sum over r of  a[i, 4 k + r] * b[4 k + r, j]        one step of k

The terms of a group lie side by side in both operands: in the first as it is, in a copy of the second as [k / 4, j, k % 4].
Tiles are those of a product with as many steps, whose elements have 32 bits.
"""

from __future__ import annotations

from typing import Any

from topi.schedules.formulas import constant, extent_of
from topi.schedules.kernel import Kernel


def group_of(kernel: Kernel, a: Any, b: Any, terms: Any) -> int:
    """The number of terms that one instruction adds to the sums of the anchor, products of `a` and `b`; 1 if there is none.

    a, b: as formulas read them (`Kernel.read`). terms: the extent along which groups are taken. Symbolic terms or columns would
    leave parts of groups in many kinds of tiles, which take long to compile.
    """
    group: int = kernel.target.dot_terms(a.dtype, b.dtype)
    sums = kernel.anchor.output(0).dtype
    loads = kernel.formula(kernel.anchor).loads
    plain = len(loads) == 2 and {load.producer for load in loads} == {a, b}
    count = constant(terms)
    fits = sums.bits == 32 and (sums.is_integer or a.dtype == b.dtype == "bfloat16")
    is_known = count is not None and count >= group and extent_of(kernel.anchor.axis[-1]) is not None
    return group if fits and plain and is_known else 1


def copy_by_groups(kernel: Kernel, tensor: Any, terms: int, columns: int, group: int) -> Any:
    """A copy of `tensor` with the groups of the dimension `terms` innermost, and the dimension `columns` around them."""
    rank = len(tensor.shape)
    rest = [at for at in range(rank) if at not in (terms % rank, columns % rank)]
    copy = kernel.schedule.cache_read(tensor, "global", [kernel.anchor])
    kernel.schedule[copy].transform_layout(
        lambda *at: [*(at[k] for k in rest), at[terms] // group, at[columns], at[terms] % group])
    return copy


def pack_groups(kernel: Kernel, copy: Any, group: int) -> None:
    """Order the loops of a copy by groups of the second matrix of a product: as many rows as a vector holds groups, which are
    turned in registers, step after step; or the rows of a step, whose elements are interleaved.

    Not where conditions would take longer than groups that are copied one by one: with a rest of terms, or of columns if these
    cannot be masked.
    """
    *_, steps, columns, inside = copy.leaf_iter_vars
    terms = extent_of(kernel.anchor.reduce_axis[0]) or 1
    turn_groups(kernel, copy, (steps, columns, inside), turned=kernel.record.transpose_b, whole=terms % group == 0)


def turn_groups(kernel: Kernel, copy: Any, loops: tuple[Any, ...], turned: bool, whole: bool = True) -> None:
    """Vectorize a copy of groups. loops: its innermost ones, the last three over groups of terms, columns, and the terms of a
    group. turned: whether terms are neighbours in what is copied, not columns. whole: whether no part of a group is left over.
    """
    *rest, steps, columns, inside = loops
    lanes, count = kernel.target.vector_bits // 32, extent_of(kernel.anchor.axis[-1]) or 1
    if not whole or (count % lanes and not kernel.target.can_mask(copy.op.output(0).dtype)):
        copy.vectorize(inside)
        return
    outer, lane = copy.split(columns, factor=lanes)
    copy.reorder(*rest, *((outer, steps) if turned else (steps, outer)), lane, inside)
    copy.vectorize(copy.fuse(lane, inside))


def split_groups(stage: Any, loop: Any, group: int) -> tuple[list[Any], list[Any]]:
    """The loops of a sum outside of the rows of its tile, and those inside: the terms of a group."""
    if group == 1:
        return [loop], []
    steps, inside = stage.split(loop, factor=group)
    if stage.op.output(0).dtype.is_float:
        stage.pragma(steps, "bfloat16_pairs")
    return [steps], [inside]

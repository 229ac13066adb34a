"""The reverse sweep over one expression: what each element that it reads adds to its derivative.

Each node gets the sum of what its readers pass down, multiplied by their partial derivatives: a shared node is passed through
once. A branch of a Select or if_then_else passes down what counts where the branch is chosen alone; the conditions stay beside
the value until paths meet, so that the value may use what can be evaluated in that branch only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tedsl.autodiff.partials import partials, zero
from tedsl.ir import build
from tedsl.ir.expr import Call, Expr, Let, ProducerLoad, Select
from tedsl.ir.node import Node
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.walk.equal import structural_equal
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.ir.walk.visitor import post_order
from tedsl.lang.tensor import Tensor
from tedsl.record import record


@record(eq=False)
class Branch:
    """A side of a choice: `condition` is `holds` there. lazy: only there the value may be evaluated."""

    condition: Expr
    holds: bool
    lazy: bool


Path = tuple[Branch, ...]


@record(eq=False)
class Share:
    """What the read `load` adds to the derivative of its element, where all of `path` hold; elsewhere it adds nothing."""

    load: ProducerLoad
    path: Path
    value: Expr

    @property
    def guarded(self) -> Expr:
        """The value with its conditions."""
        return guarded(self.path, self.value)


def guarded(path: Path, value: Expr) -> Expr:
    """`value` where all of `path` hold, else 0."""
    for branch in reversed(path):
        choose = build.if_then_else if branch.lazy else build.select
        value = choose(branch.condition, value, zero(value)) if branch.holds else \
            choose(branch.condition, zero(value), value)
    return value


def shares(seeds: Sequence[tuple[Expr, Path, Expr]], wanted: Collection[Tensor], stored: Mapping[Node, Expr]) -> list[Share]:
    """What the reads of `wanted` tensors add to the derivative of the sum of the seeds.

    seeds: expressions without Let (see `without_lets`), each with the conditions under which it counts and the derivative by
    its value. stored: the values of nodes that stand in a tensor already.
    """
    order, active = _active(seeds, wanted)
    coming: dict[Node, list[tuple[Path, Expr]]] = {}
    for root, path, seed in seeds:
        coming.setdefault(root, []).append((path, seed))
    found: list[tuple[ProducerLoad, list[tuple[Path, Expr]]]] = []
    for node in reversed(order):
        if node not in coming or node not in active:
            continue
        parts = coming.pop(node)
        if isinstance(node, ProducerLoad):
            _add_share(found, node, parts)
        else:
            path, value = _joined(parts)
            for child, below, passed in _passed_down(node, path, value, stored):
                if child in active:
                    coming.setdefault(child, []).append((below, passed))
    return [Share(load, *_summed(parts)) for load, parts in reversed(found)]


def _add_share(found: list[tuple[ProducerLoad, list[tuple[Path, Expr]]]], load: ProducerLoad,
               parts: list[tuple[Path, Expr]]) -> None:
    """Adds to `found` what a load gets, together with what another load of the same element got."""
    for other, before in found:
        if other.producer == load.producer and all(structural_equal(a, b, map_free_vars=False)
                                                   for a, b in zip(other.indices, load.indices)):
            before.extend(parts)
            return
    found.append((load, parts))


def _active(seeds: Sequence[tuple[Expr, Path, Expr]], wanted: Collection[Tensor]) -> tuple[list[Node], set[Node]]:
    """All nodes, children first, and those whose value depends on the wanted tensors by way of floats."""
    order: dict[Node, None] = {}
    active: set[Node] = set()
    for root, _, _ in seeds:
        for node in post_order(root):
            order.setdefault(node)
            if isinstance(node, Expr) and node.dtype.is_float:
                below = node.producer in wanted if isinstance(node, ProducerLoad) else \
                    any(child in active for child in node.child_nodes())
                if below:
                    active.add(node)
    return list(order), active


def _passed_down(node: Any, path: Path, value: Expr, stored: Mapping[Node, Expr]) -> list[tuple[Expr, Path, Expr]]:
    sides: tuple[Expr, ...]
    if isinstance(node, Select):
        sides, lazy = (node.condition, node.true_value, node.false_value), False
    elif isinstance(node, Call) and node.op is IF_THEN_ELSE:
        sides, lazy = node.args, True
    else:
        return [(child, path, build.cast(child.dtype, times(value))) for child, times in partials(node, stored.get(node, node))]
    condition, chosen, other = sides
    return [(chosen, (*path, Branch(condition, True, lazy)), value), (other, (*path, Branch(condition, False, lazy)), value)]


def _joined(parts: list[tuple[Path, Expr]]) -> tuple[Path, Expr]:
    """The sum of values that count under different conditions, and the conditions under which the node is evaluated."""
    common, total = _summed(parts)
    return (*common, *_either([path[len(common):] for path, _ in parts])), total


def _summed(parts: list[tuple[Path, Expr]]) -> tuple[Path, Expr]:
    """The conditions that are common to values, and the sum of the values under the others."""
    first = parts[0][0]
    common = 0
    while all(len(path) > common and path[common] is first[common] for path, _ in parts):
        common += 1
    rests = [path[common:] for path, _ in parts]
    total = guarded(rests[0], parts[0][1])
    for rest, (_, value) in zip(rests[1:], parts[1:]):
        total = build.add(total, guarded(rest, value))
    return first[:common], total


def _either(paths: list[Path]) -> Path:
    """The condition that one of `paths` holds; none where one of them always does."""
    if not all(paths) or _opposite(paths):
        return ()
    condition = _all(paths[0])
    for path in paths[1:]:
        condition = build.logical_or(condition, _all(path))
    return (Branch(condition, True, any(branch.lazy for path in paths for branch in path)),)


def _opposite(paths: list[Path]) -> bool:
    alone = [path[0] for path in paths if len(path) == 1]
    return any(a.condition is b.condition and a.holds != b.holds for a in alone for b in alone)


def _all(path: Path) -> Expr:
    """The condition that all of `path` hold, each asked for only where those before it hold."""
    held = build.true()
    for branch in reversed(path):
        condition = branch.condition if branch.holds else build.logical_not(branch.condition)
        held = build.if_then_else(condition, held, build.const(False)) if branch.lazy and not build.is_true(held) else \
            build.logical_and(condition, held)
    return held


def without_lets(body: Expr) -> Expr:
    """`body` with the values of its lets in the places of their variables: shared nodes, evaluated once in any case."""
    done: Expr = _LetsReplaced()(body)
    return done


class _LetsReplaced(Rewriter):
    kinds = (Let,)

    def rewrite(self, node: Any) -> Any:
        return substitute(node.body, {node.var: node.value}) if isinstance(node, Let) else node

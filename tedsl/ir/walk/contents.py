"""What stands in a tree, remembered with its nodes: a pass that serves one kind of node asks first, and costs nothing without
it.

Each node keeps a set of kinds as the bits of a number, made when it is first asked for. Nodes never change, and what a pass
leaves alone keeps its nodes: after a pass only the new ones are looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tedsl.ir.expr import Call, FloatImm, IntImm, Load, SizeVar, StringImm, Var
from tedsl.ir.node import Node, set_field
from tedsl.ir.stmt import AttrStmt, Store

MASKED = "masked access"  # the kind of loads and stores that have a predicate
_bits: dict[object, int] = {}  # of each kind
_numbers = itertools.count()


def contains(root: Node, *kinds: object) -> bool:
    """Tells whether a node below `root`, or itself, is of one of `kinds`: a class (and no subclass of it), the operator of
    calls, the key of attributes, or MASKED. Nodes are those that `post_order` visits.
    """
    return bool(contents_of(root) & mask_of(kinds))


def contents_of(root: Node) -> int:
    """Returns the kinds of the nodes below `root` and of itself, as bits that `mask_of` names."""
    return getattr(root, "_contents", 0) or _look(root)


def mask_of(kinds: Iterable[object]) -> int:
    """Returns the bits of `kinds`, which `contains` describes."""
    mask = 0
    for kind in kinds:
        mask |= _bits.get(kind) or _new(kind)
    return mask


def _look(root: Node) -> int:
    """Returns the kinds in `root`, and fills in those of all nodes below it."""
    stack = [root]
    found = 0
    while stack:
        node = stack[-1]
        found = getattr(node, "_contents", 0)
        if not found:
            height = len(stack)
            for child in node.child_nodes():
                below = _leaves.get(type(child)) or getattr(child, "_contents", 0)
                if below:
                    found |= below
                else:
                    stack.append(child)
            if len(stack) > height:
                continue
            found |= _own(node)
            set_field(node, "_contents", found)
        stack.pop()
    return found


def _own(node: Node) -> int:
    """Returns the kinds that `node` itself is of."""
    own = _bits.get(type(node)) or _new(type(node))
    if isinstance(node, (Load, Store)):
        return own if node.predicate is None else own | (_bits.get(MASKED) or _new(MASKED))
    if isinstance(node, Call):
        return own | (_bits.get(node.op) or _new(node.op))
    if isinstance(node, AttrStmt):
        return own | (_bits.get(node.attr_key) or _new(node.attr_key))
    return own


def _new(kind: object) -> int:
    return _bits.setdefault(kind, 1 << next(_numbers))


# Half of all nodes, which are not looked into.
_leaves: dict[type[Node], int] = {leaf: _new(leaf) for leaf in (Var, SizeVar, IntImm, FloatImm, StringImm)}

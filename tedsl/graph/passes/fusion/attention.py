"""Products whose first operand is the softmax of another product, as in attention: one kernel, which makes it row by row.

    batch_matmul ──► scale, mask ──► softmax ──► batch_matmul        the matrix between the products is never whole in memory
"""

from __future__ import annotations

from collections.abc import Sequence

from tedsl.graph.graph import Graph
from tedsl.graph.value import Node, Value

Group = tuple[Node, ...]
_PRODUCT, _SOFTMAX = "nn.batch_matmul", "nn.softmax"


def products_joined(graph: Graph, groups: Sequence[Group], most: int) -> list[Group]:
    """The groups with those united that make the first operand of a product by rows."""
    left = list(groups)
    for host in groups:
        product = _product_of(host)
        if product is None or host not in left or product.arguments.get("transpose_a"):
            continue
        before = _rows_before(product, graph, left)
        whole = (*[node for group in before for node in group], *host)
        if before and len(whole) <= most:
            left = [group for group in left if group not in before]
            left[left.index(host)] = whole
    return left


def _rows_before(product: Node, graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """The group of the softmax that a product reads, after that of the product which the softmax reads, if there is one."""
    rows = _group_of(product.inputs[0], groups)
    if rows is None or not _is_softmax_of_rows(rows[-1]) or not _only_for(rows, (product,), graph) or \
            not product.inputs[0].spec.is_static:
        return []
    made = {value for node in rows for value in node.outputs}
    read = [value for node in rows for value in node.inputs if value not in made]
    for value in read:
        scores = _group_of(value, groups)
        if scores is not None and _product_of(scores) is not None and _only_for(scores, rows, graph):
            return [scores, rows]
    return [rows]


def _group_of(value: Value, groups: Sequence[Group]) -> Group | None:
    return next((group for group in groups if value.node is not None and group[-1] is value.node), None)


def _product_of(group: Group) -> Node | None:
    """The only product of a group."""
    found = [node for node in group if node.operator == _PRODUCT]
    return found[0] if len(found) == 1 else None


def _is_softmax_of_rows(node: Node) -> bool:
    axis = node.attributes.get("axis", -1)
    return node.operator == _SOFTMAX and axis in (-1, len(node.outputs[0].shape) - 1)


def _only_for(group: Group, readers: Sequence[Node], graph: Graph) -> bool:
    """Whether only these nodes read the result of a group, which is no output."""
    return all(value not in graph.outputs and all(reader in readers for reader in graph.users(value))
               for value in group[-1].outputs)

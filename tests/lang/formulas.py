"""What a formula means, element by element in plain Python: the tests compare tensors with numpy through this."""

import itertools

import numpy as np

from tedsl.ir import build
from tedsl.ir.evaluate import evaluate
from tedsl.ir.expr import ProducerLoad, Reduce
from tedsl.ir.walk.rewriter import Rewriter
from tedsl.ir.walk.substitute import substitute
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import PlaceholderOp
from tedsl.lang.tensor import Tensor


def values(tensor, given, sizes=None):
    """The elements of `tensor` as an array, from arrays for the placeholders and values for the variables."""
    known = dict(given)
    sizes = dict(sizes or {})
    for op in producers_first([tensor.op]):
        if not isinstance(op, PlaceholderOp):
            for index in range(op.num_outputs):
                known[op.output(index)] = _output(op, index, known, sizes)
    return known[tensor]


def _output(op, index, known, sizes):
    shape = tuple(int(evaluate(extent, sizes)) for extent in op.shape)
    result = np.zeros(shape, object)
    for place in np.ndindex(shape):
        at = {**sizes, **{axis.var: int(i) for axis, i in zip(op.axis, place)}}
        body = op.body[index]
        result[place] = _reduced(body, known, at)[body.value_index] if isinstance(body, Reduce) else value(body, known, at)
    return result.astype(np.dtype(str(op.dtype_of(index)))) if op.dtype_of(index) != "bfloat16" else result.astype(np.float32)


def _reduced(reduce, known, at):
    ranges = [range(int(value(a.dom.min, known, at)), int(value(a.dom.min, known, at)) + int(value(a.dom.extent, known, at)))
              for a in reduce.axis]
    combiner = reduce.combiner
    total = [value(e, known, at) for e in (reduce.init or combiner.identity_element)]
    for place in itertools.product(*ranges):
        here = {**at, **{axis.var: i for axis, i in zip(reduce.axis, place)}}
        if value(reduce.condition, known, here):
            right = [value(e, known, here) for e in reduce.source]
            both = {**dict(zip(combiner.lhs, total)), **dict(zip(combiner.rhs, right))}
            total = [value(e, known, both) for e in combiner.result]
    return total


def value(expr, known, at):
    """`expr` with loads replaced by what they load."""
    constants = {var: build.const(v.item() if hasattr(v, "item") else v, var.dtype) for var, v in at.items()}
    return evaluate(_Loads(known)(substitute(expr, constants)), {})


class _Loads(Rewriter):
    def __init__(self, known):
        super().__init__()
        self.known = known

    def rewrite(self, node):
        if not isinstance(node, ProducerLoad):
            return node
        array = self.known[node.producer]
        place = tuple(int(evaluate(i, {})) for i in node.indices)
        inside = all(0 <= i < n for i, n in zip(place, array.shape))
        return build.const(array[place].item() if inside else 0, node.producer.dtype)  # outside: the side not taken


def tensor_of(op):
    return Tensor(op, 0)

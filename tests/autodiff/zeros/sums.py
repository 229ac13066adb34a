"""Sums over all indices that are zero at most of them, as vector-Jacobian products are written, and how they run."""

import numpy as np

from tedsl import te
from tedsl.driver import lower
from tedsl.ir.evaluate import evaluate, run
from tedsl.ir.stmt import BufferStore, For, Store
from tedsl.ir.walk.visitor import variables
from tedsl.lang.graph import producers_first
from tedsl.lang.operation import ComputeOp, PlaceholderOp


def adjoint(shape, out, reduced, index, value=None, where=None):
    """The sum over i in `out` and r in `reduced` of head[i] * value(i, r) where index(i, r) is the place and where(i, r)."""
    head = te.placeholder(out, name="head")
    i = [te.reduce_axis((0, n), f"i{k}") for k, n in enumerate(out)]
    r = [te.reduce_axis((0, n), f"r{k}") for k, n in enumerate(reduced)]

    def formula(*place):
        conditions = [at == j for at, j in zip(index(*i, *r), place)] + ([] if where is None else [where(*i, *r)])
        term = head(*i) if value is None else head(*i) * value(*i, *r)
        return te.sum(te.select(te.all(*conditions), term, 0.0), axis=[*i, *r])

    return te.compute(shape, formula, "adj", axes="j")


def inputs_of(*tensors):
    ops = producers_first([tensor.op for tensor in tensors])
    return [op.output(0) for op in ops if isinstance(op, PlaceholderOp)]


def sizes_of(tensors):
    """The variables in the shapes and the reductions of tensors, each once."""
    extents = [extent for tensor in tensors for extent in tensor.shape]
    extents += [axis.dom.extent for tensor in tensors for axis in getattr(tensor.op, "reduce_axis", ())]
    return list(dict.fromkeys(var for extent in extents for var in variables(extent)))


def lowered(tensor, inputs):
    args = [*sizes_of([*inputs, tensor]), *inputs, tensor]
    return next(iter(lower(te.create_schedule(tensor.op), args, simple_mode=True).functions.values()))


def results(tensors, sizes=None):
    """What the reference interpreter computes for each of `tensors`, with integers as data; `sizes`: of variables by name."""
    inputs, rng = inputs_of(*tensors), np.random.default_rng(0)
    values = {}

    def extents(tensor):
        return [extent_of(extent, sizes) for extent in tensor.shape]

    for tensor in inputs:
        values[tensor] = rng.integers(1, 9, extents(tensor)).astype(str(tensor.dtype))
    outputs = []
    for tensor in tensors:
        out = np.zeros(extents(tensor), str(tensor.dtype))
        numbers = [(sizes or {})[var.name] for var in sizes_of([*inputs, tensor])]
        run(lowered(tensor, inputs), [*numbers, *(values[one] for one in inputs), out])
        outputs.append(out)
    return outputs


def extent_of(extent, sizes):
    """The value of an extent, its variables being `sizes` by name."""
    return evaluate(extent, {var: sizes[var.name] for var in variables(extent)} if sizes else {})


def iterations(tensor, sizes=None):
    """How often the loops of a tensor's lowered formula store an element, its initialisation left out."""
    def count(stmt, times):
        if isinstance(stmt, (Store, BufferStore)):
            return times
        if isinstance(stmt, For):
            return count(stmt.body, times * extent_of(stmt.extent, sizes))
        return sum(count(child, times) for child in stmt.child_nodes())

    initial = sum(int(np.prod([extent_of(n, sizes) for n in op.shape])) for op in producers_first([tensor.op])
                  if isinstance(op, ComputeOp) and op.reduce_axis)
    return count(lowered(tensor, inputs_of(tensor)).body, 1) - initial

"""compile: passes, what is prepared once, kernels, a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph.dimensions import Dimension, expecting, variables_in
from tedsl.graph.graph import Graph
from tedsl.graph.network.absorbed import drop_elements
from tedsl.graph.network.build import build_kernels
from tedsl.graph.network.instance import Instance
from tedsl.graph.network.kernels import ExternalSource, KernelSource
from tedsl.graph.network.network import Groups, Network, concrete_graph, uses_of, variables_of
from tedsl.graph.network.prepare import Split, split_constants
from tedsl.graph.network.steps import step_of
from tedsl.graph.passes import by_groups, pipeline
from tedsl.graph.passes.images import segments_of
from tedsl.graph.plan.plan import Overwrites, overwrites, plan
from tedsl.ir.expr import Var
from tedsl.target.current import as_target
from tedsl.target.target import Target


def compile(graph: Graph, target: Any = None, opt_level: int = 2, batches: Sequence[int] = ()) -> Network:
    """The network that runs a graph on `target` (None: the current one, else this machine).

    opt_level: 0: each node is a kernel; 1 and above: the passes of that level and of those below change the graph first.
    batches: extents of the variable in the shapes of the inputs for which kernels of their own are compiled, beside those for
    any extent; passes choose by the first of them. Raises ArgumentError for a target on which networks do not run.
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"compile: a network is made of a Graph, not of {type_in_words(graph)}",
                                hint="graph.trace(fn, Spec(...)) makes one of a function")
    machine = _checked(as_target(target))
    _check_variables(graph)
    extents = _extents(graph, batches)
    expected: dict[Var, Dimension] = dict(zip(variables_of(graph), extents[0])) if extents else {}
    with expecting(expected):
        split = split_constants(optimized(graph, machine, opt_level))
    return assembled(split, machine, extents, by_groups in pipeline(opt_level))


def kernels_in(graph: Graph, target: Target, opt_level: int) -> Counter[KernelSource]:
    """The kernels that `compile` would make of a graph, and how many steps of a call each does; those of other compilers are
    left out.
    """
    split = split_constants(optimized(graph, _checked(target), opt_level)).graph
    return Counter([use.source for use in uses_of(split, overwrites(split)) if not isinstance(use.source, ExternalSource)])


def optimized(graph: Graph, target: Target, opt_level: int) -> Graph:
    """The graph after the passes of a level."""
    with target:
        for step in pipeline(opt_level):
            graph = step(graph)
    return graph


def assembled(split: Split, target: Target, extents: Sequence[tuple[int, ...]], by_images: bool) -> Network:
    """Compiles all kernels, computes what depends on constants alone, and makes the network. by_images: layers for `extents`
    run for groups of images where that takes less; graphs without variables have been grouped before.
    """
    graph = split.graph
    in_place = overwrites(graph)
    groups = _groups(graph, target, extents) if by_images else {}
    sources = _sources(graph, in_place, extents, groups)
    before = [] if split.before is None else [use.source for use in uses_of(split.before, (), prepares=False)]
    modules = build_kernels([*sources, *before], target)
    if split.before is not None:
        steps = [step_of(use, use.source, modules[use.source], {}) for use in uses_of(split.before, (), prepares=False)]
        Instance(split.before, plan(split.before, in_place=False), steps).run((), split.arrays)
    network = Network(graph, target, {source: modules[source] for source in sources}, in_place, extents, groups=groups)
    drop_elements(network, split.arrays)
    return network


def _groups(graph: Graph, target: Target, extents: Sequence[tuple[int, ...]]) -> Groups:
    """The groups of images in which layers run for extents of the variables, where these take less than all at once."""
    with target:
        found = {key: segments_of(concrete_graph(graph, key, (), {})[0]) for key in extents}
    return {key: segments for key, segments in found.items() if segments}


def _sources(graph: Graph, in_place: Overwrites, extents: Sequence[tuple[int, ...]], groups: Groups) -> list[KernelSource]:
    """The kernels of a graph: for any extents, and for those that are asked for."""
    uses = uses_of(graph, in_place)
    for key in extents:
        uses += uses_of(*concrete_graph(graph, key, in_place, groups))
    return [use.source for use in uses]


def _checked(target: Target) -> Target:
    if target.is_device or not target.runs_here:
        raise ArgumentError(f"compile: networks run on the processor of this machine, and {target} "
                            f"{'is a device' if target.is_device else 'does not run here'}", hint='target="llvm"')
    return target


def _check_variables(graph: Graph) -> None:
    """Refuses a graph with a variable that no input has as a dimension of its own: arrays do not say what it is."""
    variables = variables_of(graph)
    for value in (*graph.inputs, *[out for node in graph.nodes for out in node.outputs]):
        missing = [var for extent in value.shape for var in variables_in(extent) if var not in variables]
        if missing:
            raise ArgumentError(f"compile: {value.name} of {graph.name} is {value.spec}, and no input says what "
                                f"{missing[0].name} is", hint=f"give one input a dimension that is {missing[0].name} alone")


def _extents(graph: Graph, batches: Any) -> tuple[tuple[int, ...], ...]:
    """The extents of the variables for each batch."""
    if not isinstance(batches, (Integral, Iterable)):
        raise ArgumentTypeError(f"compile: batches= are sizes of batches, not {type_in_words(batches)}", hint="batches=(1, 8)")
    listed = [batches] if isinstance(batches, Integral) else list(batches)
    variables = variables_of(graph)
    if listed and len(variables) != 1:
        names = ", ".join(var.name for var in variables) or "none"
        raise ArgumentError(f"compile: batches= are extents of the one variable in the shapes of the inputs; those of "
                            f"{graph.name} have {len(variables)} ({names})")
    for batch in listed:
        if isinstance(batch, bool) or not isinstance(batch, Integral) or batch < 1:
            raise ArgumentError(f"compile: {batch!r} is no size of a batch", hint="batches=(1, 8)")
    return tuple([(batch,) for batch in dict.fromkeys(map(int, listed))])

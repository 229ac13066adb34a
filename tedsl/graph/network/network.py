"""A network: a graph compiled to kernels, with a memory plan, that is called with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tedsl.errors import ArgumentError
from tedsl.graph.dimensions import with_extents
from tedsl.graph.graph import Graph
from tedsl.graph.network.arguments import Inputs, check_outputs
from tedsl.graph.network.files import load, save
from tedsl.graph.network.instance import Instance
from tedsl.graph.network.kernels import KernelSource, KernelUse, kernel_of
from tedsl.graph.network.library import export_library
from tedsl.graph.network.profile import Profile, benchmark, profile, random_arrays
from tedsl.graph.network.steps import Prepared, step_of
from tedsl.graph.passes.images import Segment, in_groups
from tedsl.graph.plan.plan import MemoryPlan, Overwrites, overwrites, plan
from tedsl.graph.plan.ranges import steps_of
from tedsl.graph.rewrite import with_inputs
from tedsl.graph.value import Spec
from tedsl.ir.expr import Var
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.runtime.timing import TimingResult
from tedsl.target.target import Target

_KEPT = 8  # instances for extents that were not asked for when the network was compiled
Groups = Mapping[tuple[int, ...], tuple[Segment, ...]]  # by extents of the variables, the groups of images of layers


class Network:
    """A compiled graph. Call it with arrays of its inputs, in order or by name:

        y = network(x)                    # a fresh array; a tuple of them if there are several outputs
        network(image=x, out=y)           # into an array that is there

    graph: what runs, after passes; what it computes of constants alone is computed already. modules: the kernels. prepared:
    what these computed of constants. groups: the groups of images in which layers run for extents that were asked for. What
    was computed of constants and is read for that alone has no elements left, nor have, after `load`, weights: they are not
    numbers.
    Calls from several threads run one after the other, since they share memory.
    """

    def __init__(self, graph: Graph, target: Target, modules: Mapping[KernelSource, RuntimeModule], in_place: Overwrites,
                 extents: Sequence[tuple[int, ...]] = (), prepared: Prepared | None = None,
                 groups: Groups | None = None) -> None:
        self.graph, self.target, self.in_place = graph, target, in_place
        self.groups: Groups = dict(groups or {})
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self.modules = dict(modules)
        self.prepared: Prepared = dict(prepared or {})
        self._arguments = Inputs(graph.name, graph.inputs)
        self._instances: dict[tuple[int, ...], Instance] = {}
        self._asked = tuple(extents) if self._arguments.variables else ((),)
        self._general = uses_of(graph, in_place) if self._arguments.variables else []
        for key in self._asked:
            self._instances[key] = self._made(key)

    @property
    def name(self) -> str:
        return self.graph.name

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """The outputs for arrays of the inputs. Raises ArgumentError, which names the input, for an array that does not fit."""
        given = self._arguments.arrays(arrays, named)
        instance = self.instance_for(given)
        results = instance.fresh() if out is None else check_outputs(self.name, self.outputs, instance.results, out, given)
        instance.run(given, results)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def plan(self) -> MemoryPlan:
        """The memory plan; that of the first extents for which the network was compiled, where these vary."""
        return self._first.plan

    def plan_for(self, **extents: int) -> MemoryPlan:
        """The memory plan for extents of the variables in the shapes of the inputs: plan_for(n=8)."""
        return self.instance(self._key(extents)).plan

    def profile(self, *arrays: Any, repeat: int = 5, **named: Any) -> Profile:
        """How long each step takes, beside what the machine could do; without arrays random ones are made.

        Each step runs `repeat` times within calls of the whole network, and the fastest counts.
        """
        return profile(self, self._some(arrays, named), repeat)

    def benchmark(self, *arrays: Any, repeat: int = 10, **named: Any) -> TimingResult:
        """The time of a call in seconds; without arrays random ones are made."""
        return benchmark(self, self._some(arrays, named), repeat)

    def save(self, file_name: Any) -> None:
        """Writes the network to a `.tedsl` file: kernels, constants and plans."""
        save(self, file_name)

    @staticmethod
    def load(file_name: Any) -> Network:
        """The network in a file that `save` wrote. Raises ModuleError for a file that is damaged or for another machine."""
        return Network(*load(file_name))

    def export_library(self, file_name: Any, **options: Any) -> None:
        """Writes the network as a library with one function, `run`, of its inputs and outputs; by the suffix of the file a
        `.so`, `.h`, `.tar` or `.whl`, as for `Module.export_library`. The weights are in it.
        """
        export_library(self, file_name, options)

    # --- instances -----------------------------------------------------------------------------------------------------

    def instance_for(self, arrays: Sequence[Any]) -> Instance:
        """What runs for these arrays, which fit the inputs."""
        return self.instance(self._arguments.extents(arrays)) if self._arguments.variables else self._instances[()]

    def instance(self, extents: tuple[int, ...]) -> Instance:
        """What runs for these extents of the variables."""
        found = self._instances.get(extents)
        if found is None:
            found = self._made(extents)
            spare = [key for key in self._instances if key not in self._asked]
            if len(spare) >= _KEPT:
                del self._instances[spare[0]]
            self._instances[extents] = found
        return found

    @property
    def instances(self) -> Mapping[tuple[int, ...], Instance]:
        """What runs, by the extents of the variables."""
        return self._instances

    @property
    def asked(self) -> tuple[tuple[int, ...], ...]:
        """The extents for which the network was compiled."""
        return self._asked

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables in the shapes of the inputs."""
        return tuple([var.name for var in self._arguments.variables])

    @property
    def _first(self) -> Instance:
        return self._instances[self._asked[0]] if self._asked else self.instance((1,) * len(self._arguments.variables))

    def _key(self, extents: Mapping[str, int]) -> tuple[int, ...]:
        if extents.keys() != set(self.variables):
            raise ArgumentError(f"{self.name}: extents of {', '.join(self.variables) or 'nothing'} are asked for, and "
                                f"{', '.join(extents) or 'nothing'} is given")
        return tuple([extents[name] for name in self.variables])

    def _made(self, extents: tuple[int, ...]) -> Instance:
        concrete, in_place = concrete_graph(self.graph, extents, self.in_place, self.groups)
        uses = uses_of(concrete, in_place)
        sources = [use.source for use in uses]
        if self._general and not self.groups.get(extents):
            general = {use.node: use.source for use in self._general}  # more steps: parts are known by extents alone
            same = dict(zip(concrete.nodes, self.graph.nodes))
            sources = [source if source in self.modules else general[same[use.node]] for source, use in zip(sources, uses)]
        steps = [step_of(use, source, self.modules[source], self.prepared) for use, source in zip(uses, sources)]
        return Instance(concrete, plan(concrete, in_place=in_place), steps)

    def _some(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        if arrays or named or not self.inputs:
            return self._arguments.arrays(arrays, named)
        return random_arrays(self._first.graph)

    def __repr__(self) -> str:
        takes = ", ".join(f"{value.name}: {value.spec}" for value in self.inputs)
        gives = ", ".join(str(value.spec) for value in self.outputs)
        return f"<Network {self.name}({takes}) -> {gives}; {len(self.modules)} kernels; target {self.target}>"


def variables_of(graph: Graph) -> tuple[Var, ...]:
    """The variables in the shapes of the inputs."""
    return tuple(dict.fromkeys([extent for value in graph.inputs for extent in value.shape if isinstance(extent, Var)]))


def concrete_graph(graph: Graph, extents: tuple[int, ...], in_place: Overwrites, groups: Groups) -> tuple[Graph, Overwrites]:
    """The graph for extents of its variables, by the groups of images for these; itself if it has none. And which nodes of it
    write over which operands, as `in_place` says for the graph of any extents.
    """
    variables = variables_of(graph)
    if not variables:
        return graph, in_place
    known = dict(zip(variables, extents))
    concrete = with_inputs(graph, [Spec([with_extents(extent, known) for extent in value.shape], value.dtype)
                                   for value in graph.inputs])
    grouped = in_groups(concrete, groups.get(extents, ()))
    return grouped, in_place if grouped is concrete else overwrites(grouped)


def uses_of(graph: Graph, in_place: Overwrites, prepares: bool = True) -> list[KernelUse]:
    """The kernel of each step of a graph. prepares: what one computes of constants alone is computed before the first call."""
    over = {graph.nodes[node] for node, _ in in_place}
    return [kernel_of(node, node in over, prepares) for node in steps_of(graph)]

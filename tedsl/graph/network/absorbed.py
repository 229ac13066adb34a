"""Constants whose elements only kernels' preparations read: what was prepared of them is kept, and their elements are not.

    w ──► f_prepare ──► packed ──► f        w has no elements in a file, nor in the memory of a process that loads it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from tedsl.graph.network.kernels import KernelSource
from tedsl.graph.network.steps import Prepared
from tedsl.graph.text.printer import names_of_constants
from tedsl.graph.value import Spec, Value
from tedsl.runtime.array import numpy_dtype

if TYPE_CHECKING:
    from tedsl.graph.network.network import Network

Place = tuple[KernelSource, int, tuple[str, ...]]  # of a prepared array: the kernel, the number, the names of constants


def kept(network: Network) -> dict[Place, numpy.ndarray]:
    """What was prepared, by the names of the constants. Nothing for a network of any batch: a kernel for another batch may
    prepare its constants in another way.
    """
    if network.variables:
        return {}
    names = {value: name for name, value in names_of_constants(network.graph).items()}
    return {(source, number, tuple([names[value] for value in constants])): array
            for (source, number, constants), array in network.prepared.items() if all(value in names for value in constants)}


def absorbed(network: Network, places: Mapping[Place, numpy.ndarray]) -> set[str]:
    """The names of the constants that are read where `places` were prepared, and nowhere else. Those of integers stay: they
    have no number that is none.
    """
    constants = names_of_constants(network.graph)
    needed = set(network.graph.outputs)
    for instance in network.instances.values():
        needed |= {operand for step in instance.steps for operand in step.operands if isinstance(operand, Value)}
        for memory in instance.plan.memories:
            if not needed.isdisjoint(memory.values):
                needed |= set(memory.values)
    prepared = {name for _, _, names in places for name in names}
    elsewhere = {value for key in network.prepared for value in key[2] if not _is_kept(key, constants, places)}
    return {name for name in prepared if constants[name] not in needed | elsewhere and constants[name].dtype.is_float}


def _is_kept(key: tuple[KernelSource, int, tuple[Value, ...]], constants: Mapping[str, Value],
             places: Mapping[Place, numpy.ndarray]) -> bool:
    return any(source == key[0] and number == key[1] and tuple([constants[name] for name in names]) == key[2]
               for source, number, names in places)


def drop_elements(network: Network, arrays: Sequence[numpy.ndarray]) -> None:
    """Gives the memory of those of `arrays`, which the network has to itself, back of which kernels have prepared forms."""
    own = {id(array) for array in arrays}
    constants = names_of_constants(network.graph)
    for value in [constants[name] for name in absorbed(network, kept(network))]:
        if id(value.data.base) in own:
            object.__setattr__(value, "data", without_elements(value.name, value.spec).data)
            for instance in network.instances.values():
                instance.fixed.pop(value, None)


def without_elements(name: str, spec: Spec) -> Value:
    """A constant whose elements are none: what is computed of them is no number."""
    nan = numpy.array("nan", numpy_dtype(spec.dtype))
    return Value(name, spec, data=numpy.broadcast_to(nan, [int(extent) for extent in spec.shape]))


def as_prepared(places: Mapping[Place, numpy.ndarray], constants: Mapping[str, Value]) -> Prepared:
    """The prepared arrays by the constants of these names."""
    return {(source, number, tuple([constants[name] for name in names])): array
            for (source, number, names), array in places.items()}

"""Networks in files: an archive of the graph as text, its constants, how it runs, and a module for each kernel.

    network.json      format, version, target, which steps write over operands, for which extents there are kernels, and in
                      which groups of images layers run for these
    machine           what LLVM says of the processor, and the runtime's code: a process on the same one does not load LLVM
    graph.txt         the graph that runs, as Graph.parse reads it
    constants/N       the elements of a constant, in the order of network.json; not compressed. Those of which only kernels'
                      preparations read have none
    prepared/N        what a kernel prepared of constants; network.json has the kernel, the number, the names of the constants
    kernels/N.tedsl   the module of a kernel; network.json has its text
    external/N        a module of another compiler as bytes; network.json has its kind and its functions
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from tedsl.cache import carried
from tedsl.errors import GraphError, ModuleError, TedslError
from tedsl.graph.graph import Graph
from tedsl.graph.network.absorbed import Place, absorbed, as_prepared, kept, without_elements
from tedsl.graph.network.kernels import ExternalSource, KernelSource
from tedsl.graph.network.steps import Prepared, prepared_form
from tedsl.graph.passes.images import Segment
from tedsl.graph.plan.plan import Overwrites
from tedsl.graph.text.printer import names_of_constants, text
from tedsl.graph.value import Spec
from tedsl.ir.dtype import dtype
from tedsl.runtime.array import aligned, numpy_dtype
from tedsl.runtime.modules.container import Buffer, pack, unpack_in_place
from tedsl.runtime.modules.files import file_path, from_bytes, module_of_kind, replace_file
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.target.target import Target
from tedsl.version import VERSION

if TYPE_CHECKING:
    from tedsl.graph.network.network import Network

FORMAT = 2
_ABOUT, _GRAPH, _CONSTANT, _KERNEL = "network.json", "graph.txt", "constants/{}", "kernels/{}.tedsl"
_EXTERNAL, _PREPARED = "external/{}", "prepared/{}"
_MACHINE = "machine"
_STORED = ("constants/", "prepared/")  # the folders of pieces that are not compressed


class Saved(NamedTuple):
    """What a network is made of."""

    graph: Graph
    target: Target
    modules: Mapping[KernelSource, RuntimeModule]
    in_place: Overwrites
    extents: tuple[tuple[int, ...], ...]
    prepared: Prepared
    groups: Mapping[tuple[int, ...], tuple[Segment, ...]]


def save(network: Network, file_name: Any) -> None:
    """Writes a network to a file. ModuleError if it cannot be written."""
    path = file_path(file_name, "save")
    if path.suffix != ".tedsl":
        raise ModuleError(f"networks are saved in .tedsl files, not as {path.name!r}",
                          hint='network.save("network.tedsl")')
    try:
        replace_file(path, pack(_pieces(network), stored=_STORED))
    except OSError as error:
        raise ModuleError(f"{path} cannot be written: {error.strerror or error}") from error


def load(file_name: Any) -> Saved:
    """What a file says of a network. ModuleError says what is wrong with it."""
    path = file_path(file_name, "load")
    if not path.is_file():
        raise ModuleError(f"there is no file {str(path)!r}")
    pieces = unpack_in_place(_content(path), path.name)
    try:
        return _saved(pieces, path)
    except ModuleError:
        raise
    except (GraphError, KeyError, TypeError, ValueError, IndexError, TedslError) as error:
        raise ModuleError(f"{path.name} is not a network that tedsl wrote: {error}", hint="save the network again") from error


def _content(path: Path) -> memoryview:
    """The content of a file, in memory that begins at a cache line, of which arrays are parts."""
    try:
        with path.open("rb", buffering=0) as file:
            memory = aligned((os.fstat(file.fileno()).st_size,), numpy.dtype("uint8")).data
            size = 0
            while size < len(memory) and (count := file.readinto(memory[size:])):
                size += count
            return memory[:size]
    except OSError as error:
        raise ModuleError(f"{path} cannot be read: {error.strerror or error}") from error


def _pieces(network: Network) -> dict[str, bytes]:
    constants = names_of_constants(network.graph)
    prepared = kept(network)
    without = absorbed(network, prepared)
    ours = {source: module for source, module in network.modules.items() if not isinstance(source, ExternalSource)}
    others = _others(network)
    about = {
        "format": FORMAT, "tedsl": VERSION, "target": str(network.target), "in_place": network.in_place,
        "extents": network.asked if network.variables else [],
        "groups": [[key, [[one.begin, one.end, one.size] for one in segments]] for key, segments in network.groups.items()],
        "constants": [[name, str(value.dtype), list(value.data.shape)] for name, value in constants.items()],
        "kernels": [source.key for source in ours], "absorbed": sorted(without),
        "prepared": [[list(ours).index(source), number, names] for source, number, names in prepared],
        "external": [[module.type_key, [[source.compiler, source.name, source.signature] for source in sources]]
                     for module, sources in others]}
    pieces = {_ABOUT: json.dumps(about).encode(), _GRAPH: text(network.graph).encode(), _MACHINE: carried.entries()}
    pieces |= {_CONSTANT.format(at): value.data.tobytes() for at, (name, value) in enumerate(constants.items())
               if name not in without}
    pieces |= {_PREPARED.format(at): array.tobytes() for at, array in enumerate(prepared.values())}
    pieces |= {_KERNEL.format(at): bytes(module.save_to_bytes()) for at, module in enumerate(ours.values())}
    return pieces | {_EXTERNAL.format(at): bytes(module.save_to_bytes()) for at, (module, _) in enumerate(others)}


def _others(network: Network) -> list[tuple[RuntimeModule, list[ExternalSource]]]:
    """The modules of other compilers, each with its functions."""
    found: dict[int, tuple[RuntimeModule, list[ExternalSource]]] = {}
    for source, module in network.modules.items():
        if isinstance(source, ExternalSource):
            found.setdefault(id(module), (module, []))[1].append(source)
    return list(found.values())


def _saved(pieces: Mapping[str, Buffer], path: Path) -> Saved:
    if _ABOUT not in pieces:
        raise ModuleError(f"{path.name} holds a module, not a network", hint="tedsl.runtime.load_module loads it")
    about = json.loads(bytes(pieces[_ABOUT]))
    if about["format"] > FORMAT:
        raise ModuleError(f"{path.name} was written by tedsl {about['tedsl']} in version {about['format']} of the format; "
                          f"tedsl {VERSION} reads version {FORMAT} and older", hint="save it again with this version")
    carried.take(bytes(pieces.get(_MACHINE, b"")))
    absorbed_names = set(about.get("absorbed", ()))
    arrays: dict[str, Any] = {
        name: without_elements(name, Spec(shape, of)) if name in absorbed_names else
        numpy.frombuffer(pieces[_CONSTANT.format(at)], numpy_dtype(dtype(of))).reshape(shape)
        for at, (name, of, shape) in enumerate(about["constants"])}
    graph = Graph.parse(bytes(pieces[_GRAPH]).decode(), arrays)
    target = Target(about["target"])
    modules: dict[KernelSource, RuntimeModule] = {}
    for at, (source, over, fixed) in enumerate(about["kernels"]):
        modules[KernelSource.of_text(source, over, tuple(fixed))] = from_bytes(bytes(pieces[_KERNEL.format(at)]), path.name)
    for at, (kind, functions) in enumerate(about.get("external", [])):
        piece = _EXTERNAL.format(at)
        module = module_of_kind(kind, bytes(pieces[piece]), piece, path.name)
        modules |= {ExternalSource(compiler, name, signature, None): module for compiler, name, signature in functions}
    in_place = tuple([(node, operand) for node, operand in about["in_place"]])
    prepared = _prepared(about.get("prepared", ()), pieces, modules)
    return Saved(graph, target, modules, in_place, tuple([tuple(key) for key in about["extents"]]),
                 as_prepared(prepared, names_of_constants(graph)),
                 {tuple(key): tuple([Segment(*one) for one in segments]) for key, segments in about.get("groups", ())})


def _prepared(listed: Any, pieces: Mapping[str, Buffer], modules: Mapping[KernelSource, RuntimeModule]) -> dict[Place, Any]:
    """What kernels prepared, as parts of the file."""
    sources, found = list(modules), dict[Place, Any]()
    for at, (kernel, number, names) in enumerate(listed):
        array = numpy.frombuffer(pieces[_PREPARED.format(at)], numpy.uint8)
        shape, of = prepared_form(modules[sources[kernel]], number)
        found[sources[kernel], number, tuple(names)] = array.view(of).reshape(shape)
    return found

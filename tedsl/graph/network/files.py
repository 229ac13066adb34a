"""Networks in files: an archive of the graph as text, its constants, how it runs, and a module for each kernel.

    network.json      format, version, target, which steps write over operands, for which extents there are kernels
    graph.txt         the graph that runs, as Graph.parse reads it
    constants/N       the elements of a constant, in the order of network.json; not compressed
    kernels/N.tedsl   the module of a kernel; network.json has its text
    external/N        a module of another compiler as bytes; network.json has its kind and its functions
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from tedsl.errors import GraphError, ModuleError, TedslError
from tedsl.graph.graph import Graph
from tedsl.graph.network.kernels import ExternalSource, KernelSource
from tedsl.graph.plan.plan import Overwrites
from tedsl.graph.text.printer import names_of_constants, text
from tedsl.ir.dtype import dtype
from tedsl.runtime.array import numpy_dtype
from tedsl.runtime.modules.container import pack, unpack
from tedsl.runtime.modules.files import file_path, from_bytes, module_of_kind, read_file, replace_file
from tedsl.runtime.modules.protocol import RuntimeModule
from tedsl.target.target import Target
from tedsl.version import VERSION

if TYPE_CHECKING:
    from tedsl.graph.network.network import Network

FORMAT = 1
_ABOUT, _GRAPH, _CONSTANT, _KERNEL = "network.json", "graph.txt", "constants/{}", "kernels/{}.tedsl"
_EXTERNAL = "external/{}"


class Saved(NamedTuple):
    """What a network is made of."""

    graph: Graph
    target: Target
    modules: Mapping[KernelSource, RuntimeModule]
    in_place: Overwrites
    extents: tuple[tuple[int, ...], ...]


def save(network: Network, file_name: Any) -> None:
    """Writes a network to a file. ModuleError if it cannot be written."""
    path = file_path(file_name, "save")
    if path.suffix != ".tedsl":
        raise ModuleError(f"networks are saved in .tedsl files, not as {path.name!r}",
                          hint='network.save("network.tedsl")')
    try:
        replace_file(path, pack(_pieces(network), stored="constants/"))
    except OSError as error:
        raise ModuleError(f"{path} cannot be written: {error.strerror or error}") from error


def load(file_name: Any) -> Saved:
    """What a file says of a network. ModuleError says what is wrong with it."""
    path = file_path(file_name, "load")
    if not path.is_file():
        raise ModuleError(f"there is no file {str(path)!r}")
    pieces = unpack(read_file(path), path.name)
    try:
        return _saved(pieces, path)
    except ModuleError:
        raise
    except (GraphError, KeyError, TypeError, ValueError, IndexError, TedslError) as error:
        raise ModuleError(f"{path.name} is not a network that tedsl wrote: {error}", hint="save the network again") from error


def _pieces(network: Network) -> dict[str, bytes]:
    constants = names_of_constants(network.graph)
    ours = {source: module for source, module in network.modules.items() if not isinstance(source, ExternalSource)}
    others = _others(network)
    about = {
        "format": FORMAT, "tedsl": VERSION, "target": str(network.target), "in_place": network.in_place,
        "extents": network.asked if network.variables else [],
        "constants": [[name, str(value.dtype), list(value.data.shape)] for name, value in constants.items()],
        "kernels": [source.key for source in ours],
        "external": [[module.type_key, [[source.compiler, source.name, source.signature] for source in sources]]
                     for module, sources in others]}
    pieces = {_ABOUT: json.dumps(about).encode(), _GRAPH: text(network.graph).encode()}
    pieces |= {_CONSTANT.format(at): value.data.tobytes() for at, value in enumerate(constants.values())}
    pieces |= {_KERNEL.format(at): bytes(module.save_to_bytes()) for at, module in enumerate(ours.values())}
    return pieces | {_EXTERNAL.format(at): bytes(module.save_to_bytes()) for at, (module, _) in enumerate(others)}


def _others(network: Network) -> list[tuple[RuntimeModule, list[ExternalSource]]]:
    """The modules of other compilers, each with its functions."""
    found: dict[int, tuple[RuntimeModule, list[ExternalSource]]] = {}
    for source, module in network.modules.items():
        if isinstance(source, ExternalSource):
            found.setdefault(id(module), (module, []))[1].append(source)
    return list(found.values())


def _saved(pieces: Mapping[str, bytes], path: Path) -> Saved:
    if _ABOUT not in pieces:
        raise ModuleError(f"{path.name} holds a module, not a network", hint="tedsl.runtime.load_module loads it")
    about = json.loads(pieces[_ABOUT])
    if about["format"] > FORMAT:
        raise ModuleError(f"{path.name} was written by tedsl {about['tedsl']} in version {about['format']} of the format; "
                          f"tedsl {VERSION} reads version {FORMAT} and older", hint="save it again with this version")
    arrays = {name: numpy.frombuffer(pieces[_CONSTANT.format(at)], numpy_dtype(dtype(of))).reshape(shape)
              for at, (name, of, shape) in enumerate(about["constants"])}
    graph = Graph.parse(pieces[_GRAPH].decode(), arrays)
    target = Target(about["target"])
    modules: dict[KernelSource, RuntimeModule] = {}
    for at, (source, over, fixed) in enumerate(about["kernels"]):
        modules[KernelSource.of_text(source, over, tuple(fixed))] = from_bytes(pieces[_KERNEL.format(at)], path.name)
    for at, (kind, functions) in enumerate(about.get("external", [])):
        piece = _EXTERNAL.format(at)
        module = module_of_kind(kind, pieces[piece], piece, path.name)
        modules |= {ExternalSource(compiler, name, signature, None): module for compiler, name, signature in functions}
    in_place = tuple([(node, operand) for node, operand in about["in_place"]])
    return Saved(graph, target, modules, in_place, tuple([tuple(key) for key in about["extents"]]))

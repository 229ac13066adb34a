"""torch as a compiler of parts of graphs, for tedsl."""

import io

import numpy
import torch

from tedsl.graph import Graph, Value
from tedsl.graph.text.printer import names_of_constants

FUNCTIONS = {"add": torch.add, "multiply": torch.mul, "matmul": torch.matmul, "nn.relu": torch.relu, "tanh": torch.tanh,
             "nn.conv2d": lambda x, w, strides, padding, dilation=1: torch.conv2d(x, w, None, strides, padding, dilation)}


class TorchModule:
    type_key = "torch"
    supports = staticmethod(lambda node: node.operator in FUNCTIONS)

    def __init__(self, functions):
        self.graphs = {graph.name: graph for graph in functions}

    def get_function(self, name, query_imports=False):
        if name not in self.graphs:
            raise AttributeError(name)
        return lambda *arrays: run(self.graphs[name], [torch.from_numpy(array) for array in arrays])

    def get_source(self, fmt=""):
        return "\n\n".join(map(str, self.graphs.values()))

    def save_to_bytes(self):
        file = io.BytesIO()
        numpy.savez(file, **{f"{name}/text": numpy.array(str(graph)) for name, graph in self.graphs.items()},
                    **{f"{name}/{constant}": value.data for name, graph in self.graphs.items()
                       for constant, value in names_of_constants(graph).items()})
        return file.getvalue()


def run(graph, tensors):
    known = dict(zip(graph.inputs, tensors)) | {value: torch.tensor(value.data) for value in graph.constants}
    for node in graph.nodes:
        arguments = [known[one] if isinstance(one, Value) else one for one in node.arguments.values()]
        known[node.outputs[0]] = FUNCTIONS[node.operator](*arguments)
    for out, value in zip(tensors[len(graph.inputs):], graph.outputs):
        out.copy_(known[value])


def load(data):
    arrays = numpy.load(io.BytesIO(data))
    texts = {key.partition("/")[0]: str(arrays[key]) for key in arrays if key.endswith("/text")}
    return TorchModule([Graph.parse(text, {key.partition("/")[2]: arrays[key] for key in arrays if key.startswith(f"{name}/")})
                        for name, text in texts.items()])

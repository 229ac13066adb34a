"""A codegen for tests: modules that evaluate their graphs."""

import json

import numpy as np

import tedsl
from tedsl import graph, te
from tedsl.graph import Graph


class Evaluated:
    """A module of graphs, which it evaluates node by node. calls: the names of functions in the order of their calls."""

    type_key = "evaluated"
    calls: list[str] = []

    def __init__(self, functions):
        self.functions = {function.name: function for function in functions}

    def get_function(self, name, query_imports=False):
        if name not in self.functions:
            raise AttributeError(name)

        def run(*arrays):
            self.calls.append(name)
            count = len(self.functions[name].inputs)
            for out, made in zip(arrays[count:], graph.evaluate(self.functions[name], *arrays[:count])):
                np.copyto(out, made)

        return run

    def get_source(self, fmt=""):
        return "\n".join(map(str, self.functions.values()))

    def save_to_bytes(self):
        return json.dumps(list(map(str, self.functions.values()))).encode()

    @staticmethod
    def load(data):
        return Evaluated([Graph.parse(text) for text in json.loads(data)])


def host():
    """A module of a kernel, into which others are imported."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    return tedsl.build(te.create_schedule(B.op), [A, B], name="add_one")

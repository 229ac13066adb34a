"""torch as a compiler of parts of graphs, for tedsl."""

import torch

from tedsl.graph import LibraryModule


class TorchModule(LibraryModule):
    """Parts of graphs, computed by torch."""

    type_key = "torch"
    array = staticmethod(torch.from_numpy)
    operators = {
        "add": torch.add, "multiply": torch.mul, "matmul": torch.matmul, "nn.relu": torch.relu, "tanh": torch.tanh,
        "nn.conv2d": lambda x, w, strides, padding, dilation=1: torch.conv2d(x, w, None, strides, padding, dilation),
    }

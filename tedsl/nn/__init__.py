"""Networks: modules that hold parameters, layers, losses. As much of `torch.nn`, by its names, as training needs.

    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))
    loss = nn.CrossEntropyLoss()(model(images), labels)
    loss.backward()

`functional` holds the operators without parameters of their own.
"""

from tedsl.errors import entries
from tedsl.nn import functional
from tedsl.nn.layers import (
    GELU,
    BatchNorm2d,
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    MaxPool2d,
    MSELoss,
    ReLU,
)
from tedsl.nn.module import Module, Sequential
from tedsl.nn.random import manual_seed

__all__ = ["GELU", "BatchNorm2d", "Conv2d", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "LayerNorm", "Linear",
           "MSELoss", "MaxPool2d", "Module", "ReLU", "Sequential", "functional", "manual_seed"]

entries(globals())

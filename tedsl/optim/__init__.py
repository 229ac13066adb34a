"""Optimisers, which change parameters in place by their gradients, and schedules of the learning rate.

    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

Names, parameters and formulas are those of `torch.optim`.
"""

from tedsl.errors import entries
from tedsl.optim import lr_scheduler
from tedsl.optim.adam import Adam, AdamW
from tedsl.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, LRSchedule, MultiStepLR, StepLR
from tedsl.optim.optimizer import Optimizer
from tedsl.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LRSchedule", "LambdaLR", "LinearLR", "MultiStepLR",
           "Optimizer", "SGD", "StepLR", "lr_scheduler"]

entries(globals(), instead={"LRScheduler": "LRSchedule"})

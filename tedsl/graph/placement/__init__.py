"""Placement: the parts of a network on unequal devices, so that the whole takes the least time.

    parts = placement.split(graph)                                    # sub-models between pools and around branches
    devices = [placement.Processor("cpu"), placement.Simulated("gpu", flops=2e11, bandwidth=5e10, launch=2e-5)]
    placed = placement.place(parts, devices, method="critical_path")
    print(placed)                                                     # who computes what, when, and why
    y = placed.run(x)                                                 # over actors: a thread for each device

split.py: parts. costs.py: operations, parameters, bytes. devices.py, accelerator.py, links.py, profile.py: what a part takes
on a device, and what is sent.
problem.py: the question in numbers, and the times of an answer. methods/: answers. placed.py: one with its picture.
run.py: runs it.

Source: adaptive partition of convolutional networks over processors and accelerators, Journal of Computer Applications 43(9),
2023; HEFT: Topcuoglu, Hariri, Wu, 2002.
"""

from tedsl.errors import entries
from tedsl.graph.placement.accelerator import Accelerator
from tedsl.graph.placement.costs import Costs, costs_of
from tedsl.graph.placement.devices import Device, Processor, Simulated
from tedsl.graph.placement.methods import METHODS
from tedsl.graph.placement.place import place
from tedsl.graph.placement.placed import Placement
from tedsl.graph.placement.problem import Edge, Problem, Transfers, schedule_of
from tedsl.graph.placement.profile import Profile, profile
from tedsl.graph.placement.split import Part, Parts, split

__all__ = ["METHODS", "Accelerator", "Costs", "Device", "Edge", "Part", "Parts", "Placement", "Problem", "Processor",
           "Profile", "Simulated", "Transfers", "costs_of", "place", "profile", "schedule_of", "split"]

entries(globals())

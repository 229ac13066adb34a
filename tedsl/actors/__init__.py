"""Pipelines of actors: each acts when its inputs are there and its outputs are free, and registers hold fast ones back.

    p = actors.Pipeline("train")
    images = p.source("load", load, Spec((8, 3, 32, 32)))
    clean = p.task("prepare", prepare, [images], Spec((8, 3, 32, 32)))
    p.sink("train", train, [clean])
    print(actors.Runtime(p.plan()).run(batches=100))       # what each actor did and waited for

plan/: plans, their checks, their memory. machine/: actors without threads or time, and a virtual clock. running/: threads, and
processes of Ray.
"""

from tedsl.actors.machine.clock import Schedule, Span, simulate
from tedsl.actors.machine.kinds import Kind, register_kind
from tedsl.actors.machine.lifetimes import lifetimes, memory_over_time
from tedsl.actors.plan.description import Plan, RegisterDescription, Task
from tedsl.actors.plan.memory import MemoryPlan, memory_of, shared_chunks
from tedsl.actors.plan.pipeline import Pipeline, Stream
from tedsl.actors.plan.stalls import check_plan
from tedsl.actors.plan.text import as_json, from_json, parse
from tedsl.actors.running.ray_cluster import RayCluster
from tedsl.actors.running.report import Report
from tedsl.actors.running.runtime import Runtime
from tedsl.errors import entries
from tedsl.graph.value import Spec

__all__ = ["Kind", "MemoryPlan", "Pipeline", "Plan", "RayCluster", "RegisterDescription", "Report", "Runtime", "Schedule",
           "Span", "Spec", "Stream", "Task", "as_json", "check_plan", "from_json", "lifetimes", "memory_of",
           "memory_over_time", "parse", "register_kind", "shared_chunks", "simulate"]

entries(globals())

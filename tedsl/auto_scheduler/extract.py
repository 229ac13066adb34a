"""The tasks of a network: a program for each kernel, and how often a call of the network runs it."""

from __future__ import annotations

from typing import Any

from tedsl.auto_scheduler.dag import ComputeDAG
from tedsl.auto_scheduler.task import SearchTask
from tedsl.errors import ArgumentError, ArgumentTypeError, type_in_words
from tedsl.graph import Graph
from tedsl.graph.network.compile import kernels_in
from tedsl.lang.operation import ComputeOp
from tedsl.target.current import as_target


def extract_tasks(mod: Any, params: Any = None, target: Any = None, target_host: Any = None, hardware_params: Any = None,
                  include_simple_tasks: bool = False, dump_workload_to_dag_log: Any = None, opt_level: int = 2,
                  other_targets: Any = None) -> tuple[list[SearchTask], list[int]]:
    """The tasks of a network, those with the most operations first, and how many of the steps of a call each one does: the
    weights of a TaskScheduler.

    mod: a Graph, as `graph.trace` and `graph.from_onnx` make it. target: None is the current one. include_simple_tasks: also
    kernels without a reduction. opt_level: that of `graph.compile`, whose kernels these are: inside of
    `ApplyHistoryBest(file)` it takes what was found for them. The other parameters are TVM's and without effect: a graph has
    its weights.

    Raises ArgumentError for shapes that are not known.
    """
    if not isinstance(mod, Graph):
        raise ArgumentTypeError(f"extract_tasks: a network is a Graph, not {type_in_words(mod)}",
                                hint="graph.trace(fn, graph.Spec(...)) makes one of a function, graph.from_onnx of a model")
    chosen, found = as_target(target), {}
    for source, count in kernels_in(mod, chosen, opt_level).items():
        if source.is_symbolic:
            raise ArgumentError(f"extract_tasks: the shapes of {source.name} have variables, and schedules are measured for "
                                "known shapes", hint="trace the function, or load the model, with the extents that occur most")
        inputs, outputs = source.tensors
        dag = ComputeDAG([*inputs, *outputs])
        if include_simple_tasks or any(isinstance(op, ComputeOp) and op.reduce_axis for op in dag.ops):
            found[SearchTask(compute_dag=dag, target=chosen, hardware_params=hardware_params, desc=source.name)] = count
    tasks = sorted(found, key=lambda task: task.compute_dag.flop_ct * found[task], reverse=True)
    return tasks, [found[task] for task in tasks]

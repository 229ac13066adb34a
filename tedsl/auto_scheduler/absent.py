"""Of TVM's auto_scheduler, what tedsl does not have: asking for it raises an error that says what to use instead."""

from __future__ import annotations

_HERE = "schedules run in processes of this machine, auto_scheduler.LocalRunner, or on a cluster, auto_scheduler.RayRunner"
_TASKS = "auto_scheduler.extract_tasks(graph) gives the tasks of a network, among which TaskScheduler shares trials out"
_SEEDED = "inputs are seeded numbers; where a program needs others, give them to tune.Checker(args, inputs=[...])"
_RULES = "sketches are those of tedsl.auto_scheduler; autotvm.template is for loops that a program writes itself"
_LAYOUTS = "arguments keep their layout: where operands are packed is a decision of the schedule"
_APPLIED = "topi's schedules are those of a file of records inside of auto_scheduler.ApplyHistoryBest(path)"
_LEARNT = "a search learns from features of its own: auto_scheduler.XGBModel().update_from_file(path)"
_MEASURED = "task.tune(TuningOptions(...)) measures; tune.Measurer(target).measure(candidates) does so without a search"
NAMES = {"RPCRunner": _HERE, "ProgramBuilder": "auto_scheduler.LocalBuilder", "ProgramRunner": _HERE,
         "is_auto_scheduler_enabled": _TASKS, "register_task_input_buffer": _SEEDED, "get_task_input_buffer": _SEEDED,
         "register_task_input_check_func": _SEEDED, "PreloadCustomSketchRule": _RULES,
         "EmptyPolicy": "SearchTask.compute_dag.get_init_state() is the schedule without directives",
         "rewrite_tensor_shape": _LAYOUTS, "rewrite_compute_body": _LAYOUTS, "get_shape_from_rewritten_layout": _LAYOUTS,
         "DispatchContext": _APPLIED, "ApplyHistoryBestOrSample": _APPLIED, "ProgramMeasurer": _MEASURED,
         "local_builder_build": _HERE, "local_run": _HERE, "prepare_input_map": _SEEDED,
         "MeasureCallback": "derive from PythonBasedMeasureCallback, or give TuningOptions a function of a Trial",
         "get_per_store_features_from_file": _LEARNT, "get_per_store_features_from_states": _LEARNT,
         "get_per_store_features_from_measure_pairs": _LEARNT, "CostModel": _LEARNT, "PythonBasedModel": _LEARNT,
         "remove_index_check": "indices are proved when a schedule becomes loops"}

"""Of TVM's auto_scheduler, what tedsl does not have: asking for it raises an error that says what to use instead."""

from __future__ import annotations

_HERE = "schedules run in processes of this machine, auto_scheduler.LocalRunner, or on a cluster, auto_scheduler.RayRunner"
_TASKS = "auto_scheduler.extract_tasks(graph) gives the tasks of a network, among which TaskScheduler shares trials out"
_SEEDED = "inputs are seeded numbers; where a program needs others, give them to tune.Checker(args, inputs=[...])"
_RULES = "sketches are those of tedsl.auto_scheduler; autotvm.template is for loops that a program writes itself"
NAMES = {"RPCRunner": _HERE, "ProgramBuilder": "auto_scheduler.LocalBuilder", "ProgramRunner": _HERE,
         "is_auto_scheduler_enabled": _TASKS, "register_task_input_buffer": _SEEDED, "get_task_input_buffer": _SEEDED,
         "register_task_input_check_func": _SEEDED, "PreloadCustomSketchRule": _RULES,
         "EmptyPolicy": "SearchTask.compute_dag.get_init_state() is the schedule without directives",
         "rewrite_tensor_shape": "weights keep their layout: where they are packed is a decision of the schedule",
         "remove_index_check": "indices are proved when a schedule becomes loops"}

"""Of TVM's autotvm, what tedsl does not have, with what to use instead: see `tedsl/absent.py`."""

from __future__ import annotations

_LAYOUTS = "layouts of a network are chosen by a model of their time: graph.passes has layouts"
_RECORDS = "tedsl ships no records: without one, topi's rules and a model of the machine choose"
_TASKS = "write a task for each operator, autotvm.task.create(\"conv2d_NCHWc.x86\", args, target), or give the program to " \
         "tedsl.tune(function, args=...), which needs no template; auto_scheduler.extract_tasks(graph) gives those of a network"
NAMES = {"graph_tuner": _LAYOUTS, "tophub": _RECORDS,
         "ApplyGraphBest": _LAYOUTS, "apply_graph_best": _LAYOUTS, "DPTuner": _LAYOUTS, "PBQPTuner": _LAYOUTS,
         "ApplyFixedConfig": "autotvm.ApplyConfig(config) holds for every template inside of its block",
         "feature": "models of cost learn from the knobs: config.get_flatten_feature()",
         "database": "autotvm.callback.log_to_file(path) writes records, autotvm.record.load_from_file(path) reads them"}
OF_TASKS = {"extract_from_program": _TASKS, "extract_from_multiple_program": _TASKS, "TaskExtractEnv": _TASKS,
            "ApplyGraphBest": _LAYOUTS}
_HERE = "configurations run in processes of this machine, autotvm.LocalRunner, or on a cluster of Ray, autotvm.RayRunner"
OF_MEASURE = {"LocalExecutor": _HERE, "request_remote": _HERE, "check_remote": _HERE, "Builder": "autotvm.LocalBuilder",
              "Runner": "autotvm.LocalRunner, or autotvm.RayRunner"}

"""Of TVM's autotvm, what tedsl does not have, with what to use instead: see `tedsl/absent.py`."""

from __future__ import annotations

_LAYOUTS = "layouts of a network are chosen by a model of their time: graph.passes has layouts"
_RECORDS = "tedsl ships no records: without one, topi's rules and a model of the machine choose"
_TASKS = "write a task for each operator, autotvm.task.create(\"conv2d_NCHWc.x86\", args, target), or give the program to " \
         "tedsl.tune(function, args=...), which needs no template; auto_scheduler.extract_tasks(graph) gives those of a network"
_FIXED = "autotvm.ApplyConfig(config) holds for every template inside of its block"
NAMES = {"graph_tuner": _LAYOUTS, "tophub": _RECORDS,
         "ApplyGraphBest": _LAYOUTS, "apply_graph_best": _LAYOUTS, "DPTuner": _LAYOUTS, "PBQPTuner": _LAYOUTS,
         "ApplyFixedConfig": _FIXED, "apply_fixed_config": _FIXED,
         "feature": "models of cost learn from the knobs: config.get_flatten_feature()",
         "database": "autotvm.callback.log_to_file(path) writes records, autotvm.record.load_from_file(path) reads them"}
OF_TASKS = {"extract_from_program": _TASKS, "extract_from_multiple_program": _TASKS, "TaskExtractEnv": _TASKS,
            "ApplyGraphBest": _LAYOUTS, "ApplyFixedConfig": _FIXED}
OF_DISPATCHER = {"ApplyGraphBest": _LAYOUTS, "ApplyFixedConfig": _FIXED}
OF_TASK = {"TaskTemplate": "a template is the function itself: autotvm.task.task.TASK_TABLE[name]",
           "MissingTask": "autotvm.task.create raises an ArgumentError for a name that no template has"}
_CHOICES = "the choices of a knob are a list of entities: config_space.space_map[name], whose length is config_space.dims[at]"
OF_SPACE = {"SplitSpace": _CHOICES, "ReorderSpace": _CHOICES, "AnnotateSpace": _CHOICES, "OtherOptionSpace": _CHOICES,
            "TransformSpace": _CHOICES, "Axis": "cfg.axis(extent) is a loop by its number of iterations"}
_HERE = "configurations run in processes of this machine, autotvm.LocalRunner, or on a cluster of Ray, autotvm.RayRunner"
OF_MEASURE = {"LocalExecutor": _HERE, "request_remote": _HERE, "check_remote": _HERE, "Builder": "autotvm.LocalBuilder",
              "Runner": "autotvm.LocalRunner, or autotvm.RayRunner",
              "default_module_loader": "kernels run in the processes that load them: leave module_loader out",
              "set_cuda_target_arch": "the target says it: tedsl.target.Target(\"cuda -arch=sm_80\")"}
_MODEL = "a model is an object with fit(features, rates) and predict(features): ModelBasedTuner(task, plan_size, model)"
OF_TUNER = {"DPTuner": _LAYOUTS, "PBQPTuner": _LAYOUTS, "CostModel": _MODEL, "XGBoostCostModel": _MODEL,
            "FeatureCache": "config.get_flatten_feature() has the features of a point, which cost nothing",
            "ModelOptimizer": "ModelBasedTuner walks over the space by itself",
            "SimulatedAnnealingOptimizer": "ModelBasedTuner walks over the space by itself"}
OF_UTILS = {"pool_map": "concurrent.futures.ProcessPoolExecutor().map(function, arguments, chunksize=batch_size)"}

"""A scheduler that needs no template, by TVM's names.

    @auto_scheduler.register_workload
    def matmul(N, L, M, dtype):
        ...
        return [A, B, C]

    task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512, "float32"), target="llvm")
    task.tune(auto_scheduler.TuningOptions(num_measure_trials=200,
                                           measure_callbacks=[auto_scheduler.RecordToFile("matmul.json")]))
    s, args = task.apply_best("matmul.json")

sketch/ writes schedules by decisions, cost/ says what they may take, search/ breeds and measures them (by `tedsl.tune`).
`workload.py` names programs, `dag.py` prints them, `task.py` and `policy.py` are the search as programs call it, `options.py`
says how it measures, `record.py` its files.
"""

from tedsl.auto_scheduler.dag import ComputeDAG, State
from tedsl.auto_scheduler.options import LocalBuilder, LocalRPCMeasureContext, LocalRunner, RayRunner
from tedsl.auto_scheduler.policy import (
    PreloadMeasuredStates,
    RandomModel,
    SketchPolicy,
    XGBModel,
    auto_schedule,
    create_task,
)
from tedsl.auto_scheduler.record import MeasureInput, MeasureResult, RecordToFile, load_best_record, load_records
from tedsl.auto_scheduler.search.search import Trial
from tedsl.auto_scheduler.task import SearchTask, TuningOptions, search
from tedsl.auto_scheduler.workload import make_workload_key, register_workload, workload_key_to_tensors
from tedsl.errors import entries

__all__ = ["ComputeDAG", "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "MeasureInput", "MeasureResult",
           "PreloadMeasuredStates", "RandomModel", "RayRunner", "RecordToFile", "SearchTask", "SketchPolicy", "State",
           "Trial", "TuningOptions", "XGBModel", "auto_schedule", "create_task", "load_best_record", "load_records",
           "make_workload_key", "register_workload", "search", "workload_key_to_tensors"]

entries(globals())

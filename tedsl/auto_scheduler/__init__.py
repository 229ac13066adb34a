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
says how it measures, `callbacks.py` whom it tells, `record.py` its files, tvm_log/ those of TVM, `scheduler.py` shares trials
out among several tasks, `extract.py` makes tasks of a network; `absent.py` says of TVM's names that are not here what to use
instead.
"""

from tedsl.aliases import import_as
from tedsl.auto_scheduler.absent import NAMES
from tedsl.auto_scheduler.callbacks import (
    LogEstimatedLatency,
    PrintTableInfo,
    PythonBasedMeasureCallback,
    TaskSchedulerCallback,
)
from tedsl.auto_scheduler.dag import ComputeDAG, State
from tedsl.auto_scheduler.extract import extract_tasks
from tedsl.auto_scheduler.options import (
    HardwareParams,
    LayoutRewriteOption,
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    RayRunner,
)
from tedsl.auto_scheduler.policy import (
    PreloadMeasuredStates,
    RandomModel,
    SketchPolicy,
    XGBModel,
    auto_schedule,
    create_task,
)
from tedsl.auto_scheduler.record import (
    ApplyHistoryBest,
    MeasureInput,
    MeasureResult,
    RecordReader,
    RecordToFile,
    load_best_record,
    load_records,
    save_records,
)
from tedsl.auto_scheduler.scheduler import TaskScheduler
from tedsl.auto_scheduler.search.search import Trial
from tedsl.auto_scheduler.task import SearchTask, TuningOptions, search
from tedsl.auto_scheduler.workload import (
    make_workload_key,
    register_workload,
    register_workload_tensors,
    workload_key_to_tensors,
)
from tedsl.autotvm.measure import MeasureErrorNo
from tedsl.errors import entries

load_best = load_best_record  # its name in TVM 0.7

__all__ = ["ApplyHistoryBest", "ComputeDAG", "HardwareParams", "LayoutRewriteOption", "LocalBuilder", "LocalRPCMeasureContext",
           "LocalRunner", "LogEstimatedLatency", "MeasureErrorNo", "MeasureInput", "MeasureResult", "PreloadMeasuredStates",
           "PrintTableInfo", "PythonBasedMeasureCallback", "RandomModel", "RayRunner", "RecordReader", "RecordToFile",
           "SearchTask", "SketchPolicy", "State", "TaskScheduler", "TaskSchedulerCallback", "Trial", "TuningOptions",
           "XGBModel", "auto_schedule", "create_task", "extract_tasks", "load_best", "load_best_record", "load_records",
           "make_workload_key", "register_workload", "register_workload_tensors", "save_records", "search",
           "workload_key_to_tensors"]

entries(globals(), absent=NAMES, later={"get_const_int": "topi.utils:get_const_int",
                                        "get_const_tuple": "topi.utils:get_const_tuple"})
import_as(globals(), "auto_schedule", "compute_dag", "cost_model", "cost_model.cost_model", "cost_model.xgb_model",
          "dispatcher", "feature", "loop_state", "measure", "measure_record", "relay_integration", "search_policy",
          "search_task", "task_scheduler", "utils", "workload_registry")

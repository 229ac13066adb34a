"""Templates with knobs, and searches over them, by TVM's names.

    @autotvm.template("matmul")
    def matmul(N, L, M, dtype):
        ...
        cfg = autotvm.get_config()
        cfg.define_split("tile_y", y, num_outputs=2)
        yo, yi = cfg["tile_y"].apply(s, C, y)
        return s, [A, B, C]

    task = autotvm.task.create("matmul", args=(512, 512, 512, "float32"), target="llvm")
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(n_trial=20, measure_option=autotvm.measure_option(builder="local", runner="local"),
               callbacks=[autotvm.callback.log_to_file("matmul.log")])
    with autotvm.apply_history_best("matmul.log"), tedsl.target.Target("llvm"):
        s, args = matmul(512, 512, 512, "float32")

task/ has templates, spaces and contexts, measure/ builds and runs (by `tedsl.tune`), tuner/ searches; `record.py` is the format
of files, `history.py` the context that uses them, `callback.py` what is called after each batch,
operators/ the templates of topi's operators, `env.py` what holds for all tasks, `utils.py` what programs of TVM ask for;
`absent.py` says of what is not here what to use instead.
"""

from tedsl.autotvm import callback, env, measure, operators, record, task, tuner, utils
from tedsl.autotvm.absent import NAMES
from tedsl.autotvm.env import GLOBAL_SCOPE
from tedsl.autotvm.history import ApplyHistoryBest, apply_history_best
from tedsl.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RayRunner,
    RPCRunner,
    measure_option,
)
from tedsl.autotvm.task import (
    ApplyConfig,
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackConfigEntity,
    FallbackContext,
    Task,
    create,
    get_config,
    operator,
    register_customized_task,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from tedsl.errors import entries

__all__ = ["ApplyConfig", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext", "FallbackConfigEntity",
           "FallbackContext", "GLOBAL_SCOPE", "LocalBuilder", "LocalRunner", "MeasureErrorNo", "MeasureInput", "MeasureResult",
           "RPCRunner", "RayRunner", "Task", "apply_history_best", "callback", "create", "env", "get_config", "measure",
           "measure_option", "operator", "operators", "record", "register_customized_task", "register_topi_compute",
           "register_topi_schedule", "task", "template", "tuner", "utils"]

entries(globals(), absent=NAMES, later={"util": "tedsl.autotvm.utils"})

"""Tuning tasks: a template, its arguments, and the space of its configurations.

`space.py` has spaces and their points, `entities.py` what a point says of one knob, `policies.py` the choices of each knob,
`fallback.py` the point that is taken without a record, `dispatcher.py` which point a template gets, `task.py` the task itself,
`templates.py` the decorators that make templates of functions.
"""

from tedsl.aliases import import_as
from tedsl.autotvm.absent import OF_TASKS
from tedsl.autotvm.task import dispatcher, space
from tedsl.autotvm.task.dispatcher import ApplyConfig, DispatchContext, FallbackContext, clear_fallback_cache
from tedsl.autotvm.task.entities import AnnotateEntity, OtherOptionEntity, ReorderEntity, SplitEntity
from tedsl.autotvm.task.fallback import FallbackConfigEntity
from tedsl.autotvm.task.space import ConfigEntity, ConfigSpace
from tedsl.autotvm.task.task import Task, args_to_workload, compute_flop, create, deserialize_args, serialize_args
from tedsl.autotvm.task.templates import (
           get_config,
           get_workload,
           operator,
           register_customized_task,
           register_topi_compute,
           register_topi_schedule,
           template,
)
from tedsl.errors import entries

__all__ = ["AnnotateEntity", "ApplyConfig", "ConfigEntity", "ConfigSpace", "DispatchContext",
           "FallbackConfigEntity", "FallbackContext", "OtherOptionEntity", "ReorderEntity", "SplitEntity", "Task",
           "args_to_workload", "clear_fallback_cache", "compute_flop", "create", "deserialize_args", "dispatcher", "get_config",
           "get_workload", "operator", "register_customized_task", "register_topi_compute", "register_topi_schedule",
           "serialize_args", "space", "template"]

entries(globals(), absent=OF_TASKS, later={"ApplyHistoryBest": "tedsl.autotvm.history:ApplyHistoryBest"})
import_as(globals(), "code_hash", "relay_integration", "topi_integration")

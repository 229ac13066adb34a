"""The names of TVM's te.schedule: the classes of schedules, and the steps of lowering."""

from typing import TYPE_CHECKING

from tedsl.errors import entries
from tedsl.ir.buffer import Buffer
from tedsl.ir.iters import IterVar, Range
from tedsl.lang.graph import post_order as PostDFSOrder
from tedsl.lang.graph import read_graph as CreateReadGraph
from tedsl.lang.scan.fix_point import fix_points as ScanFixPointAnalysis
from tedsl.lang.scan.operation import body_of as ScanGetBody
from tedsl.schedule.attach import paths_of as CreateAttachPath
from tedsl.schedule.handles import Schedule, create_schedule
from tedsl.schedule.primitives.places.auto_inline import auto_inline_broadcast as AutoInlineBroadcast
from tedsl.schedule.primitives.places.auto_inline import auto_inline_elementwise as AutoInlineElemWise
from tedsl.schedule.primitives.places.auto_inline import auto_inline_injective as AutoInlineInjective
from tedsl.schedule.relations import Fuse, Rebase, Singleton, Split
from tedsl.schedule.stage import Stage
from tedsl.schedule.state import AttachType, IterVarAttr

if TYPE_CHECKING:
    from tedsl.lower.regions.bound_map import as_prim_func as SchedulePostProcToPrimFunc
    from tedsl.lower.regions.bound_map import infer_bound as InferBound
    from tedsl.lower.regions.bound_map import schedule_ops as ScheduleOps

DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

__all__ = [
    "AttachType", "AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer", "CommReduce",
    "CreateAttachPath", "CreateReadGraph", "DataPar", "DimInfo", "Fuse", "InferBound", "IterVar", "IterVarAttr",
    "Ordered", "Parallelized", "PostDFSOrder", "Range", "Rebase", "ScanFixPointAnalysis", "ScanGetBody", "Schedule",
    "ScheduleOps", "SchedulePostProcToPrimFunc", "Singleton", "Split", "Stage", "Tensorized", "ThreadIndex", "Unrolled",
    "Vectorized", "create_schedule",
]

_STEPS = {"InferBound": "infer_bound", "ScheduleOps": "schedule_ops", "SchedulePostProcToPrimFunc": "as_prim_func"}
entries(globals(), later={name: f"tedsl.lower.regions.bound_map:{own}" for name, own in _STEPS.items()},
        absent={"SpecializedCondition": "s[C].specialize(n % 8 == 0) gives a stage a version of its loops for calls in which a "
                                        "condition holds; the context has no effect on schedules in TVM"})

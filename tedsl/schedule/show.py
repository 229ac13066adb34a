"""A schedule as text: its stages, producers first, with the loops of each, outermost first."""

from __future__ import annotations

from collections.abc import Mapping

from tedsl.arith.analyzer import Analyzer
from tedsl.ir import build
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import FrozenDict
from tedsl.ir.script import script, shown
from tedsl.lang.operation import extent_of
from tedsl.schedule.domains import Fitted, counted_by_threads, root_extents, tile_down
from tedsl.schedule.scan.stages import scans_of
from tedsl.schedule.state import AttachType, ScheduleState, StageState

Ranges = Mapping[IterVar, Range]  # of loops, as lowering infers them
_UNKNOWN: Ranges = FrozenDict({})


def schedule_text(schedule: ScheduleState, ranges: Ranges = _UNKNOWN) -> str:
    """The text of all stages, as `print(s)` shows it. ranges: of the loops for which they are known."""
    head = f"schedule of {', '.join(op.name for op in schedule.outputs)}"
    return "\n".join([head, *(f"  {line}" for stage in schedule.stages for line in stage_text(stage, ranges).splitlines())])


def stage_text(stage: StageState, ranges: Ranges = _UNKNOWN) -> str:
    """The text of one stage: a line that says where it is computed, then a line per loop."""
    lines = [f"{stage.name}: {place_text(stage)}"]
    if stage.attach_type in (AttachType.INLINE, AttachType.INLINED):
        return lines[0]
    lines += _loops(stage, ranges)
    for version in stage.versions:
        lines += [f"where {shown(version.condition)}:", *_loops(version, ranges)]
    return "\n".join(lines)


def _loops(stage: StageState, ranges: Ranges) -> list[str]:
    lines = []
    roots, analyzer = _known_extents(stage), _knowing_sizes(stage.schedule)
    with analyzer.constraint_scope(build.true() if stage.condition is None else stage.condition):
        extents = tile_down(stage.relations, roots, Fitted(analyzer, counted_by_threads(stage))).extents
    limits = tile_down(stage.relations, roots).extents
    for depth, loop in enumerate(stage.leaf_iter_vars, 1):
        extent = ranges[loop].extent if loop in ranges else extents.get(loop)
        lines.append("  " * depth + loop_text(stage, loop, extent, limits.get(loop)))
        guests = [guest.name for guest in stage.guests() if guest.attach_ivar is loop]
        lines += ["  " * (depth + 1) + f"({guest} is computed here)" for guest in guests]
    return lines


def _known_extents(stage: StageState) -> dict[IterVar, Expr]:
    """The known extents of the axes. For an attached stage only those of reduction axes, since lowering infers its region."""
    attached = stage.attach_type == AttachType.SCOPE or stage in scans_of(stage.schedule).steps
    threads = {thread: extent_of(thread) for thread in stage.env_threads}
    return {**{axis: n for axis, n in root_extents(stage).items() if axis.is_reduction or not attached}, **threads}


def _knowing_sizes(schedule: ScheduleState) -> Analyzer:
    """An analyzer that knows, like lowering's, that the dimensions of arguments are not negative."""
    analyzer = Analyzer()
    arguments = [stage.op for stage in schedule.stages if stage.is_placeholder or stage.is_output]
    analyzer.bind_sizes([dim for op in arguments for at in range(op.num_outputs) for dim in op.shape_of(at)], at_least=0)
    return analyzer


def place_text(stage: StageState) -> str:
    if stage.is_placeholder:
        shape, scan = ", ".join(map(repr, stage.op.shape_of(0))), stage.scan_of_state
        what = "placeholder" if scan is None else f"state of {scan.name}"
        return f"{what} [{shape}] {stage.op.dtype_of(0)}"
    words = ["output" if stage.is_output else {AttachType.ROOT: "computed at the root", AttachType.INLINE: "computed inline",
                                               AttachType.INLINED: "inlined"}.get(stage.attach_type, "")]
    if stage.attach_type == AttachType.SCOPE:
        assert stage.attach_stage is not None and stage.attach_ivar is not None
        words[0] = f"computed at {stage.attach_stage.name}, loop {stage.attach_ivar.name}"
    elif stage.attach_type == AttachType.ROOT and (scan := scans_of(stage.schedule).steps.get(stage)) is not None:
        words[0] = f"computed in each step of {scan.name}"
    if stage.scope:
        words.append(f"in {stage.scope} memory")
    if stage.statements is not None:
        words.append("by its statements for threads")
    if stage.nontemporal:
        words.append("stored past the cache")
    words += stage.storage.describe(tuple([axis.name for axis in getattr(stage.op, "axis", ())]))
    return ", ".join(words)


def loop_text(stage: StageState, loop: IterVar, extent: object, limit: object = None) -> str:
    """The text of a loop with its extent, or with its largest possible extent where only lowering knows it, and its
    annotations.
    """
    shown = limit if extent is None else extent
    bound = "" if shown is None else f" in 0..{script(shown) if isinstance(shown, Expr) else shown}"
    bound += " at most" if extent is None and limit is not None else ""
    notes = ["reduction"] if loop.is_reduction else []
    said = stage.annotation_of(loop)
    notes += [said] if said else []
    attr = stage.attr_of(loop)
    for key, value in zip(attr.pragma_keys, attr.pragma_values):
        notes.append(f"pragma {key.value}" + ("" if value is None else f" {value!r}"))
    notes += [prefetched.describe() for prefetched in attr.prefetched]
    notes += ["skipping zeros"] if attr.skips_zeros else []
    return f"for {loop.name}{bound}" + (f" ({', '.join(notes)})" if notes else "")

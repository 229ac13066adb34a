"""Translates the arguments of a directive to the language of journals."""

from __future__ import annotations

from typing import Any

from tedsl.ir.dtype import INT32
from tedsl.ir.expr import Expr, IntImm, StringImm, Var
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.operators import LazyEqual
from tedsl.ir.walk.visitor import variables
from tedsl.lang.operation import Operation, thread_axis_of
from tedsl.lang.tensor import Tensor
from tedsl.schedule.given_numbers import whole_number
from tedsl.schedule.memory_options import AXIS_SEPARATOR
from tedsl.schedule.primitives.storage.transform_layout import Mapped
from tedsl.schedule.record.formula import formula
from tedsl.schedule.record.names import free_name
from tedsl.schedule.record.term import Apply, Defined, Function, Name, Series, Term, field, is_sound, names_used
from tedsl.schedule.state import ScheduleState, StageState


class Writer:
    """Translates the arguments of one directive, one after the other.

    near: the stages whose axes they may be, the likeliest first; a stage or tensor among the arguments goes before these.
    """

    def __init__(self, schedule: ScheduleState, directive: str, near: list[StageState]) -> None:
        self.schedule, self.directive, self.near = schedule, directive, near
        self.recorder = schedule.recorder
        self.defined: set[IterVar] = set()  # thread axes that this directive makes

    def term(self, value: Any) -> Term:
        """`value` in the language of journals; a name under which it is kept if the language cannot express it."""
        if isinstance(value, (bool, str)) or value is None:
            return str.__str__(value) if isinstance(value, str) else value
        if isinstance(value, float):
            return float(value) if is_sound(value) else self.object(value)
        number = None if isinstance(value, IntImm) and value.dtype is not INT32 else whole_number(value)
        if number is not None:
            return number if is_sound(number) else self.object(value)
        if type(value) in (list, tuple):
            return Series(tuple([self.term(one) for one in value]), isinstance(value, list))
        state = getattr(value, "state", None)
        if isinstance(state, StageState) and state.schedule is self.schedule:
            self.near.insert(0, state)
            return self.recorder.stage(state, f"{self.directive}(...)")
        if isinstance(value, StringImm):
            return value.value
        if isinstance(value, (Tensor, Operation)):
            return self._computed(value)
        if isinstance(value, IterVar):
            return self._axis(value)
        if isinstance(value, Mapped):
            return self._function(value)
        expr = value.asobject() if isinstance(value, LazyEqual) else value
        said = self._formula(expr) if isinstance(expr, Expr) else None
        return said if said is not None else self.object(value)

    def _computed(self, value: Tensor | Operation) -> Term:
        """The term for a tensor or operation that a stage computes."""
        stage = self.schedule.stage_map.get(value.op if isinstance(value, Tensor) else value)
        if stage is None:
            return self.object(value)
        self.near.insert(0, stage)
        return self.recorder.tensor(value, stage) if isinstance(value, Tensor) else self.recorder.operation(stage)

    def _axis(self, axis: IterVar) -> Term:
        """The term for a loop that a directive created, an axis of a stage, or a thread axis."""
        if axis in self.recorder.names:
            return Name(self.recorder.names[axis])
        for stage in (*self.near, *self.schedule.stages):
            op = field(self.recorder.handle(stage), "op")
            for kind in ("axis", "reduce_axis"):
                for at, one in enumerate(getattr(stage.op, kind, ())):
                    if one is axis:
                        return field(op, kind, at)
            if getattr(stage.op, "scan_axis", None) is axis:
                return field(op, "scan_axis")
        return self._thread_axis(axis)

    def _thread_axis(self, axis: IterVar) -> Term:
        """The term for a thread axis: its definition at the first use, a name afterwards.

        An axis whose variable occurs in a kept object is kept itself, since a new axis would have another variable.
        """
        if not axis.thread_tag or self._in_objects(axis.var):
            return self.object(axis)
        if axis in self.defined:
            return Name(self.recorder.pending[axis][0])
        parts: list[Term] = [axis.thread_tag]
        if axis.dom is not None and axis.dom.extent is not None:
            parts.insert(0, self._range(axis.dom))
        op = "thread, range" if len(parts) > 1 else "thread"
        if axis.name != axis.thread_tag:
            op, parts = f"{op}, name", [*parts, axis.name]
        if axis not in self.recorder.pending:
            self.recorder.pending[axis] = self._free_name(axis.name), None
        self.defined.add(axis)
        return Defined(self.recorder.pending[axis][0], Apply(op, tuple(parts)))

    def _range(self, dom: Range) -> Term:
        return self.term((dom.min, dom.min + dom.extent))

    def _in_objects(self, var: Var) -> bool:
        return any(var in variables(kept) for kept in self.recorder.objects.values() if isinstance(kept, Expr))

    def _formula(self, expr: Expr) -> Term:
        """The term for `expr`; None where the language cannot express it.

        A thread axis without a name is defined at the first use of its variable, so that the directive that binds it uses the
        same axis.
        """
        pending, defined = dict(self.recorder.pending), set(self.defined)

        def variable(var: Var) -> Term:
            axis = thread_axis_of(var)
            if axis is None or axis in self.recorder.names or self._in_objects(var):
                return self._variable(var)
            return field(self._thread_axis(axis), "var")

        said = formula(expr, variable)
        if said is None:
            self.recorder.pending, self.defined = pending, defined
        return said

    def _variable(self, var: Var) -> Term:
        """The term for a variable: that of the axis it belongs to, else a name under which it is kept."""
        for axis, name in self.recorder.names.items():
            if isinstance(axis, IterVar) and axis.var is var:
                return field(Name(name), "var")
        return self.object(var)

    def _function(self, mapped: Mapped) -> Term:
        """The term for the function that a layout was given as; a name for it if its formulas cannot be expressed."""
        used = [var for final in mapped.finals if isinstance(final, Expr) for var in variables(final)]
        others = {var: self._variable(var) for var in used if var not in mapped.axes}
        taken = {name for term in others.values() for name in names_used(term)}
        parameters: dict[Var, Term] = {}
        names: list[str] = []
        for axis in mapped.axes:  # none hides a name of the journal
            names.append(free_name(axis.name, {*names, *taken}))
            parameters[axis] = Name(names[-1])
        known = {**others, **parameters}
        finals = [Apply("te.AXIS_SEPARATOR", ()) if one is AXIS_SEPARATOR else formula(one, known.__getitem__)
                  for one in mapped.finals]
        return self.object(mapped.function) if None in finals else Function(tuple(names), Series(tuple(finals)))

    def object(self, value: Any) -> Term:
        """A name under which the journal keeps `value`, which its language cannot express."""
        key = value if _is_hashable(value) else id(value)
        if key in self.recorder.names:
            return Name(self.recorder.names[key])
        if key not in self.recorder.pending:
            wish = getattr(value, "name", None) or getattr(value, "__name__", None) or type(value).__name__
            self.recorder.pending[key] = self._free_name(str(wish)), value
        return Name(self.recorder.pending[key][0])

    def _free_name(self, wish: str) -> str:
        return self.recorder.free_name(wish, self.schedule)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

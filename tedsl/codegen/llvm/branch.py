"""Emits `if_then_else` and other values that are computed only under a condition.

Each is emitted in three steps, so that a walk with an explicit stack can emit the operands in between.
"""

from __future__ import annotations

from tedsl.codegen.llvm.emitter import Emitter, Mask
from tedsl.codegen.llvm.indices.vectors import splat_register
from tedsl.codegen.llvm.types import int_splat, register_type
from tedsl.ir.expr import Call, Load
from tedsl.ir.walk.certain import Certain


class Branch:
    """An `if_then_else` with a scalar condition: two blocks and a phi."""

    def __init__(self, out: Emitter, e: Call) -> None:
        self.out, self.e = out, e

    def start(self) -> None:
        out = self.out
        condition = out.value(self.e.args[0])
        compute_before(out, self.e)
        self.labels = [out.fresh(name) for name in ("then", "else", "join")]
        self.marks = out.mark()
        out.line(f"br i1 {condition}, label %{self.labels[0]}, label %{self.labels[1]}")
        out.open_region()
        out.start_block(self.labels[0])

    def otherwise(self) -> None:
        out = self.out
        self.then_value, self.then_block = out.value(self.e.args[1]), out.block
        out.line(f"br label %{self.labels[2]}")
        out.next_side(self.marks)
        out.start_block(self.labels[1])

    def finish(self) -> str:
        out = self.out
        value, block = out.value(self.e.args[2]), out.block
        out.line(f"br label %{self.labels[2]}")
        out.close_region(self.marks)
        out.start_block(self.labels[2])
        return out.assign(f"phi {register_type(self.e.dtype)} [ {self.then_value}, %{self.then_block} ], [ {value}, %{block} ]")


class Masked:
    """An `if_then_else` with a condition per lane: both sides are computed, their loads masked to the lanes that need them."""

    def __init__(self, out: Emitter, e: Call) -> None:
        self.out, self.e = out, e

    def start(self) -> None:
        out = self.out
        self.condition = out.value(self.e.args[0])
        compute_before(out, self.e)
        self.outer = out.mask
        self.marks = out.known_values()
        self._enter(self.condition)

    def _enter(self, condition: str) -> None:
        out, t = self.out, register_type(self.e.args[0].dtype)
        lanes_on = condition if self.outer is None else out.assign(f"and {t} {self.outer.register}, {condition}")
        out.mask = Mask(lanes_on, self.e.args[0].dtype.lanes)

    def otherwise(self) -> None:
        out, d = self.out, self.e.args[0].dtype
        self.then_value = out.value(self.e.args[1])
        out.forget(self.marks)  # what is loaded under a mask is of no use outside
        self._enter(out.assign(f"xor {register_type(d)} {self.condition}, {int_splat(1, 1, d.lanes)}"))

    def finish(self) -> str:
        out, t = self.out, register_type(self.e.dtype)
        value = out.value(self.e.args[2])
        out.mask = self.outer
        out.forget(self.marks)
        return out.assign(f"select {register_type(self.e.args[0].dtype)} {self.condition}, {t} {self.then_value}, {t} {value}")


def steps_of(out: Emitter, e: Call) -> Branch | Masked:
    return Masked(out, e) if e.args[0].dtype.lanes > 1 else Branch(out, e)


def compute_before(out: Emitter, e: Call) -> None:
    """Computes, before the branch, the values that both sides of `e` need, so that each side reuses them."""
    for shared in before(out, e):
        out.value(shared)


def before(out: Emitter, e: Call) -> list[Call]:
    """Returns the if_then_else calls that are emitted as branches and that both sides of `e` evaluate in any case."""
    if out.certain is None:
        out.certain = Certain(lambda choice: not is_cheap(choice))
    return out.certain.in_both(e.args[1], e.args[2])


def is_cheap(e: Call) -> bool:
    """Tells whether both sides are small enough, and free of memory accesses, that computing both costs less than a branch."""
    count, stack = 0, list(e.args[1:])
    while stack:
        node = stack.pop()
        count += 1
        if count > 16 or isinstance(node, (Load, Call)):
            return False
        stack.extend(node.child_nodes())  # type: ignore[arg-type]
    return True


def emit_if_then_else(out: Emitter, e: Call) -> str:
    if is_cheap(e):
        t = register_type(e.dtype)
        condition, a, b = (out.value(x) for x in e.args)
        return out.assign(f"select {register_type(e.args[0].dtype)} {condition}, {t} {a}, {t} {b}")
    steps = steps_of(out, e)
    steps.start()
    out.value(e.args[1])
    steps.otherwise()
    return steps.finish()


def guarded(out: Emitter, condition: str, type_: str, otherwise: str, emit: str) -> str:
    """Emits a branch that runs the instruction `emit` if the i1 `condition` holds; returns its value, or the constant
    `otherwise`.
    """
    then, join = out.fresh("then"), out.fresh("join")
    before = out.block
    out.line(f"br i1 {condition}, label %{then}, label %{join}")
    out.start_block(then)
    value = out.assign(emit)
    out.line(f"br label %{join}")
    out.start_block(join)
    return out.assign(f"phi {type_} [ {value}, %{then} ], [ {otherwise}, %{before} ]")


def any_lane(out: Emitter, mask: str, lanes: int) -> str:
    """Emits an i1 that tells whether any lane of `mask` is on."""
    name = f"llvm.vector.reduce.or.v{lanes}i1"
    symbol = out.module.declare(name, f"declare i1 @{name}(<{lanes} x i1>)")
    return out.assign(f"call i1 {symbol}(<{lanes} x i1> {mask})")


def mask_for(out: Emitter, lanes: int) -> str | None:
    """Returns the mask of the enclosing `if_then_else` for an access of `lanes` lanes; None outside of one."""
    mask = out.mask
    if mask is None:
        return None
    if mask.lanes == lanes:
        return mask.register
    some = any_lane(out, mask.register, mask.lanes)
    return some if lanes == 1 else splat_register(out, some, "i1", lanes, out.level)

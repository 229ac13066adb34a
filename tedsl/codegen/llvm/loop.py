"""Emits counted loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from tedsl.codegen.llvm.effort import goes_by
from tedsl.codegen.llvm.emitter import Emitter
from tedsl.codegen.llvm.indices import forms as ix
from tedsl.codegen.llvm.indices.conditions import emit_condition
from tedsl.codegen.llvm.indices.forms import INT64_MAX, INT64_MIN, Atom, Index
from tedsl.codegen.llvm.steps import Steps, steps_of
from tedsl.ir.build import as_int
from tedsl.ir.expr import Var
from tedsl.ir.stmt import For, Store
from tedsl.ir.walk.visitor import statements

_MOST = (1 << 31) - 1  # of a weight of a branch
_TILE = 5  # stores of vectors in an iteration: with fewer, LLVM's unroller may help (short_loops)


def count_body(out: Emitter, s: For, var: Index) -> None:
    """Emits the body of `s` for one value of its variable."""
    out.scope.index[s.loop_var] = var
    out.statement(s.body)


def _value_limit(var: Var) -> int:
    """Returns the largest value that a loop variable can have: the largest of its dtype, at most that of int64."""
    limit = var.dtype.max_value
    return min(limit, INT64_MAX) if limit is not None else INT64_MAX


def emit_counted(out: Emitter, s: For, first: Index, end: Index, shift: Atom | None, steps: Steps | None = None) -> None:
    """Emits a loop over [first, end), tested once before it and at its end.
    With a `shift`, the variable is that much larger. steps: of an iteration, if they are given; they divide the iterations.
    """
    if steps is None:
        steps = steps_of(out, s) if shift is None else Steps()
    if steps.count > 1 and shift is None and steps.count == as_int(s.extent):
        for step in steps.places(out, first):
            count_body(out, s, step)
        return
    limit = _value_limit(s.loop_var)
    bits, ((start, _), (stop, _)) = out.sized_register(first, end)
    some = emit_condition(out, "slt", first, end)
    head, leave_label = out.fresh("loop"), out.fresh("done")
    counter = "%" + out.fresh(s.loop_var.name)
    before = out.block
    marks = out.mark()
    out.line(f"br label %{head}" if some == "true" else f"br i1 {some}, label %{head}, label %{leave_label}")
    out.open_region()
    out.start_block(head)
    place, at = out.lines, len(out.lines)
    out.line("")
    low, high = max(first.bounds()[0], INT64_MIN), min(end.bounds()[1] - steps.count, limit)
    var = ix.atom_index(out.atom(counter, out.level, low, high, bits))
    for step in steps.places(out, var if shift is None else ix.add(var, ix.atom_index(shift))):
        count_body(out, s, step)
    following = out.assign(f"add nsw i{bits} {counter}, {steps.count}")  # at most `end`, so it fits
    again = out.assign(f"icmp slt i{bits} {following}, {stop}")
    kept = f", !llvm.loop {_kept_node(out)}" if steps.count > 1 or _is_tile(s) else ""
    if goes_by(s, out.function.strides):
        kept = f", !llvm.loop {_scalar_node(out)}"
    repeated = _repeated(out, s, steps)
    out.line(f"br i1 {again}, label %{head}, label %{leave_label}{repeated}{kept}")
    place[at] = f"  {counter} = phi i{bits} [ {start}, %{before} ], [ {following}, %{out.block} ]"
    out.close_region(marks)
    out.start_block(leave_label)


def emit_ends(out: Emitter, s: For, ends: tuple[Index, Index], skip: str, prepare: Callable[[str], None],
              between: Callable[[], None]) -> None:
    """Emits two iterations of `s`, and `between` them other code. Their body is written once, in a loop around that code.

    skip: an i1 with which only the code between runs. prepare: called before the body, with an i1 that is set for the second.
    """
    first, second = (out.register(index)[0] for index in ends)
    end, middle, done = (out.fresh(name) for name in ("end", "middle", "done"))
    is_second = "%" + out.fresh("is_second")
    before = out.block
    marks = out.mark()
    out.line(f"br i1 {skip}, label %{middle}, label %{end}")
    out.open_region()
    out.start_block(end)
    place, at = out.lines, len(out.lines)
    out.line("")
    low, high = min(index.bounds()[0] for index in ends), max(index.bounds()[1] for index in ends)
    var = out.assign(f"select i1 {is_second}, i64 {second}, i64 {first}")
    prepare(is_second)
    count_body(out, s, ix.atom_index(out.atom(var, out.level, max(low, INT64_MIN), min(high, INT64_MAX))))
    out.line(f"br i1 {is_second}, label %{done}, label %{middle}")
    out.close_region(marks)
    out.start_block(middle)
    between()
    out.line(f"br i1 {skip}, label %{done}, label %{end}")
    place[at] = f"  {is_second} = phi i1 [ false, %{before} ], [ true, %{out.block} ]"
    out.start_block(done)


def _is_tile(loop: For) -> bool:
    """Tells whether an iteration does much on vectors, as one step of a register tile does.

    Copies of it have elements in common, which LLVM keeps in registers that the tile needs.
    """
    vectors = (s for s in islice(statements(loop.body), _TILE * 4) if isinstance(s, Store) and s.value.dtype.is_vector)
    return sum(1 for _ in vectors) >= _TILE


def _kept_node(out: Emitter) -> str:
    """Returns a metadata node that keeps LLVM from unrolling one loop."""
    return out.module.add_node(f"{{self}}, {_rolled(out)}")


def _rolled(out: Emitter) -> str:
    cache = out.module.cache
    if "rolled" not in cache:
        cache["rolled"] = out.module.add_metadata('!{!"llvm.loop.unroll.disable"}')
    return cache["rolled"]


def _scalar_node(out: Emitter) -> str:
    """Returns a metadata node that keeps LLVM from vectorizing and from unrolling one loop."""
    cache = out.module.cache
    if "scalar" not in cache:
        cache["scalar"] = out.module.add_metadata('!{!"llvm.loop.vectorize.enable", i1 false}')
    return out.module.add_node(f"{{self}}, {_rolled(out)}, {cache['scalar']}")


def _repeated(out: Emitter, loop: For, steps: Steps) -> str:
    """Returns the metadata that tells LLVM how many iterations `loop` has, if that is known; it takes each loop for some
    thirty: what a loop of two iterations uses had the register of a sum that a loop of 500 adds to, a level further out.
    """
    extent, cache = as_int(loop.extent), out.module.cache
    if extent is None or extent < steps.count or "cpu" not in out.target.keys:
        return ""
    key = "repeated", extent // steps.count
    if key not in cache:
        cache[key] = out.module.add_metadata(f'!{{!"branch_weights", i32 {min(key[1] - 1, _MOST)}, i32 1}}')
    return f", !prof {cache[key]}"

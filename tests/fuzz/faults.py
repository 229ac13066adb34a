"""Faults as they happen in compilers: each is a wrong variant of one function, planted in its place.

A wrong variant gets the true function (`right`) and its arguments by the same names; `*rest` stands for those that it only
passes on.
"""

import dataclasses
import inspect
import types
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from tedsl.codegen.llvm.indices import forms
from tedsl.ir import build
from tedsl.ir.expr import LE, LT, Add, IntImm, Max, Min, Mul, Ramp, Sub
from tedsl.ir.ops import IF_THEN_ELSE
from tedsl.ir.stmt import For, ForKind, IfThenElse, SeqStmt, seq
from tedsl.schedule.relations import Fuse


class Unplantable(BaseException):
    """The function of a fault is gone, takes other arguments, or gives what the fault cannot handle.

    Write the fault anew where that work is done now. Not an Exception: nothing that looks for faults may take it for one.
    """


@dataclass(frozen=True)
class Fault:
    """The function at `where` ("module:function" or "module:Class.method" below tedsl) does what `wrong` does.

    machine: the fault shows in machine code only.
    """

    name: str
    where: str
    wrong: Callable
    machine: bool

    def target(self):
        """The function that the fault replaces. Raises Unplantable if it is gone or its arguments have changed."""
        module, _, path = self.where.partition(":")
        try:
            function = import_module(f"tedsl.{module}")
            for part in path.split("."):
                function = getattr(function, part)
        except (ImportError, AttributeError) as error:
            raise Unplantable(f"{self.name}: there is no {self.where} ({error})") from error
        function = inspect.unwrap(function)
        taken = list(inspect.signature(function).parameters)
        replaced = list(inspect.signature(self.wrong).parameters)[1:]
        same = taken[:len(replaced) - 1] == replaced[:-1] if replaced[-1:] == ["rest"] else taken == replaced
        if not same:
            raise Unplantable(f"{self.name}: {self.where} takes ({', '.join(taken)}), the fault ({', '.join(replaced)})")
        return function

    def plant(self):
        """Replaces the function in this process, in every module and table that refers to it: it gets other code."""
        function = self.target()
        right = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__,
                                   function.__closure__)
        right.__kwdefaults__ = function.__kwdefaults__
        bound = inspect.signature(right)

        def planted(*args, **options):
            call = bound.bind(*args, **options)
            call.apply_defaults()
            try:
                return self.wrong(right, *call.arguments.values())
            except Exception as error:
                if inspect.getinnerframes(error.__traceback__)[-1].filename == self.wrong.__code__.co_filename:
                    raise Unplantable(f"{self.name}: the fault itself raises {error!r}") from error
                raise

        name = f"planted_{id(self)}"
        function.__globals__[name] = planted
        scope = {}
        exec(f"def stand_in(*args, **options): return {name}(*args, **options)", scope)
        function.__code__ = scope["stand_in"].__code__


FAULTS: list[Fault] = []


def _fault(name, where, *, machine=False):
    def collect(wrong):
        FAULTS.append(Fault(name, where, wrong, machine))
        return wrong
    return collect


# --- lower: loops of a schedule ---------------------------------------------------------------------------------------

@_fault("dropped guard", "lower.nest:Nest.conditions")
def _no_conditions(right, *rest):
    return []


@_fault("guard that lets one iteration too many pass", "lower.nest:Nest.found_conditions")
def _less_or_equal(right, *rest):
    return [LE(c.a, c.b) if isinstance(c, LT) else c for c in right(*rest)]


@_fault("halo short by one", "lower.regions.bounds:_trimmed")
def _one_element_less(right, *rest):
    start, count = right(*rest)
    return start, count if build.as_int(count) == 1 else build.sub(count, 1)


@_fault("region starts one late", "lower.regions.bounds:_shifted")
def _starts_late(right, *rest):
    low, high = right(*rest)
    later = build.add(low, 1)
    return later, later if low is high else high


@_fault("init in the wrong loop", "lower.nest:_begin_of_reduction")
def _begin_one_deeper(right, plan):
    return min(right(plan) + 1, len(plan.loops))


@_fault("init without its loops", "lower.nest:Nest.init")
def _init_once(right, *rest):
    init = right(*rest)
    while isinstance(init, For):
        init = init.body
    return init


@_fault("lost predicate of a reduction", "lower.compute:store_update")
def _update_always(right, *rest):
    update = right(*rest)
    return update.then_case if isinstance(update, IfThenElse) else update


@_fault("swapped buffers of a tuple", "lower.compute:_store_all")
def _buffers_swapped(right, plan, results, buffers, place):
    return right(plan, results, buffers[::-1], place)


@_fault("extent of a split rounded down", "schedule.domains:fitted")
def _rounded_down(right, *rest):
    division = right(*rest)
    known = not division.even and build.as_int(division.count) is not None
    return dataclasses.replace(division, count=build.sub(division.count, 1)) if known else division


@_fault("fused loop taken apart by the wrong extent", "schedule.domains:indices_up")
def _extent_of_the_outer(right, relations, tiling, *rest):
    extents = tiling.extents
    inner = {relation.inner: extents[relation.outer] for relation in relations
             if isinstance(relation, Fuse) and relation.outer in extents}
    return right(relations, dataclasses.replace(tiling, extents=ChainMap(inner, extents)), *rest)


@_fault("clamp one beyond the end", "lower.checks:clamp")
def _clamped_beyond(right, index, extent):
    return right(index, build.add(extent, 1))


@_fault("rfactor without its conditions", "schedule.primitives.reductions.rfactor:_terms")
def _factored_unconditionally(right, whole, plan):
    return right(whole, dataclasses.replace(plan, conditions=[]))


@_fault("rfactor pads with the value", "schedule.primitives.reductions.rfactor:_factored")
def _padded_with_the_value(right, op, whole, plan, *rest):
    factored = right(op, whole, plan, *rest)
    if plan.reduced:
        return factored
    padded = [value.args[1] if getattr(value, "op", None) is IF_THEN_ELSE else value for value in factored.body]
    return dataclasses.replace(factored, body=tuple(padded))


# --- passes: loops to loops -------------------------------------------------------------------------------------------

@_fault("wrong stride of a dimension", "passes.storage.flatten_storage:flat_index")
def _extents_one_too_early(right, indices, shape, strides):
    return right(indices, (*shape[:1], *shape), strides)


@_fault("start of a region not subtracted", "passes.storage.flatten_storage:_from")
def _from_the_start_of_the_tensor(right, index, low):
    return right(index, low) if isinstance(index, Ramp) else index


@_fault("lost mask in a vector", "passes.loops.vectorize_loops:_LaneStatements.store")
def _unmasked(right, self, store):
    vector = right(self, store)
    return vector if store.predicate is not None else vector.replace(predicate=None)


@_fault("unroll one short", "passes.loops.unroll_loops:_Unroller.copies")
def _one_copy_less(right, self, loop, count):
    return right(self, loop, count - 1)


@_fault("dropped if", "passes.simplify:_Simplifier.branch")
def _always_taken(right, self, branch):
    return self.stmt(branch.then_case)


@_fault("memory shared while it is in use", "passes.storage.rewrite_storage:_Planner.free_slot")
def _free_too_early(right, self, slots, life, size):
    return right(self, slots, life if life.first is None else dataclasses.replace(life, first=life.first + 2), size)


@_fault("main part of a loop too long", "passes.loops.partition_loops:_Partitioner.main_range")
def _main_part_to_the_end(right, self, loop, guards):
    low, high, gone = right(self, loop, guards)
    return low, build.cast(high.dtype, build.add(loop.min, loop.extent)) if gone else high, gone


@_fault("fma with the wrong sign", "passes.machine.choose_fma:_Fuser.rewrite")
def _added_instead(right, self, node):
    return right(self, Add(node.a, node.b) if isinstance(node, Sub) and isinstance(node.a, Mul) else node)


@_fault("fma with swapped operands", "passes.machine.choose_fma:_fma")
def _addend_multiplied(right, a, b, c):
    return right(a, c, b)


@_fault("vector cut into too few pieces", "passes.machine.split_vectors:pieces_of")
def _last_piece_missing(right, *rest):
    pieces = right(*rest)
    return seq(*pieces.seq[:-1]) if isinstance(pieces, SeqStmt) else pieces


# --- arith: what is proved --------------------------------------------------------------------------------------------

@_fault("bound off by one in a comparison", "arith.rules.compare:fold_less")
def _true_too_early(right, e, known):
    looser = LE(e.a, e.b) if isinstance(e, LT) else LE(e.a, build.add(e.b, 1))
    decided = right(looser, known)
    return decided if isinstance(decided, IntImm) and decided.value else right(e, known)


@_fault("rounding the wrong way in a comparison", "arith.rules.compare:_rewrite")
def _rounded_towards_less(right, kind, a, b, gap, *rest):
    down = gap.shifted(-(gap.const % gap.common_factor())) if kind is LT and gap.terms else gap
    return right(kind, a, b, down, *rest)


@_fault("quotient decided too early", "arith.rules.floordiv:same_block")
def _last_of_the_block_ignored(right, known, s, d):
    low, high = known.range_of(s)
    return low // d if low is not None and high is not None and low // d == (high - 1) // d else None


@_fault("range of a negated value", "arith.ranges:scale")
def _ends_not_exchanged(right, r, k):
    low, high = right(r, k)
    return (high, low) if k == -1 else (low, high)


# --- codegen: machine code --------------------------------------------------------------------------------------------

@_fault("swapped operands of a subtraction", "codegen.llvm.expr:emit_arithmetic", machine=True)
def _operands_swapped(right, out, e):
    return right(out, e.replace(a=e.b, b=e.a))


@_fault("min and max swapped", "codegen.llvm.values.floats:emit_minmax", machine=True)
def _max_for_min(right, out, e):
    return right(out, (Max if isinstance(e, Min) else Min)(e.a, e.b))


@_fault("floor division that truncates", "codegen.llvm.values.integer:Integers.floordiv", machine=True)
def _truncated(right, self, a, b, divisor, nonnegative):
    power = divisor is not None and divisor & (divisor - 1) == 0
    return right(self, a, b, divisor, nonnegative) if power else self.truncdiv(a, b, divisor, nonnegative)


@_fault("sign lost in a cast", "codegen.llvm.values.convert:_int_to_int", machine=True)
def _zero_extended(right, out, value, source, target):
    return right(out, value, _unsigned(source), target)


@_fault("cast that takes integers for unsigned", "codegen.llvm.values.convert:_int_to_float", machine=True)
def _from_unsigned(right, out, value, source, target):
    return right(out, value, _unsigned(source), target)


def _unsigned(of):
    return type(of)(str(of).replace("int", "uint")) if of.is_int else of


@_fault("last lane of a mask", "codegen.llvm.indices.conditions:_ramp_condition", machine=True)
def _never_the_last_lane(right, out, name, stride, limit, lanes):
    mask = right(out, name, stride, limit, lanes)
    if not mask.startswith("%"):
        return mask
    lanes_but_one = ", ".join(f"i1 {int(lane < lanes - 1)}" for lane in range(lanes))
    return out.assign(f"and <{lanes} x i1> {mask}, <{lanes_but_one}>")


@_fault("lanes not reversed", "codegen.llvm.loads_stores:_backwards", machine=True)
def _forwards(right, lanes):
    return "<" + ", ".join(f"i32 {k}" for k in range(lanes)) + ">"


@_fault("loop runs once more", "codegen.llvm.loop:emit_counted", machine=True)
def _one_iteration_more(right, out, s, first, end, rest):
    return right(out, s, first, forms.add(end, forms.constant(1)), *rest)


@_fault("parallel chunks that leave a gap", "codegen.llvm.streaming:emit_range", machine=True)
def _first_of_the_chunk_left_out(right, out, s, first, end):
    return right(out, s, forms.add(first, forms.constant(1)) if s.kind is ForKind.PARALLEL else first, end)


@_fault("sides of a select swapped", "codegen.llvm.expr:emit_select", machine=True)
def _other_side(right, out, e):
    return right(out, e.replace(true_value=e.false_value, false_value=e.true_value))


# --- passes that only some schedules reach ----------------------------------------------------------------------------

@_fault("registers filled over what lies in them", "passes.storage.fill_registers:_Uses.needs", machine=True)
def _nothing_needed(right, self, stmt, after):
    return {}

"""Faults as they happen in compilers, each planted in one function by changing its text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """In `where` (module:function below tedsl) the text `old` becomes `new`. machine: it shows in machine code only."""

    name: str
    where: str
    old: str
    new: str
    machine: bool = False


def _machine(name, where, old, new):
    """A fault that shows in machine code only."""
    return Fault(name, where, old, new, machine=True)


FAULTS = (
    # --- lower: loops of a schedule ---
    Fault("dropped guard", "lower.nest:Nest.guarded",
          "IfThenElse(condition if condition in self.unlikely else build.likely(condition), stmt)", "stmt"),
    Fault("guard that lets one iteration too many pass", "lower.nest:Nest.found_conditions",
          "build.less(offsets", "build.less_equal(offsets"),
    Fault("halo short by one", "lower.regions.bounds:_trimmed", "build.add(build.sub(high, low), 1)", "build.sub(high, low)"),
    Fault("region starts one late", "lower.regions.bounds:_shifted", "build.add(start, reach.low)",
          "build.add(start, build.add(reach.low, 1))"),
    Fault("init in the wrong loop", "lower.nest:_begin_of_reduction", "(at for at, loop", "(at + 1 for at, loop"),
    Fault("init without its loops", "lower.nest:Nest.init", "stmt = _around(loop, loop.extent, stmt)", "pass"),
    Fault("lost predicate of a reduction", "lower.compute:store_update", "else IfThenElse(condition, stmt)", "else stmt"),
    Fault("swapped buffers of a tuple", "lower.compute:_store_all", "zip(buffers, kept)", "zip(buffers[::-1], kept)"),
    Fault("extent of a split rounded down", "lower.regions.propagate:_divide", "-(-whole // size)", "whole // size"),
    Fault("fused loop taken apart by the wrong extent", "schedule.domains:indices_up",
          "build.floormod(known[f], extents[i])", "build.floormod(known[f], extents[o])"),
    Fault("clamp one beyond the end", "lower.checks:clamp", "build.sub(extent, 1)", "extent"),
    Fault("rfactor without its conditions", "schedule.primitives.rfactor:_factored", "if plan.conditions:", "if False:"),
    Fault("rfactor pads with the value", "schedule.primitives.rfactor:_factored",
          "source.combiner.identity_element[v])", "value)"),
    # --- passes: loops to loops ---
    Fault("wrong stride of a dimension", "passes.storage.flatten_storage:_flat",
          "zip(indices[1:], shape[1:])", "zip(indices[1:], shape)"),
    Fault("start of a region not subtracted", "passes.storage.flatten_storage:_from",
          "return build.sub(index, low)", "return index"),
    Fault("lost mask in a vector", "passes.loops.vectorize_loops:_LaneStatements.store", "index, self.mask)", "index, None)"),
    Fault("unroll one short", "passes.loops.unroll_loops:_Unroller.copies",
          "for k in range(count))", "for k in range(count - 1))"),
    Fault("dropped if", "passes.simplify:_Simplifier.branch", "if is_always_true(condition):", "if True:"),
    Fault("memory shared while it is in use", "passes.storage.rewrite_storage:_free_slot",
          "slot.free_after < life.first", "slot.free_after <= life.first + 1"),
    Fault("main part of a loop too long", "passes.loops.partition_loops:_Partitioner.main_range",
          "self.tightest(high, interval.high, upper=True)", "high"),
    Fault("fma with the wrong sign", "passes.machine.choose_fma:_Fuser.rewrite",
          "b if isinstance(node, Add) else _negated(b)", "b"),
    Fault("fma with swapped operands", "passes.machine.choose_fma:_fma", "(a, b, c)", "(a, c, b)"),
    Fault("vector cut into too few pieces", "passes.machine.split_vectors:pieces_of",
          "powers(lanes - main)", "powers(lanes - main)[:-1]"),
    # --- arith: what is proved ---
    Fault("bound off by one in a comparison", "arith.rules.compare:fold_less", "low >= least:", "low >= least - 1:"),
    Fault("rounding the wrong way in a comparison", "arith.rules.compare:_rewrite", "-(-gap.const // g)", "gap.const // g"),
    Fault("quotient decided too early", "arith.rules.floordiv:same_block", "high // d:", "(high - 1) // d:"),
    Fault("range of a negated value", "arith.ranges:scale", "if k < 0:", "if k < -1:"),
    # --- codegen: machine code ---
    _machine("swapped operands of a subtraction", "codegen.llvm.expr:emit_arithmetic",
             "a, b, d = out.value(e.a), out.value(e.b), e.dtype",
             "b, a, d = out.value(e.a), out.value(e.b), e.dtype"),
    _machine("min and max swapped", "codegen.llvm.values.floats:emit_minmax", "isinstance(e, Min)", "not isinstance(e, Min)"),
    _machine("wrong sign in a floor division", "codegen.llvm.values.integer:Integers.floordiv",
             'self.compare("slt", self.op("xor"', 'self.compare("sgt", self.op("xor"'),
    _machine("sign lost in a cast", "codegen.llvm.values.convert:_int_to_int", '"sext" if source.is_int else "zext"', '"zext"'),
    _machine("cast that rounds twice", "codegen.llvm.values.convert:_int_to_float",
             '"sitofp" if source.is_int', '"uitofp" if source.is_int'),
    _machine("last lane of a mask", "codegen.llvm.indices.conditions:_ramp_condition", "max(0, span) + 1", "max(0, span)"),
    _machine("lanes not reversed", "codegen.llvm.memory:_backwards", "reversed(range(lanes))", "range(lanes)"),
    _machine("loop runs once more", "codegen.llvm.stmt:emit_counted", "icmp slt i64", "icmp sle i64"),
    _machine("parallel chunks that leave a gap", "codegen.llvm.parallel:_emit_body", "ix.add(start, begin)",
             "ix.add(ix.add(start, begin), ix.constant(1))"),
    _machine("sides of a select swapped", "codegen.llvm.expr:emit_select",
             "out.value(e.true_value)", "out.value(e.false_value)"),
)

"""The handle of one operation of a schedule: `s[C]`.

It stores nothing: the directives are in `primitives`, the data in `state.py`; the decorator `directive` checks and records each
call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tedsl.errors import ArgumentTypeError, missing_attribute
from tedsl.ir.expr import Expr
from tedsl.ir.iters import IterVar
from tedsl.ir.script import shown
from tedsl.lang.intrinsics.tensor_intrin import TensorIntrin
from tedsl.lang.operation import Operation
from tedsl.lang.tensor import Tensor
from tedsl.schedule.explain import stage_page
from tedsl.schedule.group import StageGroup
from tedsl.schedule.primitives.bind import bind
from tedsl.schedule.primitives.env_threads import env_threads
from tedsl.schedule.primitives.fuse import fuse
from tedsl.schedule.primitives.nontemporal import nontemporal
from tedsl.schedule.primitives.parallel import parallel
from tedsl.schedule.primitives.places.by_threads import by_threads
from tedsl.schedule.primitives.places.compute_at import compute_at
from tedsl.schedule.primitives.places.compute_inline import compute_inline
from tedsl.schedule.primitives.places.compute_root import compute_root
from tedsl.schedule.primitives.places.compute_with import compute_with
from tedsl.schedule.primitives.places.reverse_compute_at import reverse_compute_at
from tedsl.schedule.primitives.pragma import pragma
from tedsl.schedule.primitives.reductions.decompose_reduction import decompose_reduction
from tedsl.schedule.primitives.reductions.skip_zeros import skip_zeros
from tedsl.schedule.primitives.reorder import reorder
from tedsl.schedule.primitives.set_store_predicate import set_store_predicate
from tedsl.schedule.primitives.specialize import specialize
from tedsl.schedule.primitives.split import split
from tedsl.schedule.primitives.storage.double_buffer import double_buffer
from tedsl.schedule.primitives.storage.prefetch import prefetch
from tedsl.schedule.primitives.storage.rolling_buffer import rolling_buffer
from tedsl.schedule.primitives.storage.set_scope import set_scope
from tedsl.schedule.primitives.storage.storage_align import storage_align
from tedsl.schedule.primitives.storage.transform_layout import Mapped, call_map, transform_layout
from tedsl.schedule.primitives.tensorize import tensorize
from tedsl.schedule.primitives.tile import tile
from tedsl.schedule.primitives.unroll import unroll
from tedsl.schedule.primitives.vectorize import vectorize
from tedsl.schedule.record.applied import Owner, directive
from tedsl.schedule.record.directive import OF_LOOPS, OF_SCHEDULES, OF_STAGES
from tedsl.schedule.relations import GUARD, Relation
from tedsl.schedule.show import stage_text
from tedsl.schedule.state import AttachType, IterVarAttr, StageState, show

if TYPE_CHECKING:
    from tedsl.schedule.handles import Schedule


class Stage:
    """One operation of a schedule and its loops: `s[C]`. Each directive changes how it is computed, never the result."""

    __slots__ = ("schedule", "state")
    _directives: ClassVar[frozenset[str]] = OF_STAGES

    def __init__(self, schedule: Schedule, state: StageState) -> None:
        self.schedule = schedule
        self.state = state

    def _owner(self, directive: str, args: Sequence[Any]) -> Owner:
        schedule = self.state.schedule
        return Owner(schedule.recorder.stage(self.state, f"{directive}(...)"), schedule, self.state)

    # --- loops ---

    @directive(by_name=("factor", "nparts"))
    def split(self, parent: IterVar, factor: Any = None, nparts: Any = None, *, tail: str = GUARD,
              lines_of: Tensor | None = None) -> tuple[IterVar, IterVar]:
        """Split the loop `parent` in two: `factor` inner iterations or `nparts` outer ones; returns (outer, inner).

        The number may depend on sizes and scalar arguments, as in factor=n // 4; a call in which it is below 1 is refused.
        The new loops are plain: what `parallel`, `vectorize` or `unroll` said of `parent` is dropped, with a warning.

        tail: what is done about the last tile where the factor does not divide the extent. The results are the same:

        - "guard", the default: a condition in each iteration. Always correct; nothing is computed twice.
        - "mask": masked vectors where the loop is vectorized, without a second loop and without branches; else as "guard".
        - "partition": a main loop without conditions and a loop for the rest, also where the extent is constant.
        - "shift_inwards": the last tile is moved inwards until it is full. It computes some elements again, so reductions and
          results computed in place are refused.
        - "round_up": full tiles, in memory that is enlarged for them; the additional elements are computed and never read.
          Outputs and arguments, whose memory is the caller's, are refused.

        lines_of: a tensor, with tail="shift_inwards" and a constant factor. Vectors that cross lines of memory (64 bytes) are
        slower, and a caller's array may begin anywhere within a line: with lines_of=A the tiles, all but the first and the
        last, begin where lines of A do. With L elements in a line, or in the part of a line that divides the tile, A begins
        lead < L elements behind one; of n iterations tile t begins at max(min(t*factor - lead, n - factor), 0), and there are
        ceil((n + L - 1) / factor) tiles.

        Example (add_n):
            xo, xi = s[C].split(i, factor=4)

        Example (add_n):
            xo, xi = s[C].split(i, factor=4, tail="partition")

        Example (add_n):
            xo, xi = s[C].split(i, factor=4, tail="shift_inwards")

        Example (add_n):
            xo, xi = s[C].split(i, factor=4, tail="shift_inwards", lines_of=A)
        """
        return split(self.state, parent, factor=factor, nparts=nparts, tail=tail, lines_of=lines_of)

    @directive
    def fuse(self, *args: IterVar) -> IterVar:
        """Fuse the neighbouring loops `args` into one and return it. Without arguments, add an outermost loop of one iteration.

        Example (table):
            s[C].fuse(y, x)
        """
        return fuse(self.state, args)

    @directive
    def reorder(self, *args: IterVar) -> None:
        """Nest the loops `args` in this order, outermost first.

        Example (table):
            s[C].reorder(x, y)
        """
        reorder(self.state, args)

    @directive
    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any) \
            -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops into tiles; returns (x_outer, y_outer, x_inner, y_inner), which is also their new order.

        Example (table):
            yo, xo, yi, xi = s[C].tile(y, x, 4, 4)
        """
        return tile(self.state, x_parent, y_parent, x_factor, y_factor)

    @directive
    def decompose_reduction(self, loop: IterVar) -> None:
        """Initialize a reduction in loops of their own, right before `loop`.

        Example (rowsum):
            s[B].decompose_reduction(i)
        """
        decompose_reduction(self.state, loop)

    @directive
    def skip_zeros(self, loop: IterVar) -> None:
        """Run an iteration of `loop`, a loop of a sum, only where what it adds may differ from zero.

        Where that is, the formulas say of what the sum reads: `te.if_then_else(inside, value, 0)`, the border of padded data.
        An iteration is skipped where all of its products have such a zero as a factor; it would add zero, or NaN if the other
        factor is infinite or NaN.

        Example (padded):
            s[C].skip_zeros(k)
        """
        skip_zeros(self.state, loop)

    # --- annotations ---

    @directive
    def vectorize(self, var: IterVar) -> None:
        """Run the loop `var`, whose extent is constant, as vector instructions.

        The lanes of a reduction loop are combined, half of the vector with the other half again and again, and then with the
        element: `B[i] += sum_lanes(A[i, k : k+8])`. That is done for sums, products, largest and smallest elements; sums of
        floats are rounded in another order.

        Example (add):
            xo, xi = s[C].split(i, factor=4)
            s[C].vectorize(xi)
        """
        vectorize(self.state, var)

    @directive
    def unroll(self, var: IterVar) -> None:
        """Replace the loop `var` by copies of its body.

        Example (add):
            xo, xi = s[C].split(i, factor=4)
            s[C].unroll(xi)
        """
        unroll(self.state, var)

    @directive
    def parallel(self, var: IterVar) -> None:
        """Distribute the iterations of the loop `var` over threads.

        The last of `parallel`, `vectorize` and `unroll` of a loop holds, as in TVM; a loop that is bound to threads stays so.

        Example (table):
            s[C].parallel(y)
        """
        parallel(self.state, var)

    @directive
    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Bind the loop `ivar` to a thread axis: its iterations run as threads of a device.

        Example (add):
            bx, tx = s[C].split(i, factor=4)
            s[C].bind(bx, te.thread_axis("blockIdx.x"))
            s[C].bind(tx, te.thread_axis("threadIdx.x"))
        """
        bind(self.state, ivar, thread_ivar)

    @directive
    def env_threads(self, threads: Sequence[IterVar]) -> None:
        """Launch thread axes, each with a range, around all loops of this stage.

        Example (add):
            s[C].env_threads([te.thread_axis((0, 4), "threadIdx.x")])
        """
        env_threads(self.state, list(threads) if isinstance(threads, (list, tuple)) else [threads])

    @directive
    def set_store_predicate(self, predicate: Any) -> None:
        """Store the elements of this stage only where the condition `predicate`, over thread axes, holds.

        It selects the thread that stores a value which several threads have, as after a reduction across threads. Lowering
        refuses a condition under which an element is stored by no thread.

        Example (rowsum):
            tx = te.thread_axis("threadIdx.x")
            s[B].bind(k, tx)
            s[B].set_store_predicate(tx.var.equal(0))
        """
        set_store_predicate(self.state, predicate)

    @directive
    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Replace the loop `var` and all loops inside it by one use of an intrinsic, whose formula must be what they compute.

        Example (add):
            x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
            z = te.compute((4,), lambda k: x[k] + y[k], name="z")
            add4 = te.decl_tensor_intrin(z.op, lambda ins, outs: tedsl.tir.call_extern(
                "int32", "add4", ins[0].access_ptr("r"), ins[1].access_ptr("r"), outs[0].access_ptr("w")),
                default_buffer_params={"offset_factor": 1})
            xo, xi = s[C].split(i, factor=4)
            s[C].tensorize(xi, add4)
        """
        tensorize(self.state, var, tensor_intrin)

    @directive
    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a pragma, a note for the passes, to the loop `var`. `pragma_type` is one of

        - "auto_unroll_max_step", with a number: loops inside are unrolled where that makes at most so many statements.
        - "unroll_explicit", 0 or 1: whether these are replaced by copies (1, the default) or marked as unrolled loops.
        - "unroll", "vectorize": what `unroll` and `vectorize` do.
        - "import_c", "import_llvm", with C or LLVM IR (the text, or the name of a .ll file): functions that intrinsics and
          tir.call_extern may call.
        - "loop_partition_hint": the loop is partitioned where its conditions cease to hold, also if its extent is constant.
        - "bfloat16_pairs": sums of products of bfloat16 inside, accumulated in float32, may be taken two terms at a time where
          the processor has an instruction for that (AVX-512 BF16). It adds the second product of a pair first, and takes
          denormal numbers as zero.
        - "tile_products": the loop and those inside are a product of matrices, `C[i, j] += A[i, k] * B[k // g, j, k % g]`,
          whose terms are split by g: 4 for bytes summed in 32 bits, 2 for bfloat16 summed in float32. Tile registers (AMX)
          multiply them where the target has these, else the loops stay. Columns j lie beside each other in B, or in panels of
          32; loops around the terms may step in A and B, as those of a convolution. Sums of bfloat16 are taken in an order of
          the processor's own, and denormal numbers count as zero.
        - "maxima_without_nan": maxima and minima of floats inside need not be NaN where an operand is, which takes up to three
          instructions instead of one.
        - "exp_at_most_one": a promise that the arguments of exp inside are at most 0, or NaN: these take fewer instructions.
        - "parallel_stride_pattern": thread t of T takes the iterations t, t + T, t + 2T, ... instead of a contiguous range.
        - "parallel_launch_point", "parallel_barrier_when_finish": accepted, for programs written for TVM; without effect.
        - "debug_skip_region": the loop is left out.
        - Any other name: the loop keeps it as the attribute "pragma_" + name, for passes of your own, with a warning.

        Example (table):
            xo, xi = s[C].split(x, factor=4)
            s[C].pragma(xo, "auto_unroll_max_step", 4)
        """
        pragma(self.state, var, pragma_type, pragma_value)

    # --- place ---

    @directive
    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage at the loop `scope` of `parent`: in each iteration the part that the iteration reads.

        Example (blur):
            xo, xi = s[C].split(x, factor=4)
            s[B].compute_at(s[C], xo)
        """
        compute_at(self.state, parent.state if isinstance(parent, Stage) else parent, scope)

    @directive
    def reverse_compute_at(self, parent: Stage, scope: IterVar) -> tuple[IterVar, ...]:
        """Compute this stage at the loop `scope` of `parent`, the stage that it reads; returns the loops of this stage.

        Example (chain):
            s[C].reverse_compute_at(s[B], B.op.axis[0])
        """
        return reverse_compute_at(self.state, parent.state if isinstance(parent, Stage) else parent, scope)

    @directive
    def compute_with(self, other: Stage, other_loop: IterVar, loop: IterVar) -> None:
        """Make one loop of `loop` of this stage and `other_loop` of the stage `other`, and of the loops around them.

        Each iteration computes its part of both stages. Lowering refuses it where an iteration of one stage may use what
        another iteration of the other stage writes.

        Example (chain):
            s[C].compute_with(s[B], B.op.axis[0], C.op.axis[0])
        """
        compute_with(self.state, other.state if isinstance(other, Stage) else other, other_loop, loop)

    @directive
    def compute_inline(self) -> None:
        """Inline this stage: its formula takes the place of each read of it.

        Example (chain):
            s[B].compute_inline()
        """
        compute_inline(self.state)

    @directive
    def compute_root(self) -> None:
        """Compute this stage in a loop nest of its own, before the stages that read it.

        Example (chain):
            s[B].compute_at(s[C], y)
            s[B].compute_root()
        """
        compute_root(self.state)

    @directive
    def set_scope(self, scope: str) -> Stage:
        """Keep this stage in memory of `scope`: "global", "shared", "local", "warp", ...; returns this stage. An output is
        computed there by a stage of its own, as by `cache_write`, and this stage copies.

        Example (chain):
            s[B].set_scope("local")
        """
        set_scope(self.state, scope)
        return self

    @directive
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad the memory of this stage so that the stride of `axis`, in elements, is `offset` modulo `factor`.

        Example (chain):
            s[B].storage_align(B.op.axis[0], 16, 1)
        """
        storage_align(self.state, axis, factor, offset)

    @directive
    def double_buffer(self) -> None:
        """Keep two copies of this stage: one is filled for the next iteration of its loop while the other is read.

        Example (blur):
            xo, xi = s[C].split(x, factor=4)
            s[B].compute_at(s[C], xo)
            s[B].double_buffer()
        """
        double_buffer(self.state)

    @directive
    def rolling_buffer(self) -> None:
        """Keep the elements of this stage that the next iteration of its loop reads too, instead of computing them again.

        Example (blur):
            xo, xi = s[C].split(x, factor=4)
            s[B].compute_at(s[C], xo)
            s[B].rolling_buffer()
        """
        rolling_buffer(self.state)

    def transform_layout(self, mapping_function: Callable[..., Any]) -> list[IterVar] | None:
        """Store this stage in another layout, `lambda n, c: [n, c // 4, c % 4]`; returns the new loops, None for an input.

        Example (chain):
            s[B].transform_layout(lambda y, x: [x // 4, y, x % 4])
        """
        return self._transform_layout(call_map(self.state, mapping_function))

    @directive(name="transform_layout")
    def _transform_layout(self, mapped: Mapped) -> list[IterVar] | None:
        return transform_layout(self.state, mapped)

    @directive
    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any, *, spread: bool = False, into: Tensor | None = None) -> None:
        """In each iteration of `var`, prefetch into the cache what the iteration `offset` later reads of `tensor`.

        spread: the loops inside `var` ask for a few lines in each of their iterations, so that memory is read while they
        compute; else all lines are asked for at once.
        into: an output, whose elements at these places are asked for instead, in order to write them: a result that is
        written when all of a row is known need not wait for its lines of memory then.

        Example (table):
            s[C].prefetch(A, y, 1)
        """
        prefetch(self.state, tensor, var, offset, spread, into)

    @directive
    def nontemporal(self) -> None:
        """Write this output with non-temporal stores, past the cache.

        Example (table):
            s[C].nontemporal()
        """
        nontemporal(self.state)

    @directive
    def by_threads(self, threads: Any, shared: Any) -> None:
        """Compute this stage, of te.extern, by its statements for kernels (`te.extern(..., by_threads=...)`).

        They launch blocks of at most `threads` threads and `shared` bytes of shared memory.

        Example (launched):
            s[C].by_threads(threads=8, shared=0)
        """
        by_threads(self.state, threads, shared)

    @directive
    def specialize(self, condition: Any) -> Specialized:
        """Add a version of this stage, with loops of its own, for calls in which `condition` holds; returns its handle.

        The condition is over sizes and scalar arguments. The first version whose condition holds runs.

        Example (add_n):
            xo, xi = s[C].split(i, factor=4)
            s[C].specialize(n % 4 == 0)
        """
        return Specialized(self.schedule, specialize(self.state, condition))

    # --- what is there now ---

    @property
    def versions(self) -> list[Specialized]:
        """The versions that `specialize` added, in that order."""
        return [Specialized(self.schedule, version) for version in self.state.versions]

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def op(self) -> Any:
        """The current operation, usually a ComputeOp. cache_write, cache_read and rfactor replace it."""
        return self.state.op

    @property
    def origin_op(self) -> Operation:
        return self.state.origin_op

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        """The current loops, outermost first."""
        return list(self.state.leaf_iter_vars)

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """The axes of the operation and every loop derived from them, in the order of the directives."""
        return list(self.state.all_iter_vars)

    @property
    def relations(self) -> list[Relation]:
        return list(self.state.relations)

    @property
    def scope(self) -> str:
        return self.state.scope

    @property
    def is_output(self) -> bool:
        return self.state.is_output

    @property
    def attach_type(self) -> AttachType:
        return self.state.attach_type

    @property
    def attach_stage(self) -> Stage | None:
        host = self.state.attach_stage
        return None if host is None else self.schedule.handle(host)

    @property
    def attach_ivar(self) -> IterVar | None:
        return self.state.attach_ivar

    @property
    def iter_var_attrs(self) -> dict[IterVar, IterVarAttr]:
        return dict(self.state.iter_var_attrs)

    @property
    def store_predicate(self) -> Expr | None:
        return self.state.store_predicate

    @property
    def group(self) -> StageGroup | None:
        """The innermost group that this stage belongs to, if any."""
        return None if self.state.group is None else StageGroup(self.schedule, self.state.group)

    @property
    def num_child_stages(self) -> int:
        """Always 0: only groups contain stages."""
        return 0

    if not TYPE_CHECKING:  # type checkers know what there is, and say so themselves

        def __getattr__(self, name: str) -> Any:
            if name in Stage.__slots__:  # not yet: it is being copied
                raise AttributeError(name)
            raise missing_attribute("a stage", name, Stage, _elsewhere(self.state))

        def __call__(self, *args: Any, **named: Any) -> Any:
            raise ArgumentTypeError(f"a stage cannot be called: it says how to compute {self.name}, and is not compiled yet",
                                    hint="f = tedsl.build(s, [A, B]), then f(a, b)")

    def _repr_html_(self) -> str:
        return stage_page(self)

    def __repr__(self) -> str:
        return f"stage({self.name}, {self.op!r})"

    def __str__(self) -> str:
        return stage_text(self.state)


def _elsewhere(stage: StageState) -> dict[str, str]:
    """For each name that the operation or the schedule of `stage` has and its handle lacks, the text to write instead."""
    fields = {name: f"{stage.handle}.op.{name}" for name in dir(stage.op) if not name.startswith("_")}
    return {**fields, **{name: f"s.{name}({stage.tensor_written}, ...)" for name in OF_SCHEDULES}}


def _on_the_stage(version: StageState, name: str, args: Sequence[Any]) -> str:
    """The hint for a directive `name` that was called on a version and must be written on the stage instead."""
    if name != "specialize":
        return f"write {version.written}.{name}(...), before specialize if it changes loops"
    narrower = show(args[0]) if args else "condition"
    return (f"versions do not nest: write {version.written}.specialize(te.all({shown(version.condition)}, {narrower})) and its "
            f"directives, before {version.written}.specialize({shown(version.condition)}): the first version whose condition "
            "holds runs")


class Specialized(Stage):
    """The version of a stage for calls in which a condition holds, made by `specialize`. It has directives on loops only."""

    __slots__ = ()

    def _owner(self, directive: str, args: Sequence[Any]) -> Owner:
        if directive not in OF_LOOPS:
            problem = f"this is the version of {self.name} where {shown(self.state.condition)}, and {directive} is about the " \
                      "stage as a whole"
            raise self.state.refuse(f"{directive}(...)", problem, hint=_on_the_stage(self.state, directive, args))
        return super()._owner(directive, args)

    @property
    def condition(self) -> Expr:
        """The condition of the calls that run this version."""
        assert self.state.condition is not None
        return self.state.condition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specialized) and self.state is other.state

    def __hash__(self) -> int:
        return hash(self.state)

    def __repr__(self) -> str:
        return f"stage({self.name} where {self.condition!r})"

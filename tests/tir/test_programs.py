"""Programs of users of TVM v0.8 that write loops and run passes over them, each with the mistakes that are made there."""

import numpy as np
import pytest

import tedsl as tvm
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError
from tests.refusing import refused

T = tvm.tir.transform


def values(f, n, scale=1.0):
    """What the function f(a, b) of arrays of n numbers writes to b for a = 0, 1, 2, ..."""
    a, b = tvm.nd.array(np.arange(n, dtype="float32") * scale), tvm.nd.array(np.zeros(n, "float32"))
    f(a, b)
    return b.numpy().tolist()


def one_stage(n=16):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 2.0, name="B")
    return te.create_schedule(B.op), [A, B]


def lowered(n=16):
    return tvm.lower(*one_stage(n))


def doubled(guard=True, outside=False):
    """B = 2 A in vectors of eight under a guard, by the ir_builder."""
    ib = tvm.tir.ir_builder.create()
    n = te.size_var("n")
    source, target = tvm.tir.decl_buffer((n,), "float32", name="A"), tvm.tir.decl_buffer((n,), "float32", name="B")
    A, B = ib.buffer_ptr(source), ib.buffer_ptr(target)
    with ib.for_range(0, (n + 7) // 8, name="io") as io, ib.for_range(0, 8, name="ii", kind="vectorize") as ii:
        at = io * 8 + ii + (te.var("shift") if outside else 0)
        if guard:
            with ib.if_scope(ib.likely(at < n)):
                B[at] = A[at] * 2.0
        else:
            B[at] = A[at] * 2.0
    return tvm.IRModule.from_expr(tvm.tir.PrimFunc([source, target], ib.get()).with_attr("global_symbol", "double"))


# --- 1: loops by the ir_builder, passes by Sequential ------------------------------------------------------------------------

VECTORS = tvm.transform.Sequential([T.StorageFlatten(64), T.Simplify(), T.LoopPartition(), T.VectorizeLoop(), T.RemoveNoOp()])


@pytest.mark.parametrize("n", [1, 7, 8, 13])
def test_vectors_by_hand(n):
    assert values(tvm.build(VECTORS(doubled()), target="llvm"), n) == [2.0 * k for k in range(n)]


def test_vectors_by_hand_printed(golden):
    mod = doubled()
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["tir.VectorizeLoop"]):
        scalars = VECTORS(mod)
    golden.sections(before=str(mod), after=str(VECTORS(mod)), scalars=str(scalars))
    assert '"vectorized"' in str(scalars)


def test_mistakes_in_vectors_by_hand():
    refused(lambda: VECTORS(doubled()["double"]), "takes a module, not a function", "from_expr", error=ArgumentTypeError)
    refused(lambda: tvm.transform.Sequential([T.Simplify])(doubled()), "Simplify does not take a module", "Simplify()")
    refused(lambda: tvm.build(VECTORS(doubled(outside=True)), target="llvm"), "shift", "argument", error=LoweringError)
    refused(lambda: T.StorageFlatten("64"), "a number of bytes, not '64'", "StorageFlatten(64)", error=ArgumentTypeError)


# --- 2: times of passes -------------------------------------------------------------------------------------------------------

def test_times_of_passes():
    timing = tvm.ir.instrument.PassTimingInstrument()
    mod = lowered()
    with tvm.transform.PassContext(instruments=[timing]):
        tvm.transform.Sequential([T.Simplify(), T.UnrollLoop()], name="two")(mod)
        profile = timing.render()
    assert [line.strip().split(":")[0] for line in profile.splitlines() if line.strip()] == \
        ["two", "tir.Simplify", "tir.UnrollLoop", "Total"]


def test_mistakes_in_times_of_passes():
    timing = tvm.ir.instrument.PassTimingInstrument
    refused(lambda: tvm.transform.PassContext(instruments=[timing]), "instruments is a list of instruments", error=OptionError)
    refused(lambda: tvm.transform.PassContext(instruments=print), "instruments is a list", error=OptionError)
    refused(lambda: tvm.transform.Sequential(T.Simplify(), T.UnrollLoop()), "takes a list of passes", error=ArgumentTypeError)


# --- 3: a printer before and after passes -------------------------------------------------------------------------------------

def test_an_instrument_of_the_user():
    @tvm.instrument.pass_instrument
    class Shown:
        def __init__(self):
            self.seen = []

        def should_run(self, mod, info):
            return "Unroll" not in info.name

        def run_before_pass(self, mod, info):
            self.seen.append(("before", info.name, str(mod)))

        def run_after_pass(self, mod, info):
            self.seen.append(("after", info.name, str(mod)))

    shown = Shown()
    s, args = one_stage(3)
    s[args[1]].unroll(args[1].op.axis[0])
    mod = T.StorageFlatten(64)(tvm.IRModule.from_expr(te.schedule.SchedulePostProcToPrimFunc(
        args, te.schedule.ScheduleOps(s, te.schedule.InferBound(s)), None)))
    with tvm.transform.PassContext(instruments=[shown]):
        made = tvm.transform.Sequential([T.UnrollLoop(), T.Simplify()], name="mine")(mod)
    assert [(when, name) for when, name, _ in shown.seen] == [
        ("before", "mine"), ("before", "tir.Simplify"), ("after", "tir.Simplify"), ("after", "mine")]
    assert '"unroll"' in str(made) and str(made) == shown.seen[-1][2]


def test_mistakes_in_instruments():
    @tvm.instrument.pass_instrument
    class Undecided:
        def should_run(self, mod, info):
            return "yes"

    with tvm.transform.PassContext(instruments=[Undecided()]):
        refused(lambda: T.Simplify()(lowered()), "should_run", "'yes'", error=ArgumentTypeError)
    refused(lambda: tvm.transform.PassContext(opt_level="3"), "opt_level", "int, not '3'", error=OptionError)
    refused(lambda: tvm.transform.PassContext(disabled_pass="tir.UnrollLoop"), "a list of names of passes", error=OptionError)
    with pytest.warns(UserWarning, match=r"did you mean tir\.UnrollLoop"):
        tvm.transform.PassContext(disabled_pass=["tir.UnrolLoop"])


# --- 4: a pass of the user over functions -------------------------------------------------------------------------------------

@T.prim_func_pass(opt_level=0)
def products(func, mod, ctx):
    def product(node):
        return tvm.tir.Mul(node.a, node.b) if node.dtype == "float32" else None

    return func.with_body(tvm.tir.stmt_functor.ir_transform(func.body, None, product, ["tir.Add"]))


def test_a_pass_of_the_user():
    mod = lowered(5)
    assert values(tvm.build(products(mod), target="llvm"), 5) == [0, 2, 4, 6, 8]
    assert values(tvm.build(mod, target="llvm"), 5) == [2, 3, 4, 5, 6]
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, products)]}):
        assert values(tvm.build(*one_stage(5), target="llvm"), 5) == [0, 2, 4, 6, 8]
    assert products.info.name == "products" and repr(products) == "ModulePass('products', opt_level=0)"


def test_mistakes_in_passes_of_the_user():
    refused(lambda: T.prim_func_pass(lambda func: func, opt_level=0), "does not take func, mod, ctx", error=ArgumentTypeError)
    broken = T.prim_func_pass(lambda func, mod, ctx: func.body, opt_level=0)
    refused(lambda: broken(lowered()), "returned a For", error=ArgumentTypeError)
    refused(lambda: T.Apply(lambda func: None)(lowered()), "tir.Apply returned None", error=ArgumentTypeError)
    refused(lambda: tvm.transform.PassContext(config={"tir.add_lower_pass": [products]}), "pairs (phase 0 to 3, pass)",
            error=OptionError)


# --- 5: passes that are classes, and passes over modules ----------------------------------------------------------------------

@T.prim_func_pass(opt_level=1)
class Renamed:
    def __init__(self, suffix):
        self.suffix = suffix

    def transform_function(self, func, mod, ctx):
        return func.with_attr("global_symbol", func.attrs["global_symbol"] + self.suffix)


@tvm.transform.module_pass(opt_level=2, name="with_copies")
def with_copies(mod, ctx):
    for name, func in mod.items():
        mod[f"{name}_copy"] = func.with_attr("global_symbol", f"{name}_copy")
    return mod


def test_passes_that_are_classes_and_passes_over_modules():
    mod = lowered(4)
    both = tvm.transform.Sequential([with_copies, Renamed("_x")])(mod)
    assert [func.attrs["global_symbol"] for func in both.functions.values()] == ["main_x", "main_copy_x"] and len(mod) == 1
    with tvm.transform.PassContext(opt_level=1):
        assert len(tvm.transform.Sequential([with_copies, Renamed("_x")])(mod)) == 1
    with tvm.transform.PassContext(opt_level=1, required_pass=["with_copies"]):
        assert len(tvm.transform.Sequential([with_copies, Renamed("_x")])(mod)) == 2


def test_mistakes_in_passes_that_are_classes():
    class Empty:
        pass

    refused(lambda: T.prim_func_pass(Empty, opt_level=0), "no method transform_function", error=ArgumentTypeError)
    refused(lambda: tvm.transform.module_pass(Empty, opt_level=0), "no method transform_module", error=ArgumentTypeError)
    refused(lambda: Renamed()(lowered()), "suffix", error=TypeError)
    refused(lambda: tvm.transform.module_pass(lambda mod, ctx: None, opt_level=0)(lowered()), "returned None",
            error=ArgumentTypeError)
    refused(lambda: tvm.transform.module_pass(lambda mod, ctx: mod, opt_level=7), "between 0 and 4", error=OptionError)


# --- 6: the lowering of v0.8's driver, step by step -----------------------------------------------------------------------

PHASES = [T.InjectPrefetch(), T.StorageFlatten(64), T.BF16Legalize(), T.NarrowDataType(32), T.Simplify(), T.LoopPartition(),
          T.VectorizeLoop(True), T.InjectVirtualThread(), T.InjectDoubleBuffer(), T.StorageRewrite(), T.UnrollLoop(),
          T.Simplify(), T.RemoveNoOp(), T.RewriteUnsafeSelect(), T.HoistIfThenElse()]


@pytest.mark.parametrize("n", [1, 5, 16])
def test_lowering_step_by_step(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[C].vectorize(inner)
    s[B].compute_at(s[C], outer)
    func = te.schedule.SchedulePostProcToPrimFunc([A, C], te.schedule.ScheduleOps(s, te.schedule.InferBound(s)), None)
    made = tvm.transform.Sequential(PHASES)(tvm.IRModule.from_expr(func))
    assert values(tvm.build(made, target="llvm"), n) == [2.0 * k + 2 for k in range(n)]


def test_mistakes_in_lowering_step_by_step():
    mod = lowered()
    refused(lambda: T.NarrowDataType(32.0), "16, 32 or 64 bits, not 32.0", error=ArgumentError)
    refused(lambda: T.VectorizeLoop("yes"), "True or False, not 'yes'", error=ArgumentTypeError)
    refused(lambda: T.HoistIfThenElse("advanced"), "no variant 'advanced'", error=ArgumentError)
    refused(lambda: T.Simplify()(mod["main"].body), "takes a module, not a For", error=ArgumentTypeError)
    refused(lambda: tvm.IRModule.from_expr(mod["main"].body), "takes a function, not a For", "PrimFunc",
            error=ArgumentTypeError)
    refused(lambda: T.CoProcSync(), "there are no coprocessors here", error=OptionError)


# --- 7: kernels of a device -----------------------------------------------------------------------------------------------

def reversed_rows(scope="shared"):
    ib = tvm.tir.ir_builder.create()
    A = ib.pointer("float32", name="A")
    x, b = te.thread_axis("threadIdx.x"), te.thread_axis("blockIdx.x")
    ib.scope_attr(b, "thread_extent", 4)
    ib.scope_attr(x, "thread_extent", 32)
    row = ib.allocate("float32", 32, name="row", scope=scope)
    row[x.var] = A[b.var * 32 + x.var]
    A[b.var * 32 + x.var] = row[31 - x.var]
    return tvm.IRModule.from_expr(tvm.tir.PrimFunc([A.asobject()], ib.get()).with_attr("global_symbol", "turn"))


def test_a_kernel_is_checked_and_split():
    mod = T.Apply(lambda func: func.with_attr("target", tvm.target.Target("cuda")))(reversed_rows())
    func = mod["turn"]
    assert tvm.tir.analysis.verify_gpu_code(func, {"max_threads_per_block": 32, "max_shared_memory_per_block": 128})
    assert not tvm.tir.analysis.verify_gpu_code(func, {"max_shared_memory_per_block": 127})
    assert tvm.tir.analysis.verify_memory(func) and tvm.tir.analysis.verify_ssa(func)
    synced = T.ThreadSync("shared")(mod)
    assert str(synced).count("tvm_storage_sync") == 1 and "tvm_storage_sync" not in str(mod)
    assert [var.name_hint for var in T.SplitHostDevice()(synced).functions] == ["turn", "turn_kernel0"]


def test_mistakes_in_kernels():
    refused(lambda: T.ThreadSync("local"), "no scope 'local'", error=ArgumentError)
    refused(lambda: T.ThreadSync(), "'storage_scope' is missing", error=ArgumentTypeError)
    refused(lambda: T.SplitHostDevice()(reversed_rows()), "no attribute \"target\"", "with_attr", error=LoweringError)
    refused(lambda: tvm.tir.analysis.verify_memory(reversed_rows()), "takes a function, not an IRModule",
            error=ArgumentTypeError)
    refused(lambda: tvm.tir.analysis.verify_ssa(reversed_rows()), "mod['main']", error=ArgumentTypeError)
    refused(lambda: T.MergeDynamicSharedMemoryAllocations(), "one piece in each kernel", error=OptionError)


# --- 8: options of passes, and functions chosen ---------------------------------------------------------------------------

@pytest.mark.parametrize("options, loops", [({}, 1), ({"auto_max_extent": 3}, 0), ({"auto_max_step": 16}, 0)])
def test_options_of_passes(options, loops):
    mod = with_copies(lowered(3))
    kept = T.Filter(lambda func: func.attrs["global_symbol"].endswith("copy"))
    with tvm.transform.PassContext(config={"tir.UnrollLoop": options}):
        made = tvm.transform.Sequential([kept, T.UnrollLoop(), tvm.transform.PrintIR()])(mod)
    assert str(made).count("for (") == loops and list(made) == ["main_copy"]


def test_mistakes_in_options():
    context = tvm.transform.PassContext
    refused(lambda: context(config={"tir.UnrollLop": {}}), "no option 'tir.UnrollLop'", "tir.UnrollLoop", error=OptionError)
    refused(lambda: context(config={"tir.UnrollLoop": {"auto_max_steps": 3}}), "no key 'auto_max_steps'", error=OptionError)
    refused(lambda: context(config={"tir.UnrollLoop": 3}), "is a dict with auto_max_step", error=OptionError)
    refused(lambda: T.Filter(lambda func: None)(lowered()), "the condition gives a NoneType for main", error=ArgumentTypeError)
    refused(lambda: lowered()["mian"], "no function 'mian'; it has: main", error=OptionError)
    refused(lambda: tvm.transform.Sequential([lambda mod: None])(lowered()), "returned None", error=ArgumentTypeError)
    refused(lambda: tvm.transform.Sequential([lambda mod: T.Simplify()])(lowered()), "what a call gives",
            error=ArgumentTypeError)

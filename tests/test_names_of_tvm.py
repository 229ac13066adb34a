"""Modules of names over what the compiler does anyway: te.schedule, tir.transform, tir.stmt_functor, ir."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tedsl
from tedsl import ir, te, tir, transform
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError
from tedsl.ir.evaluate import run
from tedsl.ir.stmt import BufferRealize


def chain():
    A = te.placeholder((8, 6), name="A")
    row = te.placeholder((6,), name="R")
    B = te.compute((8, 6), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 6), lambda i, j: B[i, j] * row[j], name="C")
    D = te.compute((6, 8), lambda i, j: C[j, i], name="D")
    k = te.reduce_axis((0, 8), "k")
    E = te.compute((6,), lambda i: te.sum(D[i, k], axis=k), name="E")
    return A, row, B, C, D, E


# --- te.schedule ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, inlined", [
    ("AutoInlineElemWise", "B"), ("AutoInlineBroadcast", "BC"), ("AutoInlineInjective", "BCD")])
def test_auto_inline(name, inlined):
    A, row, B, C, D, E = chain()
    s = te.create_schedule(E.op)
    getattr(te.schedule, name)(s)
    assert "".join(t.op.name for t in (B, C, D, E) if s[t].attach_type == 2) == inlined
    assert str(s.journal) == "\n".join(f"s[{name}].compute_inline()" for name in inlined)
    a, r = np.arange(48, dtype="float32").reshape(8, 6), np.arange(6, dtype="float32")
    out = np.zeros(6, "float32")
    tedsl.build(s, [A, row, E])(a, r, out)
    np.testing.assert_array_equal(out, ((a + 1) * r).sum(axis=0))


def test_auto_inline_leaves_what_was_scheduled():
    _, _, B, C, D, E = chain()
    s = te.create_schedule([E.op, D.op])
    s[B].split(B.op.axis[0], 4)
    s[C].compute_at(s[D], D.op.axis[0])
    te.schedule.AutoInlineInjective(s)
    assert [int(s[t].attach_type) for t in (B, C, D, E)] == [1, 4, 1, 1]


def test_the_range_of_every_loop():
    A = te.placeholder((20,), name="A")
    B = te.compute((20,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((18,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 6)
    s[B].compute_at(s[C], outer)
    bounds = te.schedule.InferBound(s)
    assert isinstance(bounds, tedsl.container.Map)
    assert {axis.name: (str(r.min), int(r.extent)) for axis, r in bounds.items() if axis.name != "i"} == {
        "i.outer": ("0", 3), "i.inner": ("0", 6)}
    assert int(bounds[C.op.axis[0]].extent) == 18 and int(bounds[B.op.axis[0]].extent) == 8
    assert "i.outer" in str(bounds[B.op.axis[0]].min)
    normal = s.normalize()
    assert te.schedule.InferBound(normal)[inner].extent.value == 6


def test_the_loops_without_arguments():
    A, row, B, C, D, E = chain()
    s = te.create_schedule(E.op)
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    made = []
    tir.stmt_functor.post_order_visit(stmt, lambda n: made.append(n.buffer.name) if isinstance(n, BufferRealize) else None)
    assert made == ["E", "D", "C", "B"]
    with pytest.raises(ArgumentError, match=r"give te\.schedule\.InferBound"):
        te.schedule.ScheduleOps(s, {})
    with pytest.raises(ArgumentTypeError, match="a Schedule is needed"):
        te.schedule.InferBound(stmt)


def test_relations_and_constants():
    A = te.placeholder((20, 20), name="A")
    B = te.compute((20, 20), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 6)
    s[B].fuse(inner, B.op.axis[1])
    s[B].fuse()
    split, fuse, single = s[B].relations
    assert isinstance(split, te.schedule.Split) and (split.outer, split.inner, int(split.factor)) == (outer, inner, 6)
    assert isinstance(fuse, te.schedule.Fuse) and isinstance(single, te.schedule.Singleton)
    assert te.schedule.IterVar.Vectorized == te.schedule.Vectorized == 6 and te.schedule.CommReduce == 2


def lowered_by_hand(s, args):
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    return tedsl.IRModule.from_expr(te.schedule.SchedulePostProcToPrimFunc(args, stmt, None))


def test_the_loops_as_a_function():
    A, row, B, C, D, E = chain()
    s = te.create_schedule(E.op)
    s.cache_write(E, "local")
    s[B].compute_inline()
    module = lowered_by_hand(s, [A, row, D, E])
    func = module["main"]
    assert [buffer.name for buffer in func.buffers] == ["A", "R", "D", "E"] and func.attrs["from_legacy_te_schedule"]
    made = []
    tir.stmt_functor.post_order_visit(func.body, lambda n: made.append(n.buffer.name) if isinstance(n, BufferRealize) else None)
    assert sorted(made) == ["C", "E.local"]
    a, r = np.arange(48, dtype="float32").reshape(8, 6), np.arange(6, dtype="float32")
    flat = transform.Sequential([tir.transform.StorageFlatten(64), tir.transform.Simplify()])(module)
    for one in (module, flat):
        d, e = np.zeros((6, 8), "float32"), np.zeros(6, "float32")
        tedsl.build(one, target="llvm")(a, r, d, e)
        np.testing.assert_array_equal(d, ((a + 1) * r).T)
        np.testing.assert_array_equal(e, ((a + 1) * r).sum(axis=0))


def test_the_loops_as_a_function_of_any_size():
    n = te.var("n")
    A, unread = te.placeholder((n,), name="A"), te.placeholder((n,), name="U")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    C = te.compute((n,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    a, c = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    tedsl.build(lowered_by_hand(s, [n, A, unread, C]))(5, a, a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)
    s[B].compute_inline()
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    with pytest.raises(ArgumentError, match="does not compute B"):
        te.schedule.SchedulePostProcToPrimFunc([A, B, C], stmt)
    with pytest.raises(ArgumentError, match=r"tedsl\.lower\(s, args, binds="):
        te.schedule.SchedulePostProcToPrimFunc([A, C], stmt, {A: tir.decl_buffer((n,))})
    with pytest.raises(ArgumentTypeError, match="an argument is 3"):
        te.schedule.SchedulePostProcToPrimFunc([3, A], stmt)


# --- tir.transform -------------------------------------------------------------------------------------------------------

def program():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 8)
    s[B].vectorize(inner)
    return tedsl.driver.schedule_to_module(s, [A, B])


def test_the_passes_of_lower_one_by_one():
    t = tir.transform
    steps = [t.StorageFlatten(64), t.NarrowDataType(32), t.Simplify(), t.LoopPartition(), t.VectorizeLoop(True),
             t.InjectVirtualThread(), t.InjectDoubleBuffer(), t.StorageRewrite(), t.UnrollLoop(), t.Simplify(), t.RemoveNoOp(),
             t.RewriteUnsafeSelect(), t.HoistIfThenElse(), t.VerifyMemory()]
    before = program()
    text = str(before)
    after = transform.Sequential(steps)(before)
    assert str(before) == text
    mark = ' annotations = {"partition_tail": 1}'  # of lower for build
    assert str(after) == str(tedsl.lower(before["main"])).replace(mark, "")
    a, b = np.arange(21, dtype="float32"), np.zeros(21, "float32")
    run(transform.Sequential([t.LowerIntrin()])(after)["main"], [a, b])
    np.testing.assert_array_equal(b, a + 1)


def test_the_driver_by_its_old_name():
    from tedsl.driver import build_module

    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    module = build_module.schedule_to_module(te.create_schedule(B.op), [A, B], "main", None)
    assert isinstance(module, tedsl.IRModule) and build_module.lower is tedsl.lower


def test_options_of_the_context_and_arguments():
    flat = tir.transform.StorageFlatten(64)(program())
    assert "ramp" not in str(tir.transform.VectorizeLoop(False)(flat))
    with pytest.raises(ArgumentTypeError, match=r"tir.Simplify takes a module.*\n.*from_expr"):
        tir.transform.Simplify()(flat["main"])
    with pytest.raises(ArgumentError, match="16, 32 or 64 bits"):
        tir.transform.NarrowDataType(8)
    with pytest.raises(AttributeError, match=r"tir\.transform' has no attribute 'Inline'"):
        tir.transform.Inline


def test_passes_of_the_user():
    @tir.transform.prim_func_pass(opt_level=1, name="renamed")
    def rename(func, mod, ctx):
        assert isinstance(mod, tedsl.IRModule) and isinstance(ctx, transform.PassContext)
        return func.with_attr("note", 1)

    @tir.transform.prim_func_pass(opt_level=0)
    class Note:
        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("note", self.value)

    assert rename.info.name == "renamed" and rename.info.opt_level == 1
    assert rename(program())["main"].attrs["note"] == 1
    assert Note(7)(program())["main"].attrs["note"] == 7
    assert tir.transform.Apply(lambda f: f.with_attr("note", 3))(program())["main"].attrs["note"] == 3
    with pytest.raises(ArgumentTypeError, match=r"the pass tir\.Apply returned None"):
        tir.transform.Apply(lambda f: None)(program())


# --- tir.stmt_functor and ir ----------------------------------------------------------------------------------------------

def test_rewriting_with_functions():
    func = program()["main"]
    seen = []
    kept = tir.stmt_functor.ir_transform(func.body, lambda n: seen.append(type(n).__name__), None, ["tir.For"])
    assert kept is func.body and seen == ["For", "For"]
    one = tir.stmt_functor.ir_transform(func.body, None, lambda n: tir.FloatImm(n.dtype, 2.0), ["tir.FloatImm"])
    assert "2f32" in str(func.with_body(one)) and "1f32" not in str(func.with_body(one))
    gone = tir.stmt_functor.ir_transform(func.body, lambda n: tir.Evaluate(tir.const(0)), None, ["tir.For"])
    assert isinstance(gone, tir.Evaluate)


@pytest.mark.parametrize("names, words", [
    (["tir.For", "tir.Stor"], r"no nodes called 'tir\.Stor'\n  hint: did you mean Store\?"),
    (["tir.Stmt"], "no nodes called"), ([3], "no nodes called 3"),
    ("tir.For", r"a list of names[^\n]*\n  hint: \['tir.For'\]")])
def test_rewriting_nodes_that_do_not_exist(names, words):
    with pytest.raises((OptionError, ArgumentTypeError), match=words):
        tir.stmt_functor.ir_transform(program()["main"].body, None, lambda n: n, names)


def test_functions_that_give_no_node():
    for steps in ((lambda n: "a", None), (None, lambda n: "a"), (None, lambda n: [n])):
        with pytest.raises(ArgumentTypeError, match=r"the function gives a (str|list) for a node\n  hint: it gives a"):
            tir.stmt_functor.ir_transform(program()["main"].body, *steps, ["tir.For"])


def test_names_are_no_variables_and_numbers_no_names():
    x = tir.Var("x", "int32")
    with pytest.raises(ArgumentTypeError, match="substitute replaces variables, and 'x' is none"):
        tir.stmt_functor.substitute(tir.Evaluate(x + 1), {"x": 3})
    with pytest.raises(ArgumentTypeError, match="a string or a GlobalVar, not 3"):
        tedsl.IRModule({3: program()["main"]})


def test_accesses_to_buffers_are_flat_in_lowered_modules():
    body, rewrite = tedsl.lower(program())["main"].body, tir.stmt_functor.ir_transform
    with pytest.warns(UserWarning, match=r"no BufferStore: nothing changes\. Lowered modules hold tir\.Store[^\n]*\n  "
                                         r"hint: tir\.Store\(o\.buffer_var, o\.value, o\.index\)$"):
        assert rewrite(body, None, lambda n: tir.Evaluate(0), ["tir.BufferStore"]) is body
    with pytest.warns(UserWarning, match="no BufferLoad and no BufferStore"):
        rewrite(body, None, lambda n: n, ["tir.BufferLoad", "tir.BufferStore"])
    data = tir.decl_buffer((4,), name="data")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for names in (["tir.BufferStore", "tir.Store"], ["tir.For"], []):
            assert rewrite(body, None, lambda n: None, names) is body
        store = tir.BufferStore(data, tir.const(1, "float32"), [0])
        assert isinstance(rewrite(store, None, lambda n: tir.Evaluate(0), ["tir.BufferStore"]), tir.Evaluate)
        rewrite(store, None, lambda n: None, ["tir.BufferLoad"])  # of a function before its memory is flat


@pytest.mark.parametrize("kind", ["Store", "Load"])
def test_flat_accesses_name_their_fields(kind):
    found = []
    tir.stmt_functor.post_order_visit(tedsl.lower(program())["main"].body,
                                      lambda n: isinstance(n, getattr(tir, kind)) and found.append(n))
    for asked, own in (("buffer", "buffer_var"), ("indices", "index")):
        with pytest.raises(AttributeError, match=f"a {kind} has no {asked}\n  hint: did you mean {own}, "):
            getattr(found[0], asked)
    with pytest.raises(AttributeError, match=f"'{kind}' object has no attribute 'extent'"):
        getattr(found[0], "extent")  # noqa: B009
    assert not hasattr(found[0], "buffer")


def test_names_of_ir():
    x = tir.Var("x", "int32")
    assert ir.structural_equal(x + 1, x + 1) and not ir.structural_equal(x + 1, x + 2)
    assert ir.structural_hash(x + 1) == ir.structural_hash(x + 1)
    ir.assert_structural_equal(x, x)
    assert ir.Range is te.Range and ir.IRModule is tedsl.IRModule and isinstance(x, ir.PrimExpr)
    assert int(ir.Range(2, 6).extent) == 4 and ir.GlobalVar and "Range" in dir(ir)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ir.nothing


# --- modules that programs import -------------------------------------------------------------------------------------------

def test_errors_and_tensors_by_their_modules():
    import tedsl.error
    from tedsl.te.tensor import ComputeOp, PlaceholderOp, Tensor

    assert tedsl.error.TVMError is tedsl.TVMError is tedsl.TedslError and tedsl.error.InternalError is tedsl.InternalError
    A, _, B, *_ = chain()
    assert isinstance(A.op, PlaceholderOp) and isinstance(B.op, ComputeOp) and isinstance(B, te.tensor.Tensor)
    assert te.tensor.Tensor is Tensor


def test_containers():
    shape, mapping = tedsl.runtime.convert([1, 2]), tedsl.runtime.convert({"a": 1})
    assert isinstance(shape, ir.container.Array) and isinstance(chain()[0].shape, tedsl.container.Array)
    assert isinstance(mapping, ir.container.Map) and ir.Map is tedsl.container.Map and ir.Array is ir.container.Array
    assert isinstance(program()["main"].buffer_map, ir.Map)
    assert mapping.get("a") == 1 and mapping.get("b") is None and list(mapping.items()) == [("a", mapping["a"])]


def test_operators_from_inside_the_package_are_the_same():
    """A second copy of topi would have other classes, and its own tables."""
    code = ("import tedsl.topi.testing, tedsl.topi.nn.softmax as one\n"
            "from tedsl.topi.utils import get_const_tuple\n"
            "from tedsl.topi import nn\n"
            "import tedsl, topi, topi.utils, topi.testing, sys\n"
            "assert tedsl.topi is topi and tedsl.topi.testing is topi.testing and nn is topi.nn\n"
            "assert get_const_tuple is topi.utils.get_const_tuple\n"
            "assert sys.modules['tedsl.topi.utils'] is sys.modules['topi.utils'] and one is topi.nn.softmax\n"
            "assert sys.modules['tedsl.topi.nn.softmax'] is sys.modules['topi.nn.softmax'] and callable(topi.nn.softmax)\n"
            "assert topi.__name__ == topi.__spec__.name == 'topi' and topi.utils.__spec__.name == 'topi.utils'\n"
            "import importlib; assert importlib.reload(topi.tag) is topi.tag\n"
            "try: import tedsl.topi.nothing\n"
            "except ModuleNotFoundError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "" and "No module named 'tedsl.topi.nothing'" in done.stdout


def test_the_ceiling_of_a_division():
    n = te.var("n")
    assert str(tir.ceildiv(n, 4)) == str((n + 3) // 4) and te.ceildiv is tir.ceildiv
    assert [int(te.ceildiv(k, 4)) for k in (-5, -4, -3, 0, 1, 4, 5)] == [-1, -1, 0, 0, 1, 1, 2]
    with pytest.raises(tedsl.TedslError, match="ceildiv"):
        te.ceildiv(n.astype("float32"), 4)


def test_analysis_of_functions_and_expressions():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert tir.analysis.expr_deep_equal(x + y, x + y) and not tir.analysis.expr_deep_equal(x + y, y + x)
    assert not tir.analysis.expr_deep_equal(x + 1, y + 1)
    assert tir.analysis.verify_ssa(program()["main"])
    once = tir.Let(x, y + 1, x * 2)
    for body, single in [(once + once, True), (once + tir.Let(x, y, x), False), (tir.Let(y, x, y), False)]:
        assert tir.analysis.verify_ssa(tir.PrimFunc([y], tir.Evaluate(body))) == single
    loop = tir.For(x, 0, 4, 0, tir.Evaluate(x))
    assert tir.analysis.verify_ssa(tir.PrimFunc([y], loop)) and not tir.analysis.verify_ssa(tir.PrimFunc([x], loop))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([], tir.SeqStmt([loop, tir.For(x, 0, 4, 0, tir.Evaluate(0))])))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([], tir.SeqStmt([loop, loop])))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([x, x], tir.Evaluate(0)))


def test_a_pass_of_the_user_on_modules():
    @transform.module_pass(opt_level=1, name="twice")
    def twice(mod, ctx):
        assert isinstance(ctx, transform.PassContext)
        return tedsl.IRModule({"again": mod["main"], **dict(mod.items())})

    @transform.module_pass(opt_level=0)
    class Keep:
        def __init__(self, name):
            self.name = name

        def transform_module(self, mod, ctx):
            return tedsl.IRModule({self.name: mod[self.name]})

    assert twice.info.name == "twice" and isinstance(twice, transform.ModulePass)
    both = twice(program())
    assert list(both) == ["again", "main"] and list(Keep("again")(both)) == ["again"]
    assert list(transform.Sequential([twice, Keep("again")])(program())) == ["again"]
    with pytest.raises(ArgumentTypeError, match="the pass forgetful returned None"):
        transform.module_pass(lambda mod, ctx: None, opt_level=0, name="forgetful")(program())


def test_folders_for_a_while():
    with tedsl.contrib.utils.tempdir() as temp:
        path = temp.relpath("temp.ll")
        assert temp.listdir() == [] and os.path.dirname(path) == temp.temp_dir == temp.path
        open(path, "w").close()
        assert temp.listdir() == ["temp.ll"]
    assert not os.path.exists(path)
    kept = tedsl.contrib.utils.tempdir()
    kept.remove()
    assert not os.path.exists(kept.path)


def test_what_is_reached_by_attributes_alone():
    code = ("import tedsl; tedsl.contrib.utils.tempdir(); tedsl.contrib.clang.create_llvm; tedsl.contrib.intrinsics\n"
            "tedsl.error.TVMError; tedsl.container.Array; tedsl.ir.container.Map; tedsl.te.tensor.Tensor; tedsl.topi.testing\n"
            "tedsl.tir.analysis.verify_ssa; tedsl.tir.expr.IntImm; tedsl.tir.stmt.For; tedsl.tir.buffer.Buffer\n"
            "assert {'contrib', 'container', 'error', 'topi'} <= set(dir(tedsl)) and 'utils' in dir(tedsl.contrib)\n"
            "tedsl.contrib.nothing")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith(
        "'tedsl.contrib' has no attribute 'nothing'\n  hint: it has cblas, cc, clang, dlpack, download, intrinsics, nvcc, "
        "pickle_memoize, random, sparse, tar, tedd, utils\n"), \
        done.stderr


def test_importing_it_does_not_import_pytest():
    code = "import tedsl.testing, tedsl.contrib.utils, sys; tedsl.testing.enabled_targets(); print('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_statements_in_sequence():
    one, two = tir.Evaluate(tir.const(1)), tir.Evaluate(tir.const(2))
    made = tir.stmt_seq(one, te.var("x") + 1, tir.SeqStmt([two, one]))
    assert isinstance(made, tir.SeqStmt) and len(made) == 3
    listed = tir.stmt_list(made)
    assert len(listed) == 4 and listed[0] is one and listed[2] is two and repr(listed[1].value) == "(x + 1)"
    assert tir.stmt_seq(two) is two and tir.stmt_list(two) == [two]
    with pytest.raises(ArgumentTypeError, match="stmt_seq takes statements"):
        tir.stmt_seq("x")


def test_arithmetic_by_name():
    x, y = te.var("x"), te.var("y")
    assert [repr(f(x, y)) for f in (tir.add, tir.subtract, tir.multiply)] == ["(x + y)", "(x - y)", "(x*y)"]
    assert tir.add(1.5, te.var("f", "float32")).dtype == "float32"


def rounded(x, y, q, s):
    """x * y * 2**(s - q), halves upwards, in integers of any size."""
    right = q + max(-s, 0)
    return ((x << max(s, 0)) * y + (1 << (right - 1))) >> right


@pytest.mark.parametrize("q, s", [(31, 0), (31, -3), (31, 2), (1, 0), (15, -31)])
def test_products_of_fixed_point_numbers(q, s):
    numbers = np.array([0, 1, -1, 5, -5, 1 << 20, -(1 << 20), 2**29 - 1, -(2**29)], "int32")
    A, B = te.placeholder((9,), "int32", name="A"), te.placeholder((9,), "int32", name="B")
    C = te.compute((9, 9), lambda i, j: tir.q_multiply_shift(A[i], B[j], q, s), name="C")
    out = np.zeros((9, 9), "int32")
    tedsl.build(te.create_schedule(C.op), [A, B, C])(numbers, numbers, out)
    want = [[rounded(int(a), int(b), q, s) for b in numbers] for a in numbers]
    np.testing.assert_array_equal(out, np.array(want).astype("int32"))
    with pytest.raises(tedsl.TedslError, match="takes int32"):
        tir.q_multiply_shift(te.var("f", "float32"), 1.0, q, s)
    with pytest.raises(ArgumentError, match="q is 0"):
        tir.q_multiply_shift(te.var("x"), 1, 0, 0)


def test_modules_by_their_other_names():
    assert ir.transform is transform and ir.BaseFunc is tir.PrimFunc and "transform" in dir(ir)
    from tedsl.te.operation import compute, placeholder

    assert compute is te.compute and te.operation.placeholder is placeholder is te.placeholder


def test_programs_as_text():
    func = program()["main"]
    again = ir.load_json(ir.save_json(func))
    ir.assert_structural_equal(again, func)
    module = ir.load_json(ir.save_json(program()))
    assert isinstance(module, tedsl.IRModule) and str(module) == str(program())
    for text in ("{", "[]", '{"module": true}', 3):
        with pytest.raises(ArgumentError, match=r"load_json|data of a program"):
            ir.load_json(text)


def test_functions_of_a_module():
    module = program()
    module.update_func("a", module["main"])
    assert [name.name_hint for name, _ in module.functions_items()] == ["a", "main"]
    assert list(tir.transform.Filter(lambda func: func is module["a"])(module)) == ["main", "a"]
    assert list(tir.transform.Filter(lambda func: False)(module)) == []


def test_assertions_are_skipped_and_modules_printed(capsys):
    x = te.var("x")
    body = tir.AssertStmt(x > 0, tir.StringImm("below"), tir.Evaluate(x))
    module = tedsl.IRModule.from_expr(tir.PrimFunc([x], body))
    kept = transform.Sequential([tir.transform.SkipAssert(), transform.PrintIR("after")])(module)
    assert isinstance(kept["main"].body, tir.Evaluate) and capsys.readouterr().out == f"after\n{kept}\n"


def test_the_graph_of_operations():
    A, row, B, C, D, E = chain()
    graph = te.schedule.CreateReadGraph([E.op])
    assert set(graph) == {t.op for t in (A, row, B, C, D, E)} and list(graph[C.op]) == [B, row] and graph[A.op] == ()
    assert te.schedule.PostDFSOrder([E.op], graph) == (A.op, B.op, row.op, C.op, D.op, E.op)
    state = te.placeholder((4, 3), name="S")
    first = te.compute((1, 3), lambda _, i: A[0, i], name="first")
    doubled = te.compute((4, 3), lambda t, i: state[t - 1, i] * 2, name="doubled")
    update = te.compute((4, 3), lambda t, i: doubled[t, i] + A[t, i], name="update")
    scan = te.scan(first, update, state, inputs=[A])
    assert te.schedule.ScanGetBody(scan.op) == (doubled.op, update.op)
    with pytest.raises(ArgumentTypeError, match=r"te\.scan"):
        te.schedule.ScanGetBody(A.op)
    with pytest.raises(ArgumentTypeError, match="CreateReadGraph takes operations"):
        te.schedule.CreateReadGraph([E])


def test_tags_by_their_module():
    assert te.tag.TagScope.get_current() is None
    with te.tag.tag_scope("outer"):
        assert te.tag.TagScope.get_current().tag == "outer"


def test_folders_that_stay(tmp_path):
    kept = tedsl.contrib.utils.tempdir(str(tmp_path / "kept"), keep_for_debug=True)
    gone = tedsl.contrib.utils.tempdir(custom_path=str(tmp_path / "gone"))
    (tmp_path / "kept" / "file").touch()
    path = gone.path
    del gone
    assert not os.path.exists(path) and kept.listdir() == ["file"]
    with pytest.raises(ArgumentError, match="has files"):
        tedsl.contrib.utils.tempdir(kept.path)
    kept.set_keep_for_debug(False)
    del kept
    assert not (tmp_path / "kept").exists()
    assert os.path.isabs(tedsl.contrib.utils.which("python3")) and tedsl.contrib.utils.which("no such program") is None


def test_names_that_arguments_are_called_by():
    assert tedsl.runtime.const(1, dtype="int8").dtype == "int8" and tedsl.runtime.gpu(0) == tedsl.cuda(0)
    assert tedsl.runtime.ndarray is tedsl.nd and tedsl.cl is not None and tedsl.runtime.mtl(0) == tedsl.metal(0)
    x = te.var("x")
    assert repr(tir.stmt_functor.substitute(node=x + 1, vmap={x: 2})) == "(2 + 1)"
    module = tedsl.build(program())
    assert module.format == "tedsl" and module.implements_function("main") and not module.implements_function("other")
    assert tir.PrimFunc([x], tir.Evaluate(x), None, None, None).attrs == tir.PrimFunc([x], tir.Evaluate(x)).attrs

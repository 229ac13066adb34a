"""TVMScript: whole programs as valid Python in which every name is declared before its use, and each kind of node."""

import ast
import builtins
import inspect
import warnings

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError
from tedsl.ir import build, expr, stmt
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import (
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    FloatImm,
    IntImm,
    Let,
    Load,
    Ramp,
    Reduce,
    Shuffle,
    StringImm,
    Var,
    pointer_var,
)
from tedsl.ir.func import GlobalVar, IRModule, PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.node import Node
from tedsl.ir.ops import OPS, Op
from tedsl.ir.stmt import (
    BIND_SCOPE,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Store,
    Tensorized,
    While,
)
from tedsl.ir.tvmscript import TABLE
from tests.ir.programs import F32, function, loop, row_sum, vector_buffer
from tests.lower.test_shown_and_refused import HALF_WAY
from tests.tir.test_every_pass import PROGRAMS

x, y, i, n = Var("x"), Var("y"), Var("i.outer"), Var("n")
v = Var("v", "float32")
P = pointer_var("P", F32)
A, M = vector_buffer("A", 16), decl_buffer((8, 16), "float32", "M")
UP_TO_3 = build.less(x, 3)
RAMP, MASK = Ramp(build.mul(x, 16), build.const(1), 16), build.less(Ramp(x, build.const(1), 16), expr.Broadcast(n, 16))


def names_in_order(text):
    """Parses `text`, and asserts that each name that it uses is declared in a line above or by what is around it."""
    known = {"T", "I", *vars(builtins)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arg):
            known.add(node.arg)
    for name in sorted((node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)),
                       key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset)):
        if isinstance(name.ctx, ast.Store):
            known.add(name.id)
        elif name.id not in known:
            stored = [other for other in ast.walk(ast.parse(text)) if isinstance(other, ast.Name)
                      and other.id == name.id and isinstance(other.ctx, ast.Store)]
            assert any(other.lineno == name.lineno for other in stored) and stored, f"{name.id} in line {name.lineno}:\n{text}"


def lines_of(body, *buffers, scalars=()):
    """The lines of the body of a function with `body`, without indentation of their own; what it declares before included."""
    text = function(body, *buffers, scalars=scalars).script()
    names_in_order(text)
    return [line[4:] for line in text.splitlines()[4:]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_buffers_and_flat_ones_are_python(name):
    module = IRModule({"main": PROGRAMS[name]()})
    for shown in (module, tir.transform.StorageFlatten(64)(module), tedsl.lower(module)):
        names_in_order(shown.script())


@pytest.mark.parametrize("program", [program for program, *_ in HALF_WAY], ids=lambda program: program.__name__)
def test_lowered_schedules_are_python(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = tedsl.lower(*program()).script()
    names_in_order(text)
    assert text.count("@T.prim_func") == 1 and "T.match_buffer(" in text


def scaled():
    m, k = te.size_var("m"), te.size_var("k")
    X, Y = te.placeholder((m, k), name="X"), te.placeholder((m, k), name="Y")
    Z = te.compute((m, k), lambda i, j: X[i, j] + Y[i, j] * 2.0, name="Z")
    s = te.create_schedule(Z.op)
    _, inner = s[Z].split(Z.op.axis[1], 16)
    s[Z].parallel(Z.op.axis[0])
    s[Z].vectorize(inner)
    return s, [X, Y, Z]


def on_a_device():
    X, Y = te.placeholder((64, 64), name="X"), te.placeholder((64, 64), name="Y")
    k = te.reduce_axis((0, 64), "k")
    Z = te.compute((64, 64), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")
    s = te.create_schedule(Z.op)
    kept = s.cache_write(Z, "local")
    shared = s.cache_read(X, "shared", [kept])
    s[Z].bind(Z.op.axis[0], te.thread_axis("blockIdx.x"))
    s[Z].bind(Z.op.axis[1], te.thread_axis("threadIdx.x"))
    s[kept].compute_at(s[Z], Z.op.axis[1])
    outer, _ = s[kept].split(s[kept].op.axis[0] if not s[kept].op.reduce_axis else s[kept].op.reduce_axis[0], 8)
    s[shared].compute_at(s[kept], outer)
    return s, [X, Y, Z]


@pytest.mark.parametrize("program", [scaled, on_a_device], ids=lambda program: program.__name__)
def test_whole_texts(program, golden):
    module = tedsl.lower(*program())
    names_in_order(module.script())
    golden(module.script())


def test_a_function_and_its_prefix(golden):
    golden(row_sum().script())
    assert row_sum().script("tir").replace("tir.", "T.").replace("T.noalias", "tir.noalias") == \
        row_sum().script().replace("tir as T", "tir as tir")
    for wrong in ("a b", "for", 3):
        with pytest.raises(ArgumentError, match="tir_prefix is a name"):
            row_sum().script(wrong)


@pytest.mark.parametrize("body, shown", [
    (loop(i, 4, Evaluate(i)), ["for i_outer in range(4):", "    T.evaluate(i_outer)"]),
    (loop(i, n, Evaluate(i), start=2), ["n = T.int32()", "for i_outer in range(2, 2 + n):", "    T.evaluate(i_outer)"]),
    (loop(i, 4, loop(x, n, loop(y, i + 1, Evaluate(y)))),
     ["n = T.int32()", "for i_outer, x in T.grid(4, n):", "    for y in range(i_outer + 1):", "        T.evaluate(y)"]),
    (loop(i, 4, loop(x, 3, Evaluate(x), ForKind.PARALLEL)), ["for i_outer in range(4):", "    for x in T.parallel(3):"]),
    (For(i, build.const(0), n, ForKind.SERIAL, Evaluate(i), annotations={"partition_tail": 1}), ["for i_outer in range(n):"]),
    (loop(i, n, Evaluate(i), ForKind.PARALLEL, start=2), ["n = T.int32()", "for i_outer in T.parallel(2, 2 + n):"]),
    (loop(i, 4, Evaluate(i), ForKind.VECTORIZED), ["for i_outer in T.vectorized(4):"]),
    (loop(i, 4, Evaluate(i), ForKind.UNROLLED), ["for i_outer in T.unroll(4):"]),
    (For(i, build.const(0), n, ForKind.THREAD_BINDING, Evaluate(i), IterVar(None, Var("tx"), 1, "threadIdx.x")),
     ['for i_outer in T.thread_binding(n, thread="threadIdx.x"):']),
    (For(i, build.const(0), n, ForKind.SERIAL, Evaluate(i), annotations={"tail": "shrink", "list": [1, True, None, 0.5]}),
     ['for i_outer in T.serial(n, annotations={"list": [1, True, None, 0.5], "tail": "shrink"}):']),
    (While(UP_TO_3, Evaluate(x)), ["while x < 3:", "    T.evaluate(x)"]),
    (IfThenElse(build.likely(UP_TO_3), Evaluate(x), Evaluate(y)),
     ["if T.likely(x < 3):", "    T.evaluate(x)", "else:", "    T.evaluate(y)"]),
    (SeqStmt(()), ["T.evaluate(0)"]),
    (LetStmt(v, build.const(2.0), Evaluate(v)), ["v: T.float32 = T.float32(2)", "T.evaluate(v)"]),
    (SeqStmt((LetStmt(v, build.const(2.0), Evaluate(v)), Evaluate(x))),
     ["with T.LetStmt(T.float32(2)) as v:", "    T.evaluate(v)", "T.evaluate(x)"]),
    (SeqStmt((SeqStmt((AssertStmt(UP_TO_3, StringImm('too "large"'), Evaluate(x)),)), Evaluate(x))),
     ['with T.Assert(x < 3, "too \\"large\\""):', "    T.evaluate(x)"]),
    (AssertStmt(UP_TO_3, StringImm("large"), Evaluate(x)), ['assert x < 3, "large"']),
    (Allocate(P, "float32", (n,), build.true(), Store(P, v, x)),
     ['P = T.allocate([n], "float32", "global")', 'P_1 = T.Buffer((n,), "float32", data=P)', "P_1[x] = v"]),
    (SeqStmt((Allocate(P, "float32", (n,), UP_TO_3, Evaluate(x), {"key": 1}), Evaluate(x))),
     ['with T.allocate([n], "float32", "global", x < 3, annotations={"key": 1}) as P:', "    T.evaluate(x)"]),
    (Store(P, v, x, UP_TO_3), ['P = T.handle("float32", "global")', 'P_1 = T.Buffer((1,), "float32", data=P)',
                               "P_1.vstore([x], v, predicate=x < 3)"]),
    (Store(P, Load("float32x16", P, RAMP, MASK), RAMP, MASK),
     ['P_1.vstore([T.Ramp(x * 16, 1, 16)], P_1.vload([T.Ramp(x * 16, 1, 16)], "float32x16", '
      "predicate=T.Ramp(x, 1, 16) < T.Broadcast(n, 16)), predicate=T.Ramp(x, 1, 16) < T.Broadcast(n, 16))"]),
    (Store(P, expr.Broadcast(v, 16), RAMP), ["P_1[x * 16:x * 16 + 16] = T.Broadcast(v, 16)"]),
    (Store(P, expr.Broadcast(v, 4), Ramp(x, build.const(2), 4)), ["P_1[x:x + 8:2] = T.Broadcast(v, 4)"]),
    (BufferStore(M, BufferLoad(M, (x, y)), (build.add(x, 1), y)),
     ['M = T.Buffer((8, 16), "float32")', "M[x + 1, y] = M[x, y]"]),
    (BufferRealize(M, (Range(2, 9), Range(0, 4)), build.true(), BufferStore(M, v, (x, y))),
     ['M = T.Buffer((8, 16), "float32")', 'T.realize(M[2:9, 0:4], "global")', "M[x, y] = v"]),
    (SeqStmt((BufferRealize(M, (Range(2, 9), Range(0, 4)), UP_TO_3, Evaluate(x)), Evaluate(x))),
     ['with T.realize(M[2:9, 0:4], "global", x < 3):', "    T.evaluate(x)"]),
    (Prefetch(M, (Range(0, 4), Range(x, 16))), ["T.prefetch(M, [T.Range(0, 4), T.Range(x, 16)])"]),
    (Tensorized("t", Evaluate(x), Evaluate(y)), ["T.evaluate(x)"]),
    (AttrStmt(StringImm("s"), "pragma_key", build.const(1), Evaluate(x)), ['T.attr("s", "pragma_key", 1)']),
    (AttrStmt(P, "key", StringImm("a\nb"), Evaluate(x)), ['T.attr(P, "key", "a\\nb")']),
    (AttrStmt(IterVar(Range(0, 8), i), "pragma_k", build.const(8), Evaluate(i)),
     ['T.attr(T.iter_var(i_outer, T.Range(0, 8), "DataPar", ""), "pragma_k", 8)']),
    (AttrStmt(IterVar(None, Var("tx"), 1, "threadIdx.x"), "thread_extent", n, Evaluate(x)),
     ['tx = T.launch_thread("threadIdx.x", n)', "T.evaluate(x)"]),
    (SeqStmt((AttrStmt(IterVar(None, Var("vx"), 1, "vthread"), "virtual_thread", n, Evaluate(x)), Evaluate(x))),
     ['with T.launch_thread("vthread", n) as vx:', "    T.evaluate(x)"]),
    (AttrStmt((A, M), BIND_SCOPE, Call("handle", Op.get("tir.tvm_tuple"), (x, build.const(1), y, build.const(16))),
              BufferStore(A, v, (i,))),
     ['A = T.Buffer((16,), "float32")', 'T.attr([A, M], "buffer_bind_scope", T.tvm_tuple(x, 1, y, 16))', "A[i_outer] = v"]),
], ids=lambda value: type(value).__name__ if isinstance(value, Node) else "")
def test_statements(body, shown):
    lines = lines_of(body)
    assert [line for line in lines if line in shown] == shown, "\n".join(lines)


ADDED = CommReducer((Var("a", "float32"),), (Var("b", "float32"),), (build.add(v, 1.0),), (build.const(0.0),))
VALUES = [(build.const(2), "2"), (build.const(-2), "-2"), (IntImm("int64", 3), "T.int64(3)"), (build.true(), "T.bool(True)"),
          (FloatImm("float32", 0.1), "T.float32(0.1)"), (FloatImm("float64", float("-inf")), 'T.float64("-inf")'),
          (FloatImm("float16", float("nan")), 'T.float16("nan")'), (StringImm("s"), '"s"'),
          (build.mul(build.add(x, y), 2), "(x + y) * 2"), (build.sub(x, build.sub(y, n)), "x - (y - n)"),
          (build.floordiv(x, 3), "x // 3"), (expr.Div(x, y), "T.Div(x, y)"), (expr.Mod(x, y), "T.truncmod(x, y)"),
          (expr.Div(v, v), "v / v"), (expr.Max(x, y), "T.max(x, y)"), (expr.Min(x, y), "T.min(x, y)"),
          (build.logical_not(expr.And(UP_TO_3, build.less(y, 1))), "not (x < 3 and y < 1)"),
          (expr.EQ(UP_TO_3, build.less(y, 1)), "(x < 3) == (y < 1)"), (expr.Or(UP_TO_3, UP_TO_3), "x < 3 or x < 3"),
          (expr.Select(UP_TO_3, x, y), "T.Select(x < 3, x, y)"), (Cast("float32", x), 'T.Cast("float32", x)'),
          (Let(v, build.const(1.0), build.add(v, v)), "T.Let(v + v, where={v: T.float32(1)})"),
          (build.if_then_else(UP_TO_3, x, y), "T.if_then_else(x < 3, x, y)"),
          (Call("float32", Op.get("tir.exp"), (v,)), "T.exp(v)"),
          (Call("int32", Op.get("tir.call_extern"), (StringImm("f"), M.data)), 'T.call_extern("int32", "f", M_1.data)'),
          (Call("float32", Op.get("tir.fma"), (v, v, v)), 'T.call_intrin("float32", "tir.fma", v, v, v)'),
          (Call("uint32", Op.get("tir.reinterpret"), (v,)), 'T.reinterpret("uint32", v)'),
          (M.access_ptr("r"), 'T.tvm_access_ptr(T.type_annotation("float32"), M_1.data, 0, 128, 1)'),
          (Shuffle((x, y), (build.const(1), build.const(0))), "T.Shuffle([x, y], [1, 0])"),
          (Reduce(ADDED, (v,), (IterVar(Range(0, 4), Var("k"), 2),), build.true(), 0),
           'T.reduce(T.comm_reducer(lambda a, b: v + T.float32(1), [T.float32(0)]), [v], [], '
           '[T.iter_var(k, T.Range(0, 4), "CommReduce", "")], T.bool(True), 0)')]


@pytest.mark.parametrize("value, shown", VALUES, ids=[shown for _, shown in VALUES])
def test_expressions(value, shown):
    lines = lines_of(Evaluate(value), M)
    assert lines[-1] in (shown, f"T.evaluate({shown})")


def test_every_node_of_the_loops_has_a_form():
    """A node that is added later needs one."""
    kinds = [kind for module in (expr, stmt) for _, kind in inspect.getmembers(module, inspect.isclass)
             if issubclass(kind, Node) and kind.__module__ == module.__name__]
    bases = {kind for kind in kinds if any(other is not kind and issubclass(other, kind) for other in kinds)}
    for kind in {*kinds, IterVar, Range, GlobalVar, BufferRegion, PrimFunc} - bases:
        assert any(cls in TABLE for cls in kind.__mro__), kind


def test_every_operator_is_a_call_of_python():
    for op in OPS.values():
        ast.parse(PrimFunc((), Evaluate(Call("float32", op, (v,) * (2 if op.arity is None else op.arity)))).script())


def test_names_are_identifiers_and_differ():
    first, second, third = Var("for"), Var("a.b"), Var("a_b")
    text = PrimFunc((first, second, third, Var("T"), Var("2x")), Evaluate(build.add(second, third))).script()
    assert "def main(for_: T.int32, a_b: T.int32, a_b_1: T.int32, T_1: T.int32, v2x: T.int32):" in text
    names_in_order(text)


def test_a_module_is_a_class_of_its_functions():
    f = PrimFunc((), Evaluate(build.const(0)))
    text = IRModule({"f": f, "g-1": f}).script()
    assert "@I.ir_module\nclass Module:\n    @T.prim_func\n    def f():\n        T.evaluate(0)\n" in text
    assert "\n\n    @T.prim_func\n    def g_1():" in text
    assert IRModule({}).script().endswith("class Module:\n    pass")
    assert " -> T.int32:" in PrimFunc((), Evaluate(build.const(0)), "int32").script()
    ast.parse(text)


def test_deep_programs_are_printed_without_recursion():
    value = x
    for _ in range(2000):
        value = expr.Max(value, y)
    text = PrimFunc((x, y), SeqStmt((Evaluate(value), *[Evaluate(x)] * 2000))).script()
    assert text.count("T.max(") == 2000 and text.count("T.evaluate(x)") == 2000

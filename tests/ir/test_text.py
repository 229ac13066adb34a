"""The notation of TVM 0.8, statement by statement."""

from textwrap import dedent

import pytest

from tedsl.errors import TedslError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import (
    Add,
    Broadcast,
    BufferLoad,
    Call,
    Div,
    FloatImm,
    IntImm,
    Let,
    Load,
    Mod,
    Not,
    Ramp,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Var,
    pointer_var,
)
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import Op
from tedsl.ir.script import shown
from tedsl.ir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    SeqStmt,
    Store,
    While,
    seq,
)
from tedsl.ir.text import repr_text, text
from tests.ir.programs import F32, function, loop, row_sum, vector_buffer

x, y = Var("x"), Var("y")


def test_the_listing_of_the_row_sum():
    assert text(row_sum()) == dedent("""\
        primfn(A_1: handle) -> ()
          attr = {"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True}
          buffers = {A: Buffer(A_2: Pointer(float32), float32, [n: int32, m: int32], [stride: int32, stride_1: int32], type="auto")}
          buffer_map = {A_1: A} {
          allocate(B: Pointer(global float32), float32, [n]), storage_scope = global;
          for (i: int32, 0, n) {
            B[i] = 0f32
            for (k: int32, 0, m) {
              B[i] = ((float32*)B[i] + (float32*)A_2[((i*stride) + (k*stride_1))])
            }
          }
        }""")  # noqa: E501 - the issue prints it so


def test_buffers_stand_below_each_other_in_the_order_of_the_arguments():
    func = function(Evaluate(build.const(0)), vector_buffer("B", 4), vector_buffer("A", 8, "int8"), scalars=(Var("n"),))
    assert text(func) == dedent("""\
        primfn(B_1: handle, A_1: handle, n: int32) -> ()
          buffers = {B: Buffer(B_2: Pointer(float32), float32, [4], []),
                     A: Buffer(A_2: Pointer(int8), int8, [8], [])}
          buffer_map = {B_1: B, A_1: A} {
          0
        }""")


def test_names_depend_on_the_program_alone():
    row_sum()
    assert text(row_sum()) == text(row_sum())


def test_a_module_names_its_functions_only_if_there_are_several():
    f = PrimFunc((), Evaluate(build.const(0)))
    assert str(IRModule({"f": f})) == str(f) == "primfn() -> () {\n  0\n}"
    assert str(IRModule({"f": f, "g": f})) == f"@f = {f}\n\n@g = {f}"


@pytest.mark.parametrize("kind, shown", [(ForKind.SERIAL, ""), (ForKind.PARALLEL, ' "parallel"'),
                                         (ForKind.VECTORIZED, ' "vectorized"'), (ForKind.UNROLLED, ' "unroll"')])
def test_kinds_of_loops(kind, shown):
    i = Var("i")
    assert text(loop(i, 4, Evaluate(i), kind)) == f"for (i: int32, 0, 4){shown} {{\n  i\n}}"
    assert text(loop(i, 4, Evaluate(i), kind, start=2)) == f"for (i: int32, 2, 6){shown} {{\n  i\n}}"


A = vector_buffer("A", 16)
P = pointer_var("P", F32, "")
ACCESS = Load("float32x4", P, Ramp(x, build.const(1), 4))


@pytest.mark.parametrize("stmt, shown", [
    (Store(P, ACCESS, Ramp(x, build.const(1), 4)),
     "P: Pointer(float32)[ramp(x: int32, 1, 4)] = (float32x4*)P[ramp(x, 1, 4)]"),
    (Store(P, build.const(1.5), x, build.less(x, 3)), "P: Pointer(float32)[x: int32] = 1.5f32 if (x < 3)"),
    (IfThenElse(build.likely(build.less(x, 3)), Evaluate(x), Evaluate(build.const(1))),
     "if @tir.likely((x: int32 < 3), dtype=bool) {\n  x\n} else {\n  1\n}"),
    (While(build.less(x, 3), Evaluate(x)), "while ((x: int32 < 3)) {\n  x\n}"),
    (LetStmt(x, y, Evaluate(x)), "let x: int32 = y: int32\nx"),
    (AttrStmt(StringImm("s"), "pragma_key", build.const(1), Evaluate(x)), 'attr ["s"] "pragma_key" = 1;\nx: int32'),
    (AttrStmt(P, "key", StringImm("v"), seq(Evaluate(Call("int32", "tir.call_extern", (StringImm("f"),))),
                                            Store(P, build.const(0.0), x))),
     'attr [P: Pointer(float32)] "key" = "v" {\n  @tir.call_extern("f", dtype=int32)\n  P[x: int32] = 0f32\n}'),
    (AttrStmt(IterVar(None, Var("tx"), 1, "threadIdx.x"), "thread_extent", build.const(8), Evaluate(x)),
     'attr [IterVar(tx: int32, (nullptr), "ThreadIndex", "threadIdx.x")] "thread_extent" = 8;\nx: int32'),
    (AttrStmt(IterVar(Range(0, 8), Var("i"), 0), "k", build.const(8), Evaluate(x)),
     'attr [IterVar(i: int32, [0:8], "DataPar", "")] "k" = 8;\nx: int32'),
    (Allocate(pointer_var("B", F32, "local"), "float32x4", (build.const(4), x), build.less(x, 3), Evaluate(x)),
     "allocate(B: Pointer(local float32), float32x4, [4, x: int32]) if (x < 3), storage_scope = local;\nx"),
    (BufferStore(A, BufferLoad(A, (x,)), (build.add(x, 1),)),
     "A: Buffer(A_1: Pointer(float32), float32, [16], [])[(x: int32 + 1)] = A[x]"),
    (BufferRealize(A, (Range(2, 9),), build.true(), BufferStore(A, build.const(1.0), (x,))),
     "realize(A: Buffer(A_1: Pointer(float32), float32, [16], []), [2:9], True) {\n  A[x: int32] = 1f32\n}"),
    (AssertStmt(build.less(x, 3), StringImm("too \"large\""), Evaluate(x)), 'assert((x: int32 < 3), "too \\"large\\"")\nx'),
    (Prefetch(A, (Range(0, 4),)), "prefetch(A: Buffer(A_1: Pointer(float32), float32, [16], []), [0:4])"),
    (SeqStmt((Evaluate(x), Evaluate(y))), "{\n  x: int32\n  y: int32\n}"),
], ids=lambda v: type(v).__name__ if not isinstance(v, str) else "")
def test_statements(stmt, shown):
    assert text(stmt) == shown


@pytest.mark.parametrize("expr, shown, short", [
    (x, "x: int32", "x"), (SizeVar("n", "int64"), "n: int64", "n"),
    (build.const(3), "3", "3"), (build.const(1, "int64"), "1i64", "(int64)1"), (build.const(7, "uint8"), "7u8", "(uint8)7"),
    (build.const(True), "True", "(bool)1"), (build.const(False), "False", "(bool)0"),
    (build.const(1.5), "1.5f32", "1.5f"), (build.const(0.0), "0f32", "0f"), (build.const(2.5, "float64"), "2.5f64", "2.5"),
    (build.const(0.1, "float16"), "0.0999756f16", "half(0.0999756)"), (build.const(1.0, "bfloat16"), "1bf16", "bfloat16(1)"),
    (FloatImm("float32", float("-inf")), "-inff32", "-inff"),
    (build.const(-3.4028234663852886e38), "-3.40282e+38f32", "-3.40282e+38f"),
    (StringImm("s"), '"s"', '"s"'),
    (build.add(x, 1), "(x: int32 + 1)", "(x + 1)"), (build.sub(x, y), "(x: int32 - y: int32)", "(x - y)"),
    (build.mul(x, x), "(x: int32*x)", "(x*x)"), (Div(x, y), "(x: int32 / y: int32)", "(x/y)"),
    (Mod(x, y), "(x: int32 % y: int32)", "(x % y)"),
    (build.floordiv(x, 3), "floordiv(x: int32, 3)", "floordiv(x, 3)"),
    (build.floormod(x, 3), "floormod(x: int32, 3)", "floormod(x, 3)"),
    (build.minimum(x, 3), "min(x: int32, 3)", "min(x, 3)"), (build.maximum(x, 3), "max(x: int32, 3)", "max(x, 3)"),
    (build.logical_and(build.less(x, 3), build.equal(y, 2)), "((x: int32 < 3) && (y: int32 == 2))", "((x < 3) && (y == 2))"),
    (build.logical_or(build.greater_equal(x, 3), build.not_equal(y, 2)), "((x: int32 >= 3) || (y: int32 != 2))",
     "((x >= 3) || (y != 2))"),
    (Not(build.less(x, 3)), "!(x: int32 < 3)", "!(x < 3)"),
    (Select(build.less(x, 3), x, y), "select((x: int32 < 3), x, y: int32)", "select((x < 3), x, y)"),
    (build.cast("float32", x), "cast(float32, x: int32)", "float32(x)"),
    (Let(x, y, Add(x, x)), "let x: int32 = y: int32 in (x + x)", "(let x = y in (x + x))"),
    (build.call("tir.exp", Var("v", "float32")), "@tir.exp(v: float32, dtype=float32)", "tir.exp(v)"),
    (build.if_then_else(build.less(x, 3), build.const(1.0), build.const(2.0)),
     "@tir.if_then_else((x: int32 < 3), 1f32, 2f32, dtype=float32)", "tir.if_then_else((x < 3), 1f, 2f)"),
    (Broadcast(x, 4), "broadcast(x: int32, 4)", "x4(x)"), (Ramp(x, build.const(2), 4), "ramp(x: int32, 2, 4)", "ramp(x, 2, 4)"),
    (Shuffle((Broadcast(x, 2),), (build.const(1),)), "shuffle([broadcast(x: int32, 2)], [1])", "shuffle([x2(x)], [1])"),
    (Load("float32", P, x), "(float32*)P: Pointer(float32)[x: int32]", "P[x]"),
    (Load("float32", P, x, build.less(x, 3)), "(float32*)P: Pointer(float32)[x: int32] if (x < 3)", "P[x] if (x < 3)"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_expressions_as_text_and_in_the_short_notation(expr, shown, short):
    assert (text(expr), repr_text(expr)) == (shown, short)
    assert (str(expr), repr(expr)) == (shown, short)


def test_ranges_and_axes():
    assert repr(Range(0, 8)) == "range(min=0, ext=8)"
    assert repr(IterVar(Range(0, 8), Var("i"))) == "iter_var(i, range(min=0, ext=8))"
    assert str(IterVar(Range(0, 8), Var("i"))) == "iter_var(i, range(min=0, ext=8))"
    assert repr(IterVar(None, Var("t"), 1, "threadIdx.x")) == "iter_var(t, threadIdx.x)"


def test_names_of_one_spelling_get_numbers_and_odd_ones_a_letter():
    assert text(build.add(Var("a"), build.add(Var("a"), Var("a_1")))) == "(a: int32 + (a_1: int32 + a_1_1: int32))"
    assert text(Var("_x")) == "v_x: int32"


def test_a_buffer_shows_what_is_not_the_default():
    made = decl_buffer((4,), "float32", "A", strides=(2,), elem_offset=Var("o"), scope="shared", data_alignment=64,
                       offset_factor=8)
    assert text(made) == ('A: Buffer(A_1: Pointer(shared float32), float32, [4], [2], elem_offset=o: int32, scope="shared", '
                          'align=64, offset_factor=8)')


def test_ten_thousand_levels_and_statements():
    deep = x
    for _ in range(10_000):
        deep = build.add(build.mul(deep, 3), 1)
    assert text(deep).count("*3") == 10_000
    long = text(seq(*[Store(P, build.const(1.0), build.const(i)) for i in range(10_000)]))
    assert long.count("\n") == 10_001


def test_a_text_that_would_be_exponential_is_cut():
    big = x
    for _ in range(60):
        big = Add(big, big)
    assert text(big).endswith("...") and len(text(big)) < 1_000_000
    assert repr(big).endswith("...") and len(repr(big)) < 20_000
    many = text(seq(*[Store(P, big, build.const(i)) for i in range(2)]))
    assert many.count("...") > 1 and len(many) < 2_000_000 and many.rstrip().endswith("}")


def test_a_line_that_is_cut_leaves_the_lines_after_it_whole():
    big = x
    for _ in range(60):
        big = Add(big, big)
    lines = text(seq(Store(P, big, build.const(0)), Store(P, x, build.const(1)))).splitlines()
    assert "..." in lines[1] and lines[2] == "  P[1] = x"


def test_errors_show_the_beginning_of_a_deep_expression():
    big = x
    for _ in range(60):
        big = Add(big, big)
    with pytest.raises(TedslError) as refusal:
        bool(big < 1)
    assert 100 < len(str(refusal.value)) < 50_000
    assert "..." in shown(big) and len(shown(big)) < 20_000


def test_every_operator_prints():
    assert text(Call("int32", Op.get("tir.popcount"), (x,))) == "@tir.popcount(x: int32, dtype=int32)"
    assert text(IntImm(dtype("int32"), -1)) == "-1"

"""The notation for eyes, statement by statement, and whole functions."""

import io
from textwrap import dedent

import pytest

from tedsl.errors import ArgumentTypeError
from tedsl.ir import build
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.expr import Broadcast, BufferLoad, Call, Let, Load, Ramp, StringImm, Var, pointer_var
from tedsl.ir.func import IRModule, PrimFunc
from tedsl.ir.iters import IterVar, Range
from tedsl.ir.ops import Op
from tedsl.ir.script import script, shown
from tedsl.ir.script.wrap import wrapped
from tedsl.ir.stmt import (
    BIND_SCOPE,
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferRealize,
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
    no_op,
    seq,
)
from tests.ir.programs import F32, function, loop, row_sum, vector_buffer

x, y, i, n = Var("x"), Var("y"), Var("i"), Var("n")
v, w = Var("v", "float32"), Var("w", "float32")
P, Q = pointer_var("P", F32), pointer_var("Q", F32)
A, M = vector_buffer("A", 16), decl_buffer((8, 16), "float32", "M")
UP_TO_3 = build.less(x, 3)
LONG = build.add(build.mul(x, 16384), build.mul(y, 16))
RAMP = Ramp(LONG, build.const(1), 16)
MASK = build.less(RAMP, Broadcast(n, 16))


def vector(memory, mask=None, at=RAMP):
    return Load("float32x16", memory, at, mask)


def thread(tag):
    return IterVar(None, Var(tag.partition(".")[0][:1] + "x"), 1, tag)


@pytest.mark.parametrize("stmt, shown", [
    (loop(i, 4, Evaluate(i)), "for i in range(4):\n    i"),
    (loop(i, n, Evaluate(i), ForKind.PARALLEL, start=2), "for i in parallel(2, 2 + n):\n    i"),
    (loop(i, 4, Evaluate(i), ForKind.VECTORIZED), "for i in vectorized(4):\n    i"),
    (loop(i, 4, Evaluate(i), ForKind.UNROLLED), "for i in unrolled(4):\n    i"),
    (For(i, build.const(0), n, ForKind.THREAD_BINDING, Evaluate(i), thread("threadIdx.x")),
     'for i in threads("threadIdx.x", n):\n    i'),
    (For(i, build.const(0), n, ForKind.SERIAL, Evaluate(i), annotations={"tail": "shrink"}),
     'for i in range(n):  # {"tail": "shrink"}\n    i'),
    (While(UP_TO_3, Evaluate(x)), "while x < 3:\n    x"),
    (IfThenElse(build.likely(UP_TO_3), Evaluate(x)), "if likely(x < 3):\n    x"),
    (IfThenElse(UP_TO_3, Evaluate(x), IfThenElse(build.equal(x, 4), Evaluate(y), no_op())),
     "if x < 3:\n    x\nelif x == 4:\n    y\nelse:\n    pass"),
    (SeqStmt((Evaluate(x), Evaluate(y))), "x\ny"), (SeqStmt(()), "pass"),
    (LetStmt(v, build.const(2.0), Evaluate(v)), "v: float32 = 2.0\nv"),
    (Store(P, build.const(1.5), x), "P[x] = 1.5"), (Store(P, v, x, UP_TO_3), "P[x] = v where x < 3"),
    (Store(P, build.add(Load("float32", P, x), v), x), "P[x] += v"),
    (Store(P, build.add(v, Load("float32", P, x)), x), "P[x] = v + P[x]"),
    (Store(P, build.add(Load("float32", P, x, UP_TO_3), v), x), "P[x] = (P[x] if x < 3 else 0) + v"),
    (Store(P, build.add(Load("float32", P, x, UP_TO_3), v), x, UP_TO_3), "P[x] += v where x < 3"),
    (Store(P, Let(v, build.const(2.0), Let(w, v, build.mul(w, w))), x), "v: float32 = 2.0\nw: float32 = v\nP[x] = w*w"),
    (Store(P, Broadcast(v, 16), Ramp(build.mul(x, 16), build.const(1), 16)), "P[x*16 : x*16+16] = v"),
    (Store(P, build.mul(vector(Q, MASK), vector(Q)), RAMP, MASK),
     "at = x*16384 + y*16\nP[at : at+16] = Q[at : at+16]*Q[at : at+16] where at + arange(16) < n"),
    (Store(P, build.add(vector(P, MASK), vector(Q, MASK)), RAMP, MASK),
     "at = x*16384 + y*16\nP[at : at+16] += Q[at : at+16] where at + arange(16) < n"),
    (BufferStore(A, BufferLoad(A, (x,)), (build.add(x, 1),)), "A[x + 1] = A[x]"),
    (BufferStore(M, build.add(BufferLoad(M, (x, y)), v), (x, y)), "M[x, y] += v"),
    (BufferStore(M, Broadcast(v, 4), (x, Ramp(y, build.const(1), 4))), "M[x, y : y+4] = v"),
    (Evaluate(Call("int32", Op.get("tir.call_extern"), (StringImm("f"), M.data))), 'call_extern("int32", "f", M)'),
    (Allocate(pointer_var("B", F32, "local"), "float32x4", (build.const(4), x), UP_TO_3, Evaluate(x)),
     'B = allocate(float32x4[4, x], scope="local") if x < 3\nx'),
    (Allocate(P, "float32", (n,), build.true(), Store(P, v, x)), "P = allocate(float32[n])\nP[x] = v"),
    (BufferRealize(M, (Range(2, 9), Range(0, 4)), build.true(), BufferStore(M, v, (x, y))),
     "M = allocate(float32[2 : 9, 4])\nM[x, y] = v"),
    (AssertStmt(UP_TO_3, StringImm('too "large"'), Evaluate(x)), 'assert x < 3, "too \\"large\\""\nx'),
    (Prefetch(M, (Range(0, 4), Range(x, 16))), "prefetch(M[0 : 4, x : 16])"),
    (Tensorized("t", Evaluate(x), Evaluate(y)), "x"),
    (AttrStmt(StringImm("s"), "pragma_key", build.const(1), Evaluate(x)), "# pragma_key: 1\nx"),
    (AttrStmt(P, "key", StringImm("a\nb"), Store(P, v, x)), "# key of P: a b\nP[x] = v"),
    (AttrStmt(IterVar(Range(0, 8), i), "pragma_k", build.const(8), Evaluate(i)), "# pragma_k of i: 8\ni"),
    (AttrStmt(thread("threadIdx.x"), "thread_extent", n, Evaluate(x)), "for tx in threads(n):\n    x"),
    (AttrStmt(thread("vthread"), "virtual_thread", n, Evaluate(x)), "for vx in virtual_threads(n):\n    x"),
    (AttrStmt((A, M), BIND_SCOPE, Call("handle", Op.get("tir.tvm_tuple"), (x, build.const(1), y, build.const(16))),
              BufferStore(A, v, (i,))), "A: float32[16] = M[x : x + 1, y : y + 16]\nA[i] = v"),
], ids=lambda value: type(value).__name__ if not isinstance(value, str) else "")
def test_statements(stmt, shown):
    assert script(stmt) == shown


def test_a_function_with_shapes_and_strides_that_the_arrays_of_a_call_decide():
    assert script(row_sum()) == dedent("""\
        def main(A: float32[n, m]):
            # A: strides [stride, stride_1]
            B = allocate(float32[n])
            for i in range(n):
                B[i] = 0.0
                for k in range(m):
                    B[i] += A[i, k]""")


def test_what_is_not_usual_of_a_function_is_said_below_its_signature():
    odd = decl_buffer((4,), "float32", "A", strides=(2,), elem_offset=Var("o"), scope="shared", data_alignment=64,
                      offset_factor=8)
    func = function(no_op(), odd, vector_buffer("B", 4, "int8"), decl_buffer((), "float32", "c"), scalars=(n,), level=2)
    assert script(func) == dedent("""\
        def main(A: float32[4], B: int8[4], c: float32[()], n: int32):
            # A: strides [2], elem_offset o, scope shared, aligned to 64 bytes, offset_factor 8
            # the buffers may overlap
            # level: 2
            pass""")
    assert script(PrimFunc((Var("p", "handle"),), no_op(), "int32")) == "def main(p: handle) -> int32:\n    pass"


def test_a_module_names_its_functions():
    f = PrimFunc((), no_op())
    module = IRModule({"f": f, "g": f})
    assert module.readable() == script(module) == "def f():\n    pass\n\ndef g():\n    pass"
    assert f.readable() == "def main():\n    pass"


def test_names_of_one_spelling_get_numbers():
    stmt = loop(Var("a"), 2, Store(P, Load("float32", pointer_var("P", F32), Var("at")), Var("a")))
    assert script(stmt) == "for a in range(2):\n    P[a_1] = P_1[at]"
    long = Store(P, vector(Q), RAMP)
    assert script(SeqStmt((Evaluate(Var("at")), long))) == "at\nat_1 = x*16384 + y*16\nP[at_1 : at_1+16] = Q[at_1 : at_1+16]"


def test_a_name_that_is_a_word_of_python_gets_an_underscore():
    first, second = Var("for", "int32"), Var("for", "int32")
    text = script(PrimFunc([first, second], Evaluate(build.add(first, second))))
    assert "def main(for_: int32, for__1: int32)" in text and "for_ + for__1" in text


def test_show_prints_in_colour_where_it_is_wanted():
    func = PrimFunc((), loop(i, 4, Evaluate(i)))
    plain, colour = io.StringIO(), io.StringIO()
    func.show(plain)
    IRModule({"main": func}).show(colour, colour=True)
    assert plain.getvalue() == func.readable() + "\n"
    assert "\033[1;35mfor\033[0m i \033[1;35min\033[0m \033[34mrange\033[0m(\033[36m4\033[0m)" in colour.getvalue()
    with pytest.raises(ArgumentTypeError, match="show writes to an open file, got 'out'"):
        func.show("out")


def test_a_notebook_shows_both_notations():
    page = IRModule({"main": row_sum()})._repr_html_()
    assert '<span class="keyword">for</span> i <span class="keyword">in</span>' in page and "primfn(A_1: handle)" in page
    assert row_sum()._repr_html_().startswith('<div class="tedsl">')


def test_ten_thousand_statements():
    stores = [Store(P, build.const(1.0), build.const(k)) for k in range(10_000)]
    assert script(seq(*stores)).count("\n") == 9_999


def test_a_thousand_levels():
    body = Evaluate(x)
    for k in range(1000):
        body = IfThenElse(build.less(x, k), body)
    assert script(body).splitlines()[-1] == " " * 4000 + "x"


def test_long_lines_are_broken_where_a_reader_pauses():
    value = build.call("tir.exp", v)
    for k in range(6):
        value = build.add(value, build.mul(Load("float32", P, build.add(y, k)), Load("float32", Q, build.sub(n, k))))
    assert script(loop(x, 9, Store(P, value, x))) == dedent("""\
        for x in range(9):
            P[x] = exp(v) + P[y]*Q[n] + P[y + 1]*Q[n - 1] + P[y + 2]*Q[n - 2] + P[y + 3]*Q[n - 3] + P[y + 4]*Q[n - 4]
                    + P[y + 5]*Q[n - 5]""")


def test_indices_that_do_not_fit_a_line_several_times_get_names():
    value = build.mul(Load("float32", P, build.add(LONG, 3)), Load("float32", Q, build.sub(LONG, 1)))
    assert script(Store(P, value, LONG)) == "P[x*16384 + y*16] = P[x*16384 + y*16 + 3]*Q[x*16384 + y*16 - 1]"
    for k in range(4):
        value = build.add(value, Load("float32", P, build.add(LONG, k)))
    assert script(Store(P, value, LONG)) == (
        "at = x*16384 + y*16\nP[at] = P[at + 3]*Q[at - 1] + P[at] + P[at + 1] + P[at + 2] + P[at + 3]")


def test_a_broken_line_loses_nothing():
    line = "    f(" + ", ".join(f'g{k}("a, b + c", {k} + {k})' for k in range(40)) + ")"
    parts = wrapped(line)
    assert " ".join(part.strip() for part in parts) == line.strip() and max(map(len, parts)) <= 110
    assert [len(part) - len(part.lstrip()) for part in parts] == [4] + [12] * (len(parts) - 1)
    assert wrapped("    " + "x" * 200) == ["    " + "x" * 200]
    assert all(part.startswith("    # ") for part in wrapped("    # " + "word " * 60))


def test_a_list_that_holds_itself_is_shown():
    values = [1]
    values.append(values)
    assert shown(values) == "[1, [...]]"

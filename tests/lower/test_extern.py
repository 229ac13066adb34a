"""te.extern in schedules: where it stands, which memory its statements use, and what is refused."""

from textwrap import dedent

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError, TedslError
from tedsl.ir import builder
from tests.lower.programs import execute, whole_numbers

SIZES = [pytest.param(7, 7, id="constant"), pytest.param(1, 1, id="one"), pytest.param(te.var("n"), 7, id="symbolic"),
         pytest.param(te.var("n"), 0, id="empty")]


def doubled(ins, outs):
    """outs[0][i] = ins[0][i] * 2, for one dimension."""
    ib = builder.create()
    a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, ins[0].shape[0], name="i") as i:
        b[i] = a[i] * 2
    return ib.get()


def both(s, args, values, sizes):
    """The arrays that the interpreter and the machine code compute; they must agree."""
    expected = execute(s, args, values, sizes)
    built = tedsl.build(s, args)
    results = {arg: np.full(array.shape, 55, array.dtype) for arg, array in expected.items()}
    built(*[values[arg] if arg in values else results[arg] for arg in args])
    for arg, array in expected.items():
        np.testing.assert_array_equal(results[arg], array, err_msg=str(arg))
    return results


def text(s, args):
    return str(tedsl.lower(s, args, simple_mode=True))


@pytest.mark.parametrize("n, size", SIZES)
def test_between_two_formulas(n, size):
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[i] + 1, name="P")
    B = te.extern((n,), [P], doubled, name="B")
    C = te.compute((n,), lambda i: B[i] - 1, name="C")
    s = te.create_schedule(C.op)
    s[C].vectorize(s[C].split(C.op.axis[0], factor=4)[1])
    s[P].parallel(P.op.axis[0])
    a = whole_numbers((size,))
    assert (both(s, [A, C], {A: a}, {n: size})[C] == (a + 1) * 2 - 1).all()


def test_text():
    A = te.placeholder((7,), name="A")
    B = te.extern((7,), [A], doubled, name="B")
    assert text(te.create_schedule(B.op), [A, B]) == dedent("""\
        primfn(A_1: handle, B_1: handle) -> ()
          attr = {"from_legacy_te_schedule": True, "global_symbol": "main", "tir.noalias": True}
          buffers = {A: Buffer(A_2: Pointer(float32), float32, [7], []),
                     B: Buffer(B_2: Pointer(float32), float32, [7], [])}
          buffer_map = {A_1: A, B_1: B} {
          attr [0] "extern_scope" = 0;
          for (i: int32, 0, 7) {
            B_2[i] = ((float32*)A_2[i]*2f32)
          }
        }""")


def test_arguments_of_a_symbolic_shape_are_compact():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")
    B = te.extern((n, n), [A], lambda ins, outs: copied(ins, outs, n * n), name="B")
    found = text(te.create_schedule(B.op), [A, B])
    assert "float32, [n: int32, n], [])" in found and "float32, [n, n], [])" in found and "stride" not in found
    built = tedsl.build(te.create_schedule(B.op), [A, B])
    a = whole_numbers((6, 6))
    with pytest.raises(TedslError, match="not contiguous in row-major order"):
        built(a[::2, ::2], np.zeros((3, 3), "float32"))


def copied(ins, outs, count):
    ib = builder.create()
    a, b = ib.buffer_ptr(ins[0], (count,)), ib.buffer_ptr(outs[0], (count,))
    with ib.for_range(0, count, name="i") as i:
        b[i] = a[i]
    return ib.get()


@pytest.mark.parametrize("n, size", SIZES[:3])
def test_strides_of_an_input_that_asks_for_them(n, size):
    A = te.placeholder((n, n), name="A")
    row, column = te.var("row"), te.var("column")
    mine = tir.decl_buffer((n, n), "float32", "mine", strides=[row, column])

    def transposed(ins, outs):
        ib = builder.create()
        a, b = ib.buffer_ptr(ins[0], (n * n,)), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i") as i, ib.for_range(0, n, name="j") as j:
            b[j, i] = tir.Load("float32", ins[0].data, i * row + j * column)
        del a
        return ib.get()

    B = te.extern((n, n), [A], transposed, name="B", in_buffers=[mine])
    a = whole_numbers((size, size))
    assert (both(te.create_schedule(B.op), [A, B], {A: a}, {n: size})[B] == a.T).all()
    if not isinstance(n, int):
        built = tedsl.build(te.create_schedule(B.op), [A, B])
        wide, b = whole_numbers((2 * size, 3 * size)), np.zeros((size, size), "float32")
        built(wide[::2, ::3], b)
        assert (b == wide[::2, ::3].T).all()


@pytest.mark.parametrize("n, size", SIZES)
def test_several_outputs_of_mixed_dtypes(n, size):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), "int8", name="B")

    def body(ins, outs):
        ib = builder.create()
        a, b = map(ib.buffer_ptr, ins)
        c, d, e = map(ib.buffer_ptr, outs)
        e[0] = tir.const(0, "int32")
        with ib.for_range(0, n, name="i") as i:
            c[i] = a[i] + b[i].astype("float32")
            d[i, 0] = b[i].astype("int64") * 3
            d[i, 1] = tir.const(1, "int64")
            e[0] = e[0] + 1
        return ib.get()

    C, D, E = te.extern([(n,), (n, 2), (1,)], [A, B], body, dtype=["float32", "int64", "int32"], name="C")
    F = te.compute((n,), lambda i: C[i] + E[0], name="F")
    a, b = whole_numbers((size,)), whole_numbers((size,), "int8", 1)
    found = both(te.create_schedule([F.op, D.op]), [A, B, D, F, E], {A: a, B: b}, {n: size})
    assert (found[D] == np.stack([b.astype("int64") * 3, np.ones_like(b, "int64")], 1)).all()
    assert (found[F] == a + b + size).all() and found[E][0] == size
    found = both(te.create_schedule(D.op), [A, B, D], {A: a, B: b}, {n: size})  # the others are allocated inside
    assert (found[D][:, 1] == 1).all()


def test_multi_dimensional_accesses_to_the_placeholders():
    A = te.placeholder((4, 6), name="A")
    P = te.compute((4, 6), lambda i, j: A[i, j] + 1, name="P")
    i, j = te.var("i"), te.var("j")

    def body(ins, outs):
        store = outs[0].vstore((j, i), ins[0].vload((i, j)))
        return tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.For(j, 0, 6, tir.ForKind.SERIAL, store))

    B = te.extern((6, 4), [P], body, name="B")
    C = te.extern((6, 4), [P], body, name="C")  # the same loop variables once more
    D = te.compute((6, 4), lambda x, y: B[x, y] + C[x, y], name="D")
    a = whole_numbers((4, 6))
    assert (both(te.create_schedule(D.op), [A, D], {A: a}, {})[D] == 2 * (a.T + 1)).all()


def test_computed_inside_a_loop_of_its_reader():
    A = te.placeholder((4, 5), name="A")
    P = te.compute((5,), lambda i: A[0, i] + 1, name="P")
    B = te.extern((5,), [P], doubled, name="B")
    C = te.compute((4, 5), lambda i, j: B[j] + A[i, j], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[P].compute_at(s[C], C.op.axis[0])
    a = whole_numbers((4, 5))
    assert (both(s, [A, C], {A: a}, {})[C] == (a[0] + 1) * 2 + a).all()
    assert text(s, [A, C]).index("for (i: int32, 0, 4)") < text(s, [A, C]).index("extern_scope")


def test_its_inputs_and_outputs_can_be_cached():
    A = te.placeholder((5,), name="A")
    B = te.extern((5,), [A], doubled, name="B")
    C = te.compute((5,), lambda i: B[i] + 1, name="C")
    s = te.create_schedule(C.op)
    AL = s.cache_read(A, "local", [B])
    BL = s.cache_read(B, "local", [C])
    a = whole_numbers((5,))
    assert list(s[B].op.inputs) == [AL] and list(s[C].op.input_tensors) == [BL]
    assert (both(s, [A, C], {A: a}, {})[C] == a * 2 + 1).all()


def test_a_scalar_and_an_extern_without_inputs():
    def body(ins, outs):
        ib = builder.create()
        ib.buffer_ptr(outs[0])[0] = tir.const(3, "int32")
        return ib.get()

    B = te.extern((), [], body, dtype="int32", name="B")
    C = te.compute((2,), lambda i: B() + i, name="C")
    assert both(te.create_schedule(C.op), [C], {}, {})[C].tolist() == [3, 4]


# --- refusals ---------------------------------------------------------------------------------------------------------

def program():
    A = te.placeholder((5,), name="A")
    P = te.compute((5,), lambda i: A[i] + 1, name="P")
    B = te.extern((5,), [P], doubled, name="B")
    C = te.compute((5,), lambda i: B[i] + 1, name="C")
    return te.create_schedule(C.op), A, P, B, C


def test_loops_of_an_extern_are_its_own():
    s, _, P, B, _ = program()
    for directive in (lambda: s[B].split(P.op.axis[0], 4), lambda: s[B].parallel(P.op.axis[0]), lambda: s[B].fuse()):
        with pytest.raises(ScheduleError, match=r"B is made by te.extern: its loops are in the statements(.|\n)*for_range"):
            directive()


def test_what_is_only_for_formulas():
    s, _, P, B, _ = program()
    with pytest.raises(ScheduleError, match=r"compute_inline\(\) on stage B: B is not made by te.compute: it has no formula"):
        s[B].compute_inline()
    with pytest.raises(ScheduleError, match=r"compute_inline\(\) on stage P: B is not made by te.compute: it reads P"):
        s[P].compute_inline()
    with pytest.raises(ScheduleError, match=r"cache_write\(B, 'local'\) on stage B: B is not made by te.compute"):
        s.cache_write(B, "local")
    with pytest.raises(ScheduleError, match=r"rfactor.* on stage B: B is not a reduction"):
        s.rfactor(B, P.op.axis[0])
    with pytest.raises(ScheduleError, match=r"compute_at(.|\n)*B is made by te.extern"):
        s[P].compute_at(s[B], P.op.axis[0])


def test_memory_of_another_layout():
    s, A, P, B, C = program()
    s[P].storage_align(P.op.axis[0], 8, 1)
    with pytest.raises(LoweringError, match=r"B is made by te.extern: its statements address P as compact memory, and P has "
                                            r"storage_align(.|\n)*s.cache_read\(P, 'global', \[B\]\)"):
        tedsl.lower(s, [A, C])
    mine = tir.decl_buffer((5,), "float32", "mine", strides=[2])
    s, A, _, B, _ = program()
    s = te.create_schedule(B.op)
    with pytest.raises(LoweringError, match=r"B uses B as compact memory, and the buffer mine has the strides \[2\]"):
        tedsl.lower(s, [A, B], binds={B: mine})


def test_strides_of_a_stage_are_not_known():
    """Also where a buffer asks for strides, and the reason is not that the memory is thought to be compact."""
    A = te.placeholder((5, 8), name="A")
    P = te.compute((5, 8), lambda i, j: A[i, j] + 1, name="P")
    mine = tir.decl_buffer((5, 8), "float32", "mine", strides=[te.var("row"), te.var("column")])

    def copy(ins, outs):
        ib = builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 5, name="i") as i, ib.for_range(0, 8, name="j") as j:
            b[i, j] = a[i, j]
        return ib.get()

    B = te.extern((5, 8), [P], copy, name="B", in_buffers=[mine])
    s = te.create_schedule(B.op)
    s[P].storage_align(P.op.axis[0], 16, 5)
    with pytest.raises(LoweringError, match=r"its buffer mine takes the strides of arguments, not those of stages, and P has "
                                            r"storage_align(.|\n)*s.cache_read\(P, 'global', \[B\]\)"):
        tedsl.lower(s, [A, B])
    s.cache_read(P, "global", [B])
    a = whole_numbers((5, 8))
    assert (both(s, [A, B], {A: a}, {})[B] == a + 1).all()


def test_a_declared_stride_that_the_memory_does_not_have():
    A = te.placeholder((4, 4), name="A")
    mine = tir.decl_buffer((4, 4), "float32", "mine", strides=[8, 1])
    B = te.extern((4,), [A], lambda ins, outs: tir.call_packed("f"), name="B", in_buffers=[mine])
    with pytest.raises(LoweringError, match=r"B: stride 0 of the buffer mine is declared as 8, and the memory has 4"):
        tedsl.lower(te.create_schedule(B.op), [A, B])


def test_an_access_outside_is_refused():
    A = te.placeholder((5,), name="A")

    def body(ins, outs):
        ib = builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 6, name="i") as i:
            b[i] = a[i]
        return ib.get()

    B = te.extern((5,), [A], body, name="B")
    with pytest.raises(LoweringError, match=r"i = 5"):
        tedsl.lower(te.create_schedule(B.op), [A, B])


def test_checked_mode_looks_into_the_statements():
    s, A, _, _, C = program()
    c = np.zeros(5, "float32")
    tedsl.build(s, [A, C], checked=True)(np.ones(5, "float32"), c)
    assert (c == 5).all()

    def half(ins, outs):
        ib = builder.create()
        with ib.for_range(0, 2, name="i") as i:
            ib.buffer_ptr(outs[0])[i, 1] = tir.const(1.0)
        return ib.get()

    B = te.extern((2, 2), [], half, dtype="float32", name="B")
    C = te.compute((2,), lambda i: B[i, 0], name="C")
    built = tedsl.build(te.create_schedule(C.op), [C], checked=True)
    with pytest.raises(TedslError, match=r"reads B\[0, 0\], to which nothing was written before\n  in stage C"):
        built(np.zeros(2, "float32"))


@pytest.mark.parametrize("n, size", SIZES[:3])
def test_a_python_function_between_two_formulas(n, size):
    def plus_one(source, target):
        np.asarray(target)[...] = np.asarray(source) + 1

    tedsl.register_func("test_extern.plus_one", plus_one, override=True)
    A = te.placeholder((n, 4), name="A")
    P = te.compute((n, 4), lambda i, j: A[i, j] * 2, name="P")
    B = te.extern((n, 4), [P], lambda ins, outs: tir.call_packed("test_extern.plus_one", ins[0], outs[0]), name="B")
    C = te.compute((n, 4), lambda i, j: B[i, j] * 10, name="C")
    a = whole_numbers((size, 4))
    assert (both(te.create_schedule(C.op), [A, C], {A: a}, {n: size})[C] == (2 * a + 1) * 10).all()


def test_what_a_python_function_raises_reaches_the_caller():
    def fails(source):
        raise KeyError("no such row")

    tedsl.register_func("test_extern.fails", fails, override=True)
    A = te.placeholder((3,), name="A")
    B = te.extern((3,), [A], lambda ins, outs: tir.call_packed("test_extern.fails", ins[0]), name="B")
    with pytest.raises(KeyError, match="no such row"):
        tedsl.build(te.create_schedule(B.op), [A, B])(np.zeros(3, "float32"), np.zeros(3, "float32"))


def stepped(weights, gradients):
    """Statements that subtract a gradient from the weights in place, and count."""
    def body(ins, outs):
        ib = builder.create()
        w, g, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        out[0] = 0.0
        with ib.for_range(0, 4, name="i") as i:
            w[i] = w[i] - g[i]
            out[0] = out[0] + 1.0
        return ib.get()

    return te.extern((1,), [weights, gradients], body, dtype="float32", name="step")


def test_an_argument_is_changed_in_place():
    W, G = te.placeholder((4,), name="W"), te.placeholder((4,), name="G")
    count = stepped(W, G)
    built = tedsl.build(te.create_schedule(count.op), [W, G, count])
    w, g, out = np.ones(4, "float32"), np.arange(4, dtype="float32"), np.zeros(1, "float32")
    built(w, g, out)
    assert w.tolist() == [1, 0, -1, -2] and out[0] == 4
    w.setflags(write=False)
    with pytest.raises(TedslError, match="W"):
        built(w, g, out)


def test_an_argument_that_others_see_is_not_changed_in_place():
    W, G = te.placeholder((4,), name="W"), te.placeholder((4,), name="G")
    count = stepped(W, G)
    doubled_later = te.compute((4,), lambda i: W[i] + count[0], name="later")
    with pytest.raises(LoweringError, match=r"store to the input W, and later reads it too(.|\n)*store to an output"):
        tedsl.build(te.create_schedule(doubled_later.op), [W, G, doubled_later])
    P = te.compute((4,), lambda i: G[i] + 1.0, name="P")
    with pytest.raises(LoweringError, match="store to the input P, which is computed here"):
        tedsl.build(te.create_schedule(stepped(P, G).op), [G])
    after = te.compute((4,), lambda i: count[0] + i, name="after")
    s = te.create_schedule(after.op)
    s[count].compute_at(s[after], after.op.axis[0])
    with pytest.raises(LoweringError, match=r"again in each iteration(.|\n)*compute_root"):
        tedsl.build(s, [W, G, after])

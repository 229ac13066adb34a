"""Names of tir and te of TVM 0.9 to 0.19: IndexMap, extern_primfunc, logaddexp, and passes."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, OptionError
from tedsl.tir import IndexMap
from tedsl.tir.not_planned import NOT_PLANNED, OF_LATER_RELEASES

T = tir.transform


# --- maps of indices ---

def test_a_map_its_shape_and_its_inverse():
    tiled = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    assert str(tiled) == "(i: int32, j: int32) -> (floordiv(i: int32, 4), j: int32, floormod(i: int32, 4))"
    assert [e.value for e in tiled.map_indices([6, 2])] == [1, 2, 2] and [e.value for e in tiled.map_shape([8, 3])] == [2, 3, 4]
    back = tiled.inverse([8, 3])
    assert [e.value for e in back.map_indices([1, 2, 2])] == [6, 2]
    assert back.is_equivalent_to(IndexMap.from_func(lambda a, b, c: [a * 4 + c, b])) and not back.is_equivalent_to(tiled)
    x = np.arange(24).reshape(8, 3).astype("float32")
    np.testing.assert_array_equal(tiled.map_ndarray(tedsl.nd.array(x)).numpy(), x.reshape(2, 4, 3).transpose(0, 2, 1))
    assert tiled.non_surjective_inverse([8, 3])[0].is_equivalent_to(back)


def test_maps_of_any_number_of_indices_and_with_separators():
    turned = IndexMap.from_func(lambda *i: list(reversed(i)), ndim=3)
    assert [e.value for e in turned.map_indices([1, 2, 3])] == [3, 2, 1]
    made, at = IndexMap.from_func_with_separators(lambda i, j: [j, IndexMap.AXIS_SEPARATOR, te.AXIS_SEPARATOR, i])
    assert at == [1, 1] and len(made.final_indices) == 2
    given = IndexMap.from_func(lambda i: [i * i], inverse_index_map=lambda k: [k // 2])
    assert [e.value for e in given.inverse([3]).map_indices([4])] == [2]


def test_names_after_the_star_are_the_last_indices():
    last_second = IndexMap.from_func(lambda i, *r, j, step=2: [i * step, j, *r], ndim=4)
    assert [e.value for e in last_second.map_indices([1, 2, 3, 4])] == [2, 4, 2, 3]
    assert [var.name for var in last_second.initial_indices] == ["i", "r_0", "r_1", "j"]
    assert [e.value for e in IndexMap.from_func(lambda *, i, j: [j, i]).map_indices([1, 2])] == [2, 1]
    with pytest.raises(ArgumentError, match="ndim is 1, and the function takes at least 2 indices"):
        IndexMap.from_func(lambda i, *r, j: [i, j, *r], ndim=1)


def test_a_map_is_what_transform_layout_takes():
    A = te.placeholder((8, 4), name="A")
    B = te.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 4), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].transform_layout(lambda i, j: IndexMap.from_func(lambda i, j: [j, i])(i, j))
    a, c = np.ones((8, 4), "float32"), np.zeros((8, 4), "float32")
    tedsl.build(s, [A, C])(a, c)
    assert (c == 4).all()


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: IndexMap.from_func(lambda *i: i), ArgumentError, "ndim says how many"),
    (lambda: IndexMap.from_func(lambda i: [i], ndim=2), ArgumentError, "ndim is 2, and the function takes 1"),
    (lambda: IndexMap.from_func(3), ArgumentTypeError, "takes a function"),
    (lambda: IndexMap([1], [2]), ArgumentTypeError, "initial indices are variables"),
    (lambda: IndexMap.from_func(lambda i: [i]).map_indices([1, 2]), ArgumentError, "takes 1 indices, not 2"),
    (lambda: IndexMap.from_func(lambda i: [i, te.AXIS_SEPARATOR]), ArgumentError, "separators"),
    (lambda: IndexMap.from_func(lambda i: [i // 4, i % 4]).inverse([6]), ArgumentError, "not known to be one to one")])
def test_what_is_no_map(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


# --- te ---

def test_a_function_as_a_stage():
    A, B = te.placeholder((4, 5), name="A"), te.placeholder((4, 5), name="B")
    k = te.reduce_axis((0, 5), name="k")
    func = te.create_prim_func([A, B, te.compute((4,), lambda i: te.sum(A[i, k] * B[i, k], axis=k), name="C")])
    X, Y = (te.placeholder((4, 5), name=name) for name in "XY")
    out = te.extern_primfunc([X, Y], func, name="dots")
    twice = te.compute((4,), lambda i: out[i] + out[i], name="twice")
    x, y = np.random.default_rng(0).random((2, 4, 5), "float32")
    z = np.zeros(4, "float32")
    tedsl.build(te.create_schedule(twice.op), [X, Y, twice])(x, y, z)
    np.testing.assert_allclose(z, 2 * (x * y).sum(1), rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"has 2 inputs, A, B, and there are 1 tensors\n  hint: it stores to C"):
        te.extern_primfunc([X], func)
    with pytest.raises(ArgumentTypeError, match="takes a function, not a Tensor"):
        te.extern_primfunc([X], X)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-6), ("float64", 1e-14)])
def test_logaddexp(dtype, rtol):
    values = np.array([0, 1, -2.5, 100, -1000, 1000, np.inf, -np.inf, np.nan], dtype)
    a, b = (one.ravel().copy() for one in np.meshgrid(values, values))
    A, B = (te.placeholder(a.shape, dtype, name=name) for name in "AB")
    C = te.compute(a.shape, lambda i: te.logaddexp(A[i], B[i]), name="C")
    c = np.zeros(a.shape, dtype)
    tedsl.build(te.create_schedule(C.op), [A, B, C])(a, b, c)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(c, np.logaddexp(a, b), rtol=rtol)


# --- passes ---

n = te.var("n")
A = tir.decl_buffer((n * 8,), name="A")
B = tir.decl_buffer((n * 8,), name="B")


def module(make, **attrs):
    """The module of a function that `make` writes with a builder."""
    ib = tir.ir_builder.create()
    make(ib, ib.buffer_ptr(A), ib.buffer_ptr(B))
    func = tir.PrimFunc([A, B], ib.get()).with_attr({"global_symbol": "main", "tir.noalias": True, **attrs})
    return tedsl.IRModule({"main": func})


def shifted(ib, a, b):
    with ib.for_range(0, n, name="i") as i, ib.for_range(0, 4, name="j") as j:
        b[i * 8 + n // 2 + j] = a[i * 8 + n // 2 + j] + 1.0


def both(mod, size=3):
    """What a module computes."""
    a = np.arange(size * 8, dtype="float32")
    b = np.zeros_like(a)
    tedsl.build(mod, target="llvm")(a, b)
    return b


def test_what_expressions_have_in_common():
    mod = module(shifted)
    shared = T.CommonSubexprElimTIR()(mod)
    text = str(shared["main"].body)
    lines = [line.strip() for line in text.splitlines()]
    assert text.count("cse_var_") > 2 and text.count("floordiv(n") == 1 and sum(line.startswith("let") for line in lines) >= 1
    np.testing.assert_array_equal(both(shared), both(mod))
    assert T.CommonSubexprElimTIR(False)(mod)["main"] is mod["main"]
    assert T.CommonSubexprElimTIR()(shared)["main"].body is shared["main"].body or "cse_var_" in str(shared["main"].body)


def test_lets_stand_where_their_variables_are():
    """As in TVM's documentation of the pass: z1 + z2 is computed inside of the lets of both, once."""
    z1, z2, x, y = (te.var(name) for name in ("z1", "z2", "x", "y"))

    def store(value, at):
        return tir.BufferStore(A, value.astype("float32"), [at])

    inner = tir.LetStmt(x, tir.const(1), tir.LetStmt(y, tir.const(1), store((x + y) + (z1 + z2), tir.const(2))))
    body = tir.LetStmt(z1, tir.const(1), tir.LetStmt(z2, tir.const(2), tir.SeqStmt([store(z1 + z2, tir.const(1)), inner])))
    made = T.CommonSubexprElimTIR()(tedsl.IRModule({"main": tir.PrimFunc([A], body)}))["main"].body
    shared = made.body.body
    assert isinstance(shared, tir.LetStmt) and shared.var.name == "cse_var_1"
    assert tedsl.ir.structural_equal(shared.value, z1 + z2)
    assert str(shared.body).count("cse_var_1") == 2 and "z1" not in str(shared.body)


def test_terms_that_are_equal_when_simplified():
    def sums(ib, a, b):
        with ib.for_range(0, n, name="i") as i:
            b[i * 4 + n] = a[(i + i) * 2 + n]

    plain, simplified = (str(T.CommonSubexprElimTIR(True, same)(module(sums))["main"].body) for same in (False, True))
    assert "cse_var" not in plain and "[cse_var_1] = (float32*)A: Pointer(float32)[cse_var_1]" in simplified
    mod = module(sums)
    np.testing.assert_array_equal(both(T.CommonSubexprElimTIR(True, True)(mod)), both(mod))


def test_loads_and_what_is_read_stay():
    def reads(ib, a, b):
        with ib.for_range(0, n, name="i") as i:
            b[i] = a[i] + a[i]
            b[i + 1] = a[i] + a[i]

    text = str(T.CommonSubexprElimTIR()(module(reads))["main"].body)
    assert "let" not in text


def test_parallel_loops_become_serial():
    def loops(ib, a, b):
        with ib.for_range(0, n, kind="parallel", name="i") as i, ib.for_range(0, 8, kind="vectorize", name="j") as j:
            b[i * 8 + j] = a[i * 8 + j]

    made = T.ConvertForLoopsToSerial()(module(loops))["main"].body
    assert made.kind == tir.ForKind.SERIAL and made.body.kind == tir.ForKind.VECTORIZED


def test_conditions_and_lets_leave_loops():
    def inside(ib, a, b):
        with ib.for_range(0, n, name="i") as i:
            half = ib.let("half", n // 2)
            with ib.if_scope(n > 3):
                b[i] = a[i] + half.astype("float32")

    mod = module(inside)
    made = T.HoistExpression()(mod)["main"].body
    assert isinstance(made, tir.LetStmt) and isinstance(made.body, tir.IfThenElse)
    for size in (3, 5):
        np.testing.assert_array_equal(both(T.HoistExpression()(mod), size), both(mod, size))


def test_the_pattern_of_a_split():
    x = te.var("x")
    body = tir.Evaluate(tir.floordiv(tir.floormod(x, 12), 3) + tir.floordiv(tir.floormod(x, 12), 5))
    made = T.RenormalizeSplitPattern()(tedsl.IRModule({"main": tir.PrimFunc([x], body)}))["main"].body.value
    same = tedsl.ir.structural_equal
    assert same(made.a, tir.floormod(tir.floordiv(x, 3), 4)) and same(made.b, body.value.b)
    assert all((value % 12) // 3 == value // 3 % 4 for value in range(-30, 30))


def test_attributes_of_functions():
    mod = module(shifted)
    bound = T.BindTarget(tedsl.target.Target("cuda"))(mod)["main"]
    assert bound.attrs["target"].kind.name == "cuda"
    again = T.BindTarget("llvm")(tedsl.IRModule({"main": bound}))["main"]
    assert again.attrs["target"].kind.name == "cuda" and "target" not in mod["main"].attrs
    other = tir.PrimFunc([A], tir.Evaluate(0))
    two = T.AnnotateEntryFunc()(tedsl.IRModule({"main": mod["main"], "other": other}))
    assert two["main"].attrs["tir.is_entry_func"] and "tir.is_entry_func" not in two["other"].attrs
    assert T.AnnotateEntryFunc()(tedsl.IRModule({"other": other}))["other"].attrs["tir.is_entry_func"]


def test_a_function_without_an_attribute():
    func = tir.PrimFunc([A], tir.Evaluate(0)).with_attr({"x": 1, "y": 2})
    assert dict(func.without_attr("x").attrs) == {"y": 2} and func.attrs["x"] == 1
    assert dict(func.without_attr("z").attrs) == {"x": 1, "y": 2}


@pytest.mark.parametrize("name, words", [
    ("FP8StorageLegalize", "no numbers of dtype float8"), ("BF16ComputeLegalize", "BF16Legalize does both"),
    ("LowerOpaqueBlock", NOT_PLANNED["PlanAndUpdateBufferAllocationLocation"])])
def test_a_pass_of_later_releases_that_is_not_here_says_why(name, words):
    with pytest.raises(OptionError, match=f"(?s){name}.*hint: .*{words}"):
        getattr(T, name)
    assert not [name for name in OF_LATER_RELEASES if name in vars(T)]

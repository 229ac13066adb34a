"""Programs that TVM takes: schedules, scripts and calls that strangers write, each built and compared with numpy."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import ir, te, tir
from tedsl.errors import ExpressionError
from tests.lang.hybrid import scripts

TX, BX = "threadIdx.x", "blockIdx.x"


def row_sums(rows=8, columns=12, init=None):
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k, init=init), name="B")
    return te.create_schedule(B.op), A, B, k


def check_sums(s, A, B, more=0.0):
    a = np.random.default_rng(0).random([int(d) for d in A.shape], "float32")
    b = np.zeros(a.shape[0], "float32")
    tedsl.build(s, [A, B])(a, b)
    np.testing.assert_allclose(b, a.sum(1) + more, rtol=1e-5)


def test_a_loop_over_elements_and_one_over_a_reduction_are_fused():
    s, A, B, k = row_sums()
    s[B].fuse(B.op.axis[0], k)
    check_sums(s, A, B)


@pytest.mark.parametrize("init", [None, 5.0])
@pytest.mark.parametrize("rows_first", [False, True])
def test_rfactor_with_init_and_below_a_split_of_another_axis(init, rows_first):
    s, A, B, k = row_sums(init=init)
    if rows_first:
        s[B].split(B.op.axis[0], 4)
    s.rfactor(B, s[B].split(k, 4)[1])
    check_sums(s, A, B, init or 0.0)


@pytest.mark.parametrize("inner_first", [False, True])
def test_groups_inside_groups_in_any_order(inner_first):
    A = te.placeholder((6, 5), name="A")
    B = te.compute((6, 5), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((6, 5), lambda i, j: B[i, j] * 2, name="C")
    D = te.compute((6, 5), lambda i, j: C[i, j] * 3, name="D")
    E = te.compute((6, 5), lambda i, j: D[i, j] + 1, name="E")
    s = te.create_schedule(E.op)
    outputs = (C, D) if inner_first else (D, C)
    made = {output: s.create_group(outputs=output, inputs=A) for output in outputs}
    made[D].compute_at(s[E], E.op.axis[0])
    made[C].compute_at(s[D], D.op.axis[1])
    a, e = np.arange(30, dtype="float32").reshape(6, 5), np.zeros((6, 5), "float32")
    tedsl.build(s, [A, E])(a, e)
    np.testing.assert_array_equal(e, (a + 1) * 6 + 1)


def elementwise(n=16, dtype="float32"):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: A[i] + A[i], name="B")
    return te.create_schedule(B.op), A, B


def test_a_module_is_built_with_arguments():
    s, A, B = elementwise()
    a, b = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    with pytest.warns(UserWarning, match="has arguments already"):
        f = tedsl.build(tedsl.lower(s, [A, B]), [A, B], target="llvm", target_host="llvm")
    f(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_an_unknown_pragma_stays_in_the_loops():
    s, A, B = elementwise()
    with pytest.warns(UserWarning, match="my_pragma"):
        s[B].pragma(B.op.axis[0], "my_pragma", 3)
        text = str(tedsl.lower(s, [A, B]))
        tedsl.build(s, [A, B])
    assert "my_pragma" in text


@pytest.mark.parametrize("scope", ["global:tag", "local.l0a"])
def test_scopes_with_a_tag(scope):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].set_scope(scope)
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tedsl.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)


def test_scans_whose_update_is_bound_to_blocks():
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda _, i: X[0, i], name="first")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    scan = te.scan(first, update, state, inputs=[X])
    s = te.create_schedule(scan.op)
    for stage in (first, update):
        outer, inner = s[stage].split(stage.op.axis[1], factor=32)
        s[stage].bind(outer, te.thread_axis(BX))
        s[stage].bind(inner, te.thread_axis(TX))
    x, y = np.random.default_rng(0).random((5, 70), "float32"), np.zeros((5, 70), "float32")
    tedsl.build(s, [X, scan])(x, y)
    np.testing.assert_allclose(y, np.cumsum(x, axis=0), rtol=1e-5)


def test_one_of_two_outputs_is_cached():
    A = te.placeholder((8,), name="A")
    B, C = te.compute((8,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="both")
    s = te.create_schedule(B.op)
    s.cache_write(B, "local")
    a, b, c = np.arange(8, dtype="float32"), np.zeros(8, "float32"), np.zeros(8, "float32")
    tedsl.build(s, [A, B, C])(a, b, c)
    np.testing.assert_array_equal((b, c), (a + 1, a * 2))


def test_a_call_of_a_function_returns_a_number():
    x = tir.Var("x", "int32")
    f = tedsl.build(tir.PrimFunc([x], tir.Evaluate(tir.ret(x + 1))).with_attr("global_symbol", "f"))
    assert f(3) == 4


def test_dtypes_by_the_names_of_c():
    assert [te.placeholder((4,), dtype=name).dtype for name in ("float", "int", "uint")] == ["float32", "int32", "uint32"]
    assert tir.Var("x", "handle").dtype == "handle"


@pytest.mark.parametrize("one, other, same", [
    ([1, 2], [1, 2], True), ([1, 2], [2, 1], False), ("a", "a", True), ("a", "b", False),
    (lambda: tir.decl_buffer((3,), name="b"), lambda: tir.decl_buffer((3,), name="b"), True),
    (lambda: tir.decl_buffer((3,)), lambda: tir.decl_buffer((4,)), False)])
def test_lists_texts_and_buffers_are_compared_by_structure(one, other, same):
    first, second = (made() if callable(made) else made for made in (one, other))
    assert ir.structural_equal(first, second, map_free_vars=True) == same
    assert (ir.structural_hash(first, map_free_vars=True) == ir.structural_hash(second, map_free_vars=True)) or not same


def test_scripts_use_constants_and_functions_around_them():
    A = te.placeholder((4,), name="A")
    B = scripts.shifted_by_closure()(A)
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    tedsl.build(te.create_schedule(B.op), [A, B])(a, b)
    np.testing.assert_array_equal(b, (a + 3) * 2)


def test_scripts_call_scripts():
    a, b = np.random.default_rng(0).random((2, 4), "float32")
    sums, squares = scripts.both_ways(scripts.products_of_a_script, a, b)
    np.testing.assert_allclose(sums, np.outer(a, b) + np.outer(range(4), range(4)), rtol=1e-6)
    np.testing.assert_allclose(squares, np.outer(b, b), rtol=1e-6)
    with pytest.raises(ExpressionError, match="a script returns 1 arrays to as many new names, outside of all loops"):
        scripts.two_of_one()(te.placeholder((4,), name="a"))


def test_all_options_of_the_evaluator():
    s, A, B = elementwise()
    f, a, b = tedsl.build(s, [A, B]), tedsl.nd.array(np.ones(16, "float32")), tedsl.nd.empty((16,))
    timed = f.time_evaluator(f.entry_name, tedsl.cpu(), number=1, repeat=2, min_repeat_ms=0, cooldown_interval_ms=0,
                             repeats_to_cooldown=1)(a, b)
    assert len(timed.results) == 2 and (b.numpy() == 2).all()


def test_arguments_of_operators_by_the_names_and_defaults_of_tvm():
    A = te.placeholder((2, 3), name="A")
    assert topi.reshape(A, newshape=(3, 2)).shape[0].value == 3
    assert topi.image.resize1d(te.placeholder((1, 3, 4)), [0.0] * 2, (8,)).shape[2].value == 8
    data, weight = te.placeholder((1, 3, 4, 4, 4)), te.placeholder((2, 3, 3, 3, 3))
    assert topi.nn.conv3d_ncdhw(data, weight, 1, 1, 1).shape[1].value == 2
    transposed = topi.nn.conv1d_transpose_ncw(te.placeholder((1, 3, 4)), te.placeholder((3, 2, 3)), 2, 0, "float32", 0)
    assert transposed.shape[2].value == 9
    i = te.placeholder((2, 1), "float32", name="i")
    taken = topi.gather_nd(A, i)
    a, out = np.arange(6, dtype="float32").reshape(2, 3), np.zeros(1, "float32")
    tedsl.build(te.create_schedule(taken.op), [A, i, taken])(a, np.array([[1], [2]], "float32"), out)
    assert out[0] == 5
    pooled = topi.testing.poolnd_python(a.reshape(1, 1, 2, 3), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), "avg", True, True)
    assert pooled.shape == (1, 1, 1, 2)


@pytest.mark.parametrize("notation", [
    "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+fullfp16", "llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon,+vfp4",
    "llvm -mtriple=riscv64-linux-gnu -mattr=+v,+m", "llvm -target=armv7l-linux-gnueabihf -mattr=+neon",
    "llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128"])
def test_features_of_other_processors(notation):
    target = tedsl.target.Target(notation)
    assert target.mtriple and target.features and not target.is_host

"""te.scan in schedules: interpreter, machine code and numpy agree."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import LoweringError, ScheduleError, TedslError
from tedsl.ir import builder
from tests.lower.programs import execute, whole_numbers

M, N = te.var("m"), te.var("n")
SIZES = [pytest.param(6, 5, {}, id="constant"), pytest.param(M, N, {M: 6, N: 5}, id="symbolic"),
         pytest.param(1, 1, {}, id="one"), pytest.param(M, N, {M: 1, N: 3}, id="one row"),
         pytest.param(M, N, {M: 2, N: 0}, id="empty rows"), pytest.param(4, N, {N: 9}, id="mixed")]


def both(s, args, values, sizes):
    """The arrays that the interpreter and the machine code compute; they must agree."""
    expected = execute(s, args, values, sizes)
    built = tedsl.build(s, args)
    results = {arg: np.full(array.shape, 55, array.dtype) for arg, array in expected.items()}
    built(*[values[arg] if arg in values else results[arg] for arg in args])
    for arg, array in expected.items():
        np.testing.assert_array_equal(results[arg], array, err_msg=str(arg))
    return results


def data(tensor, sizes, seed=0):
    shape = [dim.value if isinstance(dim, tir.IntImm) else sizes[dim] for dim in tensor.shape]
    return whole_numbers(shape, str(tensor.dtype), seed)


def text(s, args):
    return str(tedsl.lower(s, args, simple_mode=True))


class CumulativeSum:
    def __init__(self, m=6, n=5):
        self.X = X = te.placeholder((m, n), name="X")
        self.state = te.placeholder((m, n), name="state")
        self.init = te.compute((1, n), lambda _, i: X[0, i], name="init")
        self.update = te.compute((m, n), lambda t, i: self.state[t - 1, i] + X[t, i], name="update")
        self.scan = te.scan(self.init, self.update, self.state, inputs=[X], name="scan")
        self.s = te.create_schedule(self.scan.op)

    def check(self, sizes=None):
        x = data(self.X, sizes or {})
        assert (both(self.s, [self.X, self.scan], {self.X: x}, sizes or {})[self.scan] == np.cumsum(x, 0)).all()


# --- programs ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("m, n, sizes", SIZES)
def test_cumulative_sum(m, n, sizes):
    CumulativeSum(m, n).check(sizes)


@pytest.mark.parametrize("m, n, sizes", SIZES)
def test_loops_over_the_elements_of_a_row(m, n, sizes):
    p = CumulativeSum(m, n)
    outer, inner = p.s[p.update].split(p.update.op.axis[1], factor=4)
    p.s[p.update].parallel(outer)
    p.s[p.update].vectorize(inner)
    p.s[p.init].vectorize(p.s[p.init].split(p.init.op.axis[1], factor=2)[1])
    p.check(sizes)


LOOPS = """\
  for (i: int32, 0, 5) {
    scan_2[i] = (float32*)X_2[i]
  }
  for (scan.idx: int32, 0, 5) {
    for (i_1: int32, 0, 5) {
      scan_2[(((scan.idx*5) + i_1) + 5)] = ((float32*)scan_2[((scan.idx*5) + i_1)] + (float32*)X_2[(((scan.idx*5) + i_1) + 5)])
    }
  }
}"""


def test_text():
    p = CumulativeSum()
    assert text(p.s, [p.X, p.scan]).split("X_1: X, scan_1: scan} {\n")[1] == LOOPS
    assert "allocate" not in text(p.s, [p.X, p.scan])  # states, first rows and updates are the argument


@pytest.mark.parametrize("m, n, sizes", SIZES)
@pytest.mark.parametrize("place", ["default", "scan", "update", "inline"])
def test_a_cell_of_several_stages(m, n, sizes, place):
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    s1 = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="s1")
    s2 = te.compute((m, n), lambda t, i: s1[t, i] + X[t, i], name="s2")
    scan = te.scan(init, s2, state, inputs=[X], name="scan")
    s = te.create_schedule(scan.op)
    outer, _ = s[s2].split(s2.op.axis[1], factor=4)
    if place == "scan":
        s[s1].compute_at(s[scan], scan.op.scan_axis)
    elif place == "update":
        s[s1].compute_at(s[s2], outer)
    elif place == "inline":
        s[s1].compute_inline()
    x = data(X, sizes)
    expected = x.copy()
    for t in range(1, len(x)):
        expected[t] = expected[t - 1] * 2 + x[t]
    assert (both(s, [X, scan], {X: x}, sizes)[scan] == expected).all()


@pytest.mark.parametrize("m, n, sizes", SIZES)
def test_several_states(m, n, sizes):
    width = 3
    X = te.placeholder((m, n), name="X")
    Y = te.placeholder((m, width), "int32", name="Y")
    a, b = te.placeholder((m, n), name="a"), te.placeholder((m, width), "int32", name="b")
    a_init = te.compute((1, n), lambda _, i: X[0, i], name="a_init")
    b_init = te.compute((1, width), lambda _, i: i, name="b_init")
    a_update = te.compute((m, n), lambda t, i: a[t - 1, i] + X[t, i], name="a_update")
    b_update = te.compute((m, width), lambda t, i: b[t - 1, (i + 1) % width] + Y[t, i], name="b_update")
    A, B = te.scan([a_init, b_init], [a_update, b_update], [a, b], inputs=[X, Y], name="both")
    x, y = data(X, sizes), data(Y, sizes, 1)
    found = both(te.create_schedule(A.op), [X, Y, A, B], {X: x, Y: y}, sizes)
    rows = [np.arange(width)]
    for t in range(1, len(x)):
        rows.append(np.roll(rows[-1], -1) + y[t])
    assert (found[A] == np.cumsum(x, 0)).all() and (found[B] == np.stack(rows)).all()


def test_states_that_read_one_another():
    X = te.placeholder((7, 4), name="X")
    c, h = te.placeholder((7, 4), name="c"), te.placeholder((7, 4), name="h")
    zero = te.compute((1, 4), lambda _, i: 0.0, name="zero")
    one = te.compute((1, 4), lambda _, i: 1.0, name="one")
    c_next = te.compute((7, 4), lambda t, i: c[t - 1, i] + h[t - 1, 0], name="c_next")
    h_next = te.compute((7, 4), lambda t, i: c_next[t, i] * 2 + h[t - 1, i] + X[t, i], name="h_next")  # this step's row of c
    C, H = te.scan([zero, one], [c_next, h_next], [c, h], inputs=[X], name="cell")
    D = te.compute((7, 4), lambda t, i: C[t, i] - H[6 - t, i], name="D")
    s = te.create_schedule(D.op)
    x = data(X, {}) * 0 + np.arange(28, dtype="float32").reshape(7, 4) % 3
    cs, hs = [np.zeros(4)], [np.ones(4)]
    for t in range(1, 7):
        cs.append(cs[-1] + hs[-1][0])
        hs.append(cs[-1] * 2 + hs[-1] + x[t])
    assert (both(s, [X, D], {X: x}, {})[D] == np.stack(cs) - np.stack(hs)[::-1]).all()


@pytest.mark.parametrize("steps, width, sizes", [(5, 6, {}), (M, N, {M: 5, N: 6}), (M, 6, {M: 1})],
                         ids=["constant", "symbolic", "one row"])
@pytest.mark.parametrize("how", ["plain", "cached", "rfactor", "placed"])
def test_a_recurrent_cell_with_matrix_products(steps, width, sizes, how):
    X = te.placeholder((steps, 2, width), "int32", name="X")
    Wx, Wh = (te.placeholder((width, width), "int32", name=name) for name in ("Wx", "Wh"))
    h = te.placeholder((steps, 2, width), "int32", name="h")
    first = te.compute((1, 2, width), lambda _, b, j: X[0, b, j], name="first")
    k, l = te.reduce_axis((0, width), name="k"), te.reduce_axis((0, width), name="l")
    left = te.compute((steps, 2, width), lambda t, b, j: te.sum(X[t, b, k] * Wx[k, j], axis=k), name="left")
    right = te.compute((steps, 2, width), lambda t, b, j: te.sum(h[t - 1, b, l] * Wh[l, j], axis=l), name="right")
    cell = te.compute((steps, 2, width), lambda t, b, j: te.max(left[t, b, j] + right[t, b, j], 0) % 7, name="cell")
    H = te.scan(first, cell, h, inputs=[X], name="H")
    s = te.create_schedule(H.op)
    if how == "cached":
        old = s.cache_read(h, "local", [right])
        s[old].compute_at(s[H], H.op.scan_axis)
        acc = s.cache_write(right, "local")
        s[acc].compute_at(s[right], right.op.axis[1])
        s.cache_write(cell, "local")
    elif how == "rfactor":
        outer, inner = s[right].split(l, factor=4)
        s.rfactor(right, inner)
    elif how == "placed":
        outer, inner = s[cell].split(cell.op.axis[2], factor=4)
        s[right].compute_at(s[cell], outer)
        s[left].compute_at(s[cell], cell.op.axis[1])
        s[cell].vectorize(inner)
    x, wx, wh = (data(t, sizes, seed) for seed, t in enumerate((X, Wx, Wh)))
    rows = [x[0]]
    for t in range(1, len(x)):
        rows.append(np.maximum(x[t] @ wx + rows[-1] @ wh, 0) % 7)
    assert (both(s, [X, Wx, Wh, H], {X: x, Wx: wx, Wh: wh}, sizes)[H] == np.stack(rows)).all()


@pytest.mark.parametrize("m, sizes", [(9, {}), (M, {M: 9}), (M, {M: 2}), (2, {})], ids=["nine", "symbolic", "s2", "two"])
def test_two_first_rows_and_one_dimension(m, sizes):
    f = te.placeholder((m,), "int32", name="f")
    first = te.compute((2,), lambda i: i, name="first")
    step = te.compute((m,), lambda t: f[t - 1] + f[t - 2], name="step")
    F = te.scan(first, step, f, name="F")
    expected = [0, 1, 1, 2, 3, 5, 8, 13, 21][:sizes.get(M, m)]
    assert both(te.create_schedule(F.op), [F, *sizes], sizes, sizes)[F].tolist() == expected


@pytest.mark.parametrize("n, sizes", [(7, {}), (N, {N: 7}), (N, {N: 1})], ids=["constant", "symbolic", "one"])
@pytest.mark.parametrize("place", [False, True])
def test_a_stencil_over_time(n, sizes, place):
    s0 = te.placeholder((1, n), name="s0")
    u = te.placeholder((5, n), name="u")
    flux = te.compute((5, n + 1), lambda t, i: te.if_then_else(te.all(i > 0, i < n), u[t - 1, i] - u[t - 1, i - 1], 0.0),
                      name="flux")
    step = te.compute((5, n), lambda t, i: u[t - 1, i] + flux[t, i + 1] - flux[t, i], name="step")
    U = te.scan(s0, step, u, name="U")  # the first row is an argument: copied
    s = te.create_schedule(U.op)
    outer, inner = s[step].split(step.op.axis[1], factor=3)
    if place:
        s[flux].compute_at(s[step], outer)
    x = data(s0, sizes)
    rows = [x[0]]
    for _ in range(4):
        edges = np.concatenate([[0], np.diff(rows[-1]), [0]])
        rows.append(rows[-1] + edges[1:] - edges[:-1])
    assert (both(s, [s0, U], {s0: x}, sizes)[U] == np.stack(rows)).all()


@pytest.mark.parametrize("m, n, sizes", SIZES[:4])
def test_inside_a_bigger_program(m, n, sizes):
    X = te.placeholder((m, n), name="X")
    P = te.compute((m, n), lambda t, i: X[t, i] + 1, name="P")
    Q = te.compute((m, n), lambda t, i: P[t, i] * 2, name="Q")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: P[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + Q[t, i], name="update")
    scan = te.scan(init, update, state, inputs=[P], name="scan")  # Q is computed step by step
    C = te.compute((m, n), lambda t, i: scan[t, i] - P[m - 1 - t, i], name="C")
    s = te.create_schedule(C.op)
    assert m == 1 or text(s, [X, C]).index("scan.idx") < text(s, [X, C]).rindex("*2f32")
    x = data(X, sizes)
    p = x + 1
    expected = np.cumsum(np.concatenate([p[:1], 2 * p[1:]]), 0) - p[::-1]
    assert (both(s, [X, C], {X: x}, sizes)[C] == expected).all()
    s[C].reorder(C.op.axis[1], C.op.axis[0])
    s[scan].compute_at(s[C], C.op.axis[1])  # all of it again for each column: legal, not wise
    s[Q].compute_at(s[update], update.op.axis[1])
    assert (both(s, [X, C], {X: x}, sizes)[C] == expected).all()


def test_scans_of_scans():
    X = te.placeholder((5, 3), "int32", name="X")

    def sums(tensor, name):
        state = te.placeholder((5, 3), "int32", name=f"{name}.s")
        first = te.compute((1, 3), lambda _, i: tensor[0, i], name=f"{name}.first")
        step = te.compute((5, 3), lambda t, i: state[t - 1, i] + tensor[t, i], name=f"{name}.step")
        return te.scan(first, step, state, name=name)

    once = sums(X, "once")
    twice = sums(once, "twice")
    x = data(X, {})
    found = both(te.create_schedule([twice.op, once.op]), [X, once, twice], {X: x}, {})
    assert (found[twice] == np.cumsum(np.cumsum(x, 0), 0)).all() and (found[once] == np.cumsum(x, 0)).all()


def test_rows_before_under_a_condition_and_sums_over_them():
    X = te.placeholder((6, 2), "int32", name="X")
    state = te.placeholder((6, 2), "int32", name="state")
    init = te.compute((1, 2), lambda _, i: X[0, i], name="init")
    k = te.reduce_axis((0, 6), name="k")
    past = te.compute((6, 2), lambda t, i: te.sum(state[k, i], axis=k, where=k < t), name="past")
    update = te.compute((6, 2), lambda t, i: past[t, i] + te.if_then_else(t > 1, state[t - 2, i], X[t, i]), name="update")
    S = te.scan(init, update, state, name="S")
    x = data(X, {})
    rows = [x[0]]
    for t in range(1, 6):
        rows.append(sum(rows) + (rows[t - 2] if t > 1 else x[t]))
    assert (both(te.create_schedule(S.op), [X, S], {X: x}, {})[S] == np.stack(rows)).all()


def test_a_row_that_data_chooses():
    parent = te.placeholder((8,), "int32", name="parent")
    depth = te.placeholder((8,), "int32", name="depth")
    root = te.compute((1,), lambda i: 0, name="root")
    step = te.compute((8,), lambda t: depth[te.min(parent[t], t - 1)] + 1, name="step")
    D = te.scan(root, step, depth, name="D")
    found = both(te.create_schedule(D.op), [parent, D], {parent: np.array([0, 0, 0, 1, 3, 4, 99, -5], "int32")}, {})[D]
    assert found.tolist() == [0, 1, 1, 2, 3, 4, 5, 1]


def test_wide_shapes_and_an_offset_inside_the_step():
    m, n = te.const(6, "int64"), te.const(4, "int64")
    state = te.placeholder((m, n), "int64", name="state")
    init = te.compute((2, n), lambda t, i: t + i, name="init")
    shifted = te.compute((8, n), lambda t, i: state[t - 3, i] * 10, name="shifted")  # rows 4 .. 7 only
    update = te.compute((m, n), lambda t, i: shifted[t + 2, i] + state[t - 2, i], name="update")
    S = te.scan(init, update, state, name="S")
    rows = [np.arange(4), np.arange(4) + 1]
    for t in range(2, 6):
        rows.append(rows[t - 1] * 10 + rows[t - 2])
    assert (both(te.create_schedule(S.op), [S], {}, {})[S] == np.stack(rows)).all()


# --- the first rows ---------------------------------------------------------------------------------------------------

def test_first_rows_that_others_read_or_the_caller_wants_are_copied():
    X = te.placeholder((5, 3), name="X")
    init = te.compute((1, 3), lambda _, i: X[0, i] + 1, name="init")
    state = te.placeholder((5, 3), name="state")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i] * init[0, i], name="update")
    S = te.scan(init, update, state, name="S")
    x = data(X, {})
    expected = np.cumsum(np.concatenate([x[:1] + 1, x[1:] * (x[0] + 1)]), 0)
    assert (both(te.create_schedule(S.op), [X, S], {X: x}, {})[S] == expected).all()
    found = both(te.create_schedule([S.op, init.op]), [X, init, S], {X: x}, {})
    assert (found[S] == expected).all() and (found[init] == x[0] + 1).all()
    p = CumulativeSum()
    x = data(p.X, {})
    found = both(te.create_schedule(p.scan.op), [p.X, p.init, p.scan], {p.X: x}, {})
    assert (found[p.init] == x[:1]).all() and (found[p.scan] == np.cumsum(x, 0)).all()


def test_first_rows_of_several_outputs_and_of_an_extern():
    a, b = te.placeholder((4, 3), "int32", name="a"), te.placeholder((4, 3), "int32", name="b")
    firsts = te.compute((1, 3), lambda _, i: (i, i * 10), name="firsts")
    nexts = te.compute((4, 3), lambda t, i: (b[t - 1, i] + 1, a[t - 1, i] + t), name="nexts")
    A, B = te.scan(list(firsts), list(nexts), [a, b], name="ab")

    def fill(ins, outs):
        ib = builder.create()
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3, name="i") as i:
            out[0, i] = i * 5
        return ib.get()

    c = te.placeholder((4, 3), "int32", name="c")
    given = te.extern((1, 3), [], fill, dtype="int32", name="given")
    C = te.scan(given, te.compute((4, 3), lambda t, i: c[t - 1, i] + A[t, i], name="next"), c, name="C")
    found = both(te.create_schedule([C.op, B.op]), [A, B, C], {}, {})
    rows = [(np.arange(3), np.arange(3) * 10)]
    for t in range(1, 4):
        rows.append((rows[-1][1] + 1, rows[-1][0] + t))
    assert (found[A] == [r[0] for r in rows]).all() and (found[B] == [r[1] for r in rows]).all()
    assert (found[C] == np.cumsum(np.concatenate([[np.arange(3) * 5], found[A][1:]]), 0)).all()


# --- the loop over the steps ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("m, n, sizes", SIZES)
@pytest.mark.parametrize("how", ["split", "unroll", "twice"])
def test_loops_over_the_steps(m, n, sizes, how):
    p = CumulativeSum(m, n)
    twice = p.s.cache_write(p.update, "local") if how == "twice" else None
    outer, inner = p.s[p.scan].split(p.scan.op.scan_axis, factor=2)
    if how == "unroll":
        p.s[p.scan].unroll(inner)
    if twice is not None:
        p.s[twice].compute_at(p.s[p.scan], inner)
        inputs = p.s.cache_read(p.X, "local", [twice])
        p.s[inputs].compute_at(p.s[p.scan], outer)  # two rows of X at a time
    p.check(sizes)


# --- refusals ---------------------------------------------------------------------------------------------------------

def test_too_few_rows_at_the_call():
    p = CumulativeSum(M, N)
    built = tedsl.build(p.s, [p.X, p.scan])
    with pytest.raises(TedslError, match=r"no element|begins with 1 row"):
        built(np.zeros((0, 3), "float32"), np.zeros((0, 3), "float32"))


def test_what_has_no_memory_of_its_own():
    p = CumulativeSum()
    with pytest.raises(LoweringError, match=r"update is an argument, and its rows are part of scan(.|\n)*pass scan instead"):
        tedsl.build(p.s, [p.X, p.update])
    with pytest.raises(LoweringError, match=r"state is an argument, and its rows are part of scan"):
        tedsl.build(p.s, [p.X, p.state, p.scan])
    with pytest.warns(UserWarning, match="build refuses these loops: update is an argument"):
        tedsl.lower(p.s, [p.X, p.update])


@pytest.mark.parametrize("who", ["init", "update"])
@pytest.mark.parametrize("directive", ["storage_align", "double_buffer", "rolling_buffer"])
def test_memory_of_a_scan_takes_no_directives_and_a_copy_does(who, directive):
    p = CumulativeSum()
    tensor = getattr(p, who)

    def give(tensor):
        stage = p.s[tensor]
        stage.storage_align(stage.op.axis[0], 8, 1) if directive == "storage_align" else getattr(stage, directive)()

    before = str(p.s)
    with pytest.raises(ScheduleError, match=rf"stage {who}: {who} has no memory of its own: its rows are (.|\n)*"
                                            rf's\.cache_write\({who}, "local"\) computes into memory of our own, which can be'):
        give(tensor)
    assert str(p.s) == before
    copy = p.s.cache_write(tensor, "local")
    if directive == "double_buffer" and who == "update":
        p.s[copy].compute_at(p.s[p.update], p.s[p.update].op.axis[1])
    elif directive != "storage_align":
        return
    give(copy)
    p.check()


def test_a_scan_is_not_aligned():
    p = CumulativeSum()
    D = te.compute((6, 5), lambda i, j: p.scan[i, j] * 2.0, name="D")
    s = te.create_schedule(D.op)
    with pytest.raises(ScheduleError, match=r"scan is a scan: its rows follow one another(.|\n)*s\.cache_write\(update, "):
        s[p.scan].storage_align(p.scan.op.spatial_axis_[0], 8, 1)


@pytest.mark.parametrize("who", ["init", "update"])
@pytest.mark.parametrize("tail", ["guard", "mask", "partition", "shift_inwards", "round_up"])
def test_tails_of_splits_within_a_row(who, tail):
    p = CumulativeSum()
    stage = getattr(p, who)
    _, inner = p.s[stage].split(stage.op.axis[1], factor=4, tail=tail)
    p.s[stage].vectorize(inner)
    if tail != "round_up":
        return p.check()
    with pytest.raises(LoweringError, match=r"is computed into the memory of a scan, and the split of i with round_up"):
        tedsl.lower(p.s, [p.X, p.scan])


def test_a_row_before_the_first():
    X = te.placeholder((5,), name="X")
    state = te.placeholder((5,), name="state")
    init = te.compute((1,), lambda i: X[i], name="init")
    early = te.compute((5,), lambda t: state[t - 1] * 2, name="early")
    update = te.compute((5,), lambda t: te.if_then_else(t > 1, early[t - 1], X[t]) + state[t - 1], name="update")
    S = te.scan(init, update, state, name="S")  # early[1] is the first that is read: row 0 of the state
    x = data(X, {})
    rows = [x[0]]
    for t in range(1, 5):
        rows.append((rows[t - 2] * 2 if t > 1 else x[t]) + rows[-1])
    assert (both(te.create_schedule(S.op), [X, S], {X: x}, {})[S] == rows).all()


@pytest.mark.parametrize("m, n", [(7, 9), (te.size_var("m"), te.size_var("n"))], ids=["constant", "symbolic"])
@pytest.mark.parametrize("layout", [lambda t, i: [i, t], lambda t, i: [t, i // 4, i % 4], lambda t, i: [i // 4, t, i % 4]])
def test_layouts_that_keep_the_steps(m, n, layout):
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda t, i: X[t, i], name="init")
    inner = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="inner")
    update = te.compute((m, n), lambda t, i: inner[t, i] * 2, name="update")
    S = te.scan(init, update, state, inputs=[X], name="S")
    s = te.create_schedule(S.op)
    s[inner].transform_layout(layout)
    x = whole_numbers((7, 9), "float32", 0)
    expected = [x[0]]
    for row in x[1:]:
        expected.append((expected[-1] + row) * 2)
    for checked in (False, True):
        result = np.zeros_like(x)
        tedsl.build(s, [X, S], checked=checked)(x, result)
        np.testing.assert_array_equal(result, expected)


def test_a_stage_in_another_layout_reads_no_rows_beyond_the_state():
    """The padding of p1's layout reached p0 below its first element: "the index goes from (n - 1)%3 - 2" at the call."""
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), "int32", name="X"), te.placeholder((m, n), "int32", name="state")
    p0 = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="p0")
    p1 = te.compute((m, n), lambda t, i: p0[t, n - 1 - i] + 1, name="p1")
    scan = te.scan(te.compute((1, n), lambda t, i: i, name="init"), te.compute((m, n), lambda t, i: p1[t, i] % 13), state)
    s = te.create_schedule(scan.op)
    s[p1].transform_layout(lambda t, i: [i // 3, t, i % 3])
    x, got = np.arange(28, dtype="int32").reshape(7, 4), np.zeros((7, 4), "int32")
    tedsl.build(s, [X, scan])(x, got)
    rows = [np.arange(4)]
    for t in range(1, 7):
        rows.append(((rows[-1] + x[t])[::-1] + 1) % 13)
    np.testing.assert_array_equal(got, rows)

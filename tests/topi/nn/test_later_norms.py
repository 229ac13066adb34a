"""Normalizations, recurrent layers and pixel shuffle, of TVM 0.9 to 0.19, against torch and numpy."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check, plain
from topi import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional
rng = np.random.default_rng(3)
T = torch.from_numpy
LOOPS = {"plain": plain, "x86": topi.x86.schedule_injective, "threads": topi.cuda.schedule_injective}


def feed(*shape, dtype="float32", name="a"):
    return te.placeholder(shape, dtype, name=name), rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("loops", LOOPS)
def test_instances_groups_and_roots(loops):
    (a, x), (g, u), (b, v), (w, z), (c, y) = feed(2, 6, 3, 5), feed(6), feed(6), feed(3, 5), feed(2, 3, 6)
    check([nn.instance_norm(a, g, b, 1, [2, 3]), nn.group_norm(a, g, b, 3, 1, [2, 3], 1e-3),
           nn.group_norm(a, None, None, 2, 1, [2, 3]),
           nn.group_norm(c, g, b, 2, -1, [1]), nn.rms_norm(a, w, [2, 3]), nn.rms_norm(a, g, 1, 1e-2)],
          {a: x, g: u, b: v, w: z, c: y},
          [F.instance_norm(T(x), weight=T(u), bias=T(v)), F.group_norm(T(x), 3, T(u), T(v), 1e-3), F.group_norm(T(x), 2),
           F.group_norm(T(y.transpose(0, 2, 1).copy()), 2, T(u), T(v)).permute(0, 2, 1),
           x / np.sqrt((x ** 2).mean((2, 3), keepdims=True) + 1e-5) * z,
           x / np.sqrt((x ** 2).mean(1, keepdims=True) + 1e-2) * u[:, None, None]], 1e-4, 1e-5, LOOPS[loops])


@pytest.mark.parametrize("shape, groups", [((2, 6, 3, 5), 3), ((1, 12, 7), 2), ((3, 4, 5, 1), 4), ((2, 6, 17), 1), ((2, 8), 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_groups_are_normalized_in_the_loops_of_what_follows(shape, groups, dtype):
    """The result in the shape of groups is in no memory: neither alone nor before functions and another operand."""
    (a, x), (other, y) = feed(*shape, dtype=dtype), feed(*shape, dtype=dtype, name="other")
    (g, u), (b, v) = feed(shape[1], dtype=dtype, name="g"), feed(shape[1], dtype=dtype, name="b")
    made = nn.group_norm(a, g, b, groups, 1, list(range(2, len(shape))), 1e-3)
    expected = F.group_norm(T(x), groups, T(u), T(v), 1e-3).numpy()
    for out, wanted in ((made, expected), (topi.add(nn.relu(made), other), np.maximum(expected, 0) + y)):
        with tedsl.target.Target("llvm"):
            s = topi.schedules.schedule(out)
        args = [a, g, b, *([] if out is made else [other]), out]
        (grouped,) = made.op.input_tensors
        assert (s[grouped].attach_type == te.schedule.AttachType.INLINE) == (groups < shape[1])
        result = np.empty(shape, dtype)
        tedsl.build(s, args)(x, u, v, *([] if out is made else [y]), result)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_narrow_floats_are_computed_wide():
    (a, x), (g, u), (b, v) = (feed(2, 4, 9, dtype="float16"), *[feed(4, dtype="float16") for _ in range(2)])
    wide = F.group_norm(T(x).float(), 2, T(u).float(), T(v).float()).numpy().astype("float16")
    check(nn.group_norm(a, g, b, 2, 1, [2]), {a: x, g: u, b: v}, wide, 2e-3, 2e-3, plain)


@pytest.mark.parametrize("call, error, words", [
    (lambda a, g: nn.instance_norm(a, g, g, 1, [1, 2]), ShapeError, "are among those that are averaged"),
    (lambda a, g: nn.group_norm(a, g, g, 4, 1, [2]), ShapeError, "4 groups of 6 channels"),
    (lambda a, g: nn.group_norm(a, g, g, 2, 1, [1, 2]), ShapeError, "are among those that are averaged"),
    (lambda a, g: nn.rms_norm(a, g, 2), ShapeError, r"weight has the shape \(6,\)"),
    (lambda a, g: nn.rms_norm(topi.cast(a, "int32"), g, 1), DTypeError, "not floats"),
    (lambda a, g: nn.pixel_shuffle(a, 2), ShapeError, "pixel_shuffle of a"),
    (lambda a, g: nn.lstm(a, a, a), ShapeError, "steps, batch, in"),
    (lambda a, g: nn.lstm(a, a, a, weight_layout="IFGG"), ArgumentError, "weight_layout is 'IFGG'")])
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call(te.placeholder((2, 6, 3), name="a"), te.placeholder((6,), name="g"))


@pytest.mark.parametrize("shape, factor", [((2, 12, 3, 2), 2), ((9, 2, 4), 3)])
def test_pixel_shuffle(shape, factor):
    a, x = feed(*shape)
    made = nn.pixel_shuffle(a, factor)
    assert made.op.name == "PixelShuffle"
    check(made, {a: x}, F.pixel_shuffle(T(x), factor))


GIVEN = {"plain": {}, "biased": {"Bi": (20,), "Bh": (20,), "h_init": (2, 5), "c_init": (2, 5)},
         "projected": {"proj": (3, 5), "Bi": (20,)}, "peepholes": {"p_i": (2, 5), "p_f": (2, 5), "p_o": (2, 5)}}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("layout, reverse", [("IFGO", False), ("OGIF", True)])
def test_lstm(given, layout, reverse):
    steps, batch, width, hidden = 4, 2, 3, 5
    out = 3 if given == "projected" else hidden
    (xs, x), (wi, u) = feed(steps, batch, width, name="x"), feed(4 * hidden, width, name="wi")
    wh, v = feed(4 * hidden, out, name="wh")
    more = {name: feed(*shape, name=name) for name, shape in GIVEN[given].items()}
    tensors, arrays = ({name: pair[n] for name, pair in more.items()} for n in (0, 1))
    made = nn.lstm(xs, wi, wh, **tensors, reverse=reverse, weight_layout=layout)
    check(list(made), {xs: x, wi: u, wh: v, **dict(more.values())}, recurrence(x, u, v, layout, reverse, **arrays), 1e-4, 1e-5,
          plain)
    if given == "biased" and layout == "IFGO":
        layer = torch.nn.LSTM(width, hidden)
        with torch.no_grad():
            for name, value in (("weight_ih", u), ("weight_hh", v), ("bias_ih", arrays["Bi"]), ("bias_hh", arrays["Bh"])):
                getattr(layer, f"{name}_l0").copy_(T(value))
            expected, _ = layer(T(x), (T(arrays["h_init"])[None], T(arrays["c_init"])[None]))
        np.testing.assert_allclose(recurrence(x, u, v, layout, reverse, **arrays)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [2, 5, None])
def test_lstm_of_a_batch_reads_weights_of_the_state_from_a_copy(batch):
    """By the schedules of topi: rows of a batch share the copy, of which neighbouring results are vectors."""
    steps, width, hidden = 4, 7, 19
    rows = te.var("batch") if batch is None else batch
    xs, wi, wh = (te.placeholder(shape, name=name) for shape, name in (
        ((steps, rows, width), "x"), ((4 * hidden, width), "wi"), ((4 * hidden, hidden), "wh")))
    hs, cs = nn.lstm(xs, wi, wh)
    s = topi.schedules.schedule([hs, cs])
    assert ("Wh_columns" in [stage.op.name for stage in s.stages]) == (batch != 2)
    kernel = tedsl.build(s, [xs, wi, wh, hs, cs])
    for count in (1, 3, 11) if batch is None else (batch,):
        x, u, v = (rng.standard_normal(shape).astype("float32") for shape in
                   ((steps, count, width), (4 * hidden, width), (4 * hidden, hidden)))
        results = [np.empty((steps, count, hidden), "float32") for _ in range(2)]
        kernel(x, u, v, *results)
        for result, expected in zip(results, recurrence(x, u, v, "IFGO", False)):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def recurrence(x, wi, wh, layout, reverse, Bi=0, Bh=0, h_init=None, c_init=None, proj=None, p_i=0, p_f=0, p_o=0):
    def sigmoid(e):
        return 1 / (1 + np.exp(-e))

    hidden = len(wi) // 4
    h = np.zeros((x.shape[1], wh.shape[1]), "float32") if h_init is None else h_init
    c = np.zeros((x.shape[1], hidden), "float32") if c_init is None else c_init
    hs, cs = [], []
    for step in reversed(x) if reverse else x:
        gates = step @ wi.T + Bi + h @ wh.T + Bh
        i, f, g, o = (gates[:, layout.index(letter) * hidden:][:, :hidden] for letter in "IFGO")
        c = sigmoid(f + p_f * c) * c + sigmoid(i + p_i * c) * np.tanh(g)
        h = sigmoid(o + p_o * c) * np.tanh(c)
        h = h if proj is None else h @ proj.T
        hs.append(h)
        cs.append(c)
    return [np.stack(hs).astype("float32"), np.stack(cs).astype("float32")]

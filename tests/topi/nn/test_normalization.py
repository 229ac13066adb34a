"""Batch norm, lrn, l2_normalize, scale_shift, simulated quantization and losses against numpy."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, DTypeError, ShapeError
from tests.topi.checking import check
from topi import nn, testing
from topi.kinds import WindowSumOp

rng = np.random.default_rng(2)
SCHEDULES = {"plain": None, "x86": topi.x86.schedule_lrn}


def feed(shape, dtype="float32", name="a", low=-2.0):
    return te.placeholder(shape, dtype, name=name), rng.uniform(low, 2, shape).astype(dtype)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape, axis", [((2, 3, 4, 5), 1), ((1, 4, 1, 19), -1), ((1, 1), 0)])
def test_batch_norm(shape, axis, schedule):
    a, x = feed(shape)
    vectors = [feed((shape[axis],), name=name, low=0.1) for name in ("gamma", "beta", "mean", "var")]
    places, arrays = zip(*vectors)
    check([*nn.batch_norm(a, *places, axis, 1e-3), nn.batch_norm(a, *places, axis, scale=False)[0],
           nn.batch_norm(a, *places, axis, center=False)[0]], {a: x, **dict(vectors)},
          [*testing.batch_norm(x, *arrays, axis, 1e-3), testing.batch_norm(x, *arrays, axis, scale=False)[0],
           testing.batch_norm(x, *arrays, axis, center=False)[0]], 1e-5, 1e-5, SCHEDULES[schedule])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lrn_and_l2_normalize(schedule):
    (a, x), (b, y) = feed((2, 7, 3, 4)), feed((3, 17), name="b")
    check([nn.lrn(a, 3), nn.lrn(a, 5, 3, 0.1, 0.5, 1.0), nn.lrn(a, 1, 1), nn.l2_normalize(a, 1e-3, (1,)),
           nn.l2_normalize(b, 1e-3, 1), nn.l2_normalize(b, 100.0), nn.l2_normalize(b, 1e-3, [0, 1])], {a: x, b: y},
          [testing.lrn_python(x, 3, 1, 2, 0.0001, 0.75), testing.lrn_python(x, 5, 3, 1, 0.1, 0.5),
           testing.lrn_python(x, 1, 1, 2, 0.0001, 0.75), testing.l2_normalize_python(x, 1e-3, 1),
           testing.l2_normalize_python(y, 1e-3, 1), testing.l2_normalize_python(y, 100.0),
           testing.l2_normalize_python(y, 1e-3)], 1e-5, 1e-5, SCHEDULES[schedule])


def test_lrn_record_and_narrow_floats():
    a, x = feed((1, 4, 2, 2), "float16")
    made = nn.lrn(a, 3)
    squares = made.op.input_tensors[1]
    assert isinstance(squares.op.info, WindowSumOp) and squares.dtype == "float32"
    check(made, {a: x}, testing.lrn_python(x, 3, 1, 2, 0.0001, 0.75), 1e-3, 1e-3)


def test_against_torch():
    torch = pytest.importorskip("torch")
    f, x = torch.nn.functional, rng.standard_normal((2, 7, 3, 4))
    np.testing.assert_allclose(testing.lrn_python(x, 5, 1, 1.0, 0.1, 0.75),
                               f.local_response_norm(torch.from_numpy(x), 5, 0.1, 0.75, 1.0).numpy())
    x, t = rng.standard_normal((3, 4, 2)), rng.integers(0, 4, (3, 2))
    w = rng.random(4)
    for reduction in ("none", "sum", "mean"):
        np.testing.assert_allclose(testing.nll_loss(x, t, w, reduction, 2), f.nll_loss(
            torch.from_numpy(x), torch.from_numpy(t), torch.from_numpy(w), ignore_index=2, reduction=reduction).numpy())


def test_scale_and_shift():
    (a, x), (b, y) = feed((2, 3, 4, 5)), feed((1, 2, 3, 4, 6), name="b")
    (s, u), (t, v), (s5, u5), (t5, v5) = feed((3,)), feed((3,)), feed((5,)), feed((5,))
    (p, q), (r, z) = feed((2, 6)), feed((2, 6))
    check([nn.scale_shift_nchw(a, s, t), nn.scale_shift_nhwc(a, s5, t5), nn.scale_shift_nchwc(b, p, r)],
          {a: x, b: y, s: u, t: v, s5: u5, t5: v5, p: q, r: z},
          [x * u[:, None, None] + v[:, None, None], x * u5 + v5, y * q[:, None, None] + z[:, None, None]], 1e-5, 1e-5)


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 2), (2, 3, 2, 2)])
def test_nll_loss(shape):
    a, x = feed(shape)
    targets = (shape[0], *shape[2:])
    t, classes = te.placeholder(targets, "int32", name="t"), rng.integers(0, shape[1], targets).astype("int32")
    classes.flat[0] = -100
    w, u = feed((shape[1],), name="w", low=0.1)
    kinds = ("none", "sum", "mean")
    check([nn.nll_loss(a, t, w, kind, -100) for kind in kinds], {a: x, t: classes, w: u},
          [testing.nll_loss(x, classes, u, kind, -100) for kind in kinds], 1e-5, 1e-5)


@pytest.mark.parametrize("channels", [1, 5])
def test_simulated_quantization(channels):
    a, x = feed((3, 5))
    x = x * 100
    s, u = feed((channels,), name="s", low=0.3)
    z, v = te.placeholder((channels,), "int32", name="z"), np.arange(channels, dtype="int32")
    made = [nn.simulated_quantize(a, code, s, z) for code in ("int8", "uint8", 3, "disable")]
    back = nn.simulated_dequantize(a, te.const(1, "int32"), s, z)
    rounded = np.where(x / u < 0, -1, 1) * np.floor(np.abs(x / u) + np.float32(0.5)) + v
    check([*made, back], {a: x, s: u, z: v}, [rounded.clip(-128, 127).astype("float32"), rounded.clip(0, 255).astype("float32"),
                                             rounded.astype("float32"), x, ((x - v) * u).astype("float32")], 1e-5, 1e-5)


A = te.placeholder((2, 3, 4, 4), name="a")
V, I = te.placeholder((4,), name="v"), te.placeholder((2, 4, 4), "int32", name="i")


@pytest.mark.parametrize("call, error, words", [
    (lambda: nn.batch_norm(A, V, V, V, V), ShapeError, r"gamma v has the shape \(4,\) and dimension 1 of \(2, 3, 4, 4\) has 3"),
    (lambda: nn.batch_norm(A, V, V, V, V, 4), ShapeError, "axis 4 of a tensor of rank 4"),
    (lambda: nn.lrn(A, 4), ArgumentError, "lrn of a: size is 4"),
    (lambda: nn.l2_normalize(A, 1e-3, 5), ShapeError, "axis 5"),
    (lambda: nn.scale_shift_nchw(A, V, V), ShapeError, r"Scale v has the shape \(4,\), the channels of .* are \(3,\)"),
    (lambda: nn.scale_shift_nchwc(A, V, V), ShapeError, "has 4 dimensions, not 5"),
    (lambda: nn.nll_loss(A, I, V, "sum", 0), ShapeError, r"weights are \(4,\) for 3 classes"),
    (lambda: nn.nll_loss(A, V, V, "sum", 0), ShapeError, r"targets are \(4,\) and predictions \(2, 3, 4, 4\)"),
    (lambda: nn.nll_loss(A, I, V, "max", 0), ArgumentError, 'reduction is "max"'),
    (lambda: nn.nll_loss(A, te.placeholder((2, 4, 4), name="f"), te.placeholder((3,)), "sum", 0), DTypeError, "holds float32"),
    (lambda: nn.simulated_quantize(A, 1, V), ArgumentError, "output_zero_point is missing"),
    (lambda: nn.simulated_quantize(A, "int4", V, V), ArgumentError, 'no dtype "int4"'),
    (lambda: nn.simulated_quantize(A, 1, V, V, 1), ShapeError, r"output_scale v has the shape \(4,\)"),
])
def test_what_does_not_fit_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""A convolution with what stands behind it in a network: bias, batch norm, relu. One loop nest, by the schedule of topi.

Run it: `python tutorials/09_convolution.py`. Everything that it claims, it checks. torch, where installed, is only timed.
"""

import time

import numpy as np

import tedsl
import topi
from tedsl import te
from topi import nn

rng = np.random.default_rng(0)


def feed(shape, name, low=-1.0):
    """A tensor of the formula, and the array that it stands for."""
    return te.placeholder(shape, name=name), rng.uniform(low, low + 1, shape).astype("float32")


# --- 1. The formula ---------------------------------------------------------------------------------------------------
# An image of 64 channels, 64 results, windows of 3 x 3 that move by one, a border of one zero: a layer of ResNet-18.
channels, results, size = 64, 64, 56
(image, pixels), (weight, w) = feed((1, channels, size, size), "image"), feed((results, channels, 3, 3), "weight")
(bias, b), (gamma, g), (beta, h), (mean, m), (var, v) = [
    feed((results,), name, low) for name, low in (("bias", -0.5), ("gamma", 0.5), ("beta", -0.5), ("mean", -0.5), ("var", 0.5))]
conv = nn.conv2d(image, weight, strides=1, padding=1, dilation=1)
normal, _, _ = nn.batch_norm(nn.bias_add(conv, bias), gamma, beta, mean, var)
layer = nn.relu(normal)

# The record of an operator says what it is; schedules read it, and so can you.
record = conv.op.info
print(f"{record.operator}: layout {record.layout}, weights {record.kernel_layout}, strides {record.strides}")
assert (record.operator, record.layout, record.kernel_layout) == ("conv2d_nchw", "NCHW", "OIHW")

# --- 2. The schedule --------------------------------------------------------------------------------------------------
# One call for the whole graph. The sums of a tile are computed where the relu of the tile is stored; bias and batch norm are
# written into it. No array holds the convolution without its relu.
s = topi.x86.schedule_conv2d_nchw(layer)
print("\nThe schedule:\n")
print(s)
assert "conv2d_nchw: computed at T_relu" in str(s) and "T_batch_norm: computed inline" in str(s)

# That was for the processor at hand; here are the loops for one with vectors of eight floats, two of them in a tile. Each
# thread has copied the weights of its channels. Rows of the window that lie in the border of zeros are skipped.
arguments = [image, weight, bias, gamma, beta, mean, var, layer]
with tedsl.target.Target("llvm -mcpu=haswell"):
    haswell = tedsl.lower(topi.x86.schedule_conv2d_nchw(layer), arguments, simple_mode=True).readable()
print("\nIts loops for vectors of eight floats, the inner part:\n")
inner = haswell[haswell.index("        for ax2.outer in range("):]
print(inner)
assert "for ax1.outer in parallel(" in haswell and "conv2d_nchw[0, " in inner

# --- 3. The same in numpy ---------------------------------------------------------------------------------------------
# A view with the windows as dimensions of their own, and one product of matrices over channels and window.
def layer_numpy(x):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwyx,ocyx->nohw", windows, w, optimize=True)
    bias_, mean_, var_, gamma_, beta_ = (one.reshape(-1, 1, 1) for one in (b, m, v, g, h))
    return np.maximum((sums + bias_ - mean_) / np.sqrt(var_ + 1e-5) * gamma_ + beta_, 0)


expected = layer_numpy(pixels)
arrays, result = [pixels, w, b, g, h, m, v], np.empty((1, results, size, size), "float32")
for room in (topi.generic, topi.x86, topi.cuda):  # threads of a graphics processor run as loops here
    tedsl.build(room.schedule_conv2d_nchw(layer), arguments, "llvm")(*arrays, result)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    print(f"{room.__name__}: as numpy says, to {abs(result - expected).max() / expected.max():.1e} of the largest")


# --- 4. Time ----------------------------------------------------------------------------------------------------------
def median_ms(function, *args, rounds=15):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function(*args)
        taken.append(time.perf_counter() - begin)
    return 1e3 * sorted(taken)[rounds // 2]


begin = time.perf_counter()
kernel = tedsl.build(s, arguments)
built = 1e3 * (time.perf_counter() - begin)
kernel(*arrays, result)
np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
ours, work = median_ms(kernel, *arrays, result), 2e-6 * results * channels * 9 * size * size
print(f"\nTime of one call, median, on all cores: topi {ours:.3f} ms ({work / ours:.0f} GFLOP/s), built in {built:.0f} ms")
print(f"  numpy {median_ms(layer_numpy, pixels, rounds=5):.3f} ms: it writes out the windows, nine times the image, to "
      "multiply matrices")
try:
    import torch
except ImportError:
    print("  torch is not installed, its time is left out")
else:
    t = dict(zip(("x", "w", "b", "g", "h", "m", "v"), map(torch.from_numpy, arrays)))

    def layer_torch():
        with torch.no_grad():
            y = torch.nn.functional.conv2d(t["x"], t["w"], t["b"], padding=1)
            return torch.relu(torch.nn.functional.batch_norm(y, t["m"], t["v"], t["g"], t["h"]))

    np.testing.assert_allclose(layer_torch().numpy(), result, rtol=1e-4, atol=1e-4)
    print(f"  torch {median_ms(layer_torch):.3f} ms, three calls of its functions")

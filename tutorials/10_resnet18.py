"""ResNet-18 from calls of topi: one graph, one schedule, one kernel that takes an image and returns 1000 numbers.

Run it: `python tutorials/10_resnet18.py [size of the image, 224]`. The weights are random, from a seed: what is shown is that
the network computes what torch computes with the same weights (where torch is installed), and how long each stage takes.

The network: He et al., Deep Residual Learning for Image Recognition (2015), table 1, 18 layers.
"""

import re
import sys
import time

import numpy as np

import tedsl
import topi
from tedsl import te
from topi import nn

try:
    import torch
    from torch.nn import functional as F
except ImportError:
    torch = None

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 224
rng = np.random.default_rng(18)

# --- 1. Weights -------------------------------------------------------------------------------------------------------
# A weight is made when a layer first asks for it: the tensor that the formulas read, and its array.
tensors, arrays = {}, {}


def parameter(name, shape, low=None, high=None):
    """The tensor `name`: uniform between low and high, or normal, so that the numbers stay in the range of 1."""
    if name not in tensors:
        tensors[name] = te.placeholder(shape, name=name)
        normal = rng.standard_normal(shape, "float32") * np.float32((2 / np.prod(shape[1:])) ** 0.5)
        arrays[name] = normal if low is None else rng.uniform(low, high, shape).astype("float32")
    return tensors[name]


# --- 2. Layers --------------------------------------------------------------------------------------------------------
def conv_norm(x, results, kernel, stride, name, scale=1.0):
    """A convolution and a batch norm; `scale`: about what the channels are multiplied by."""
    weight = parameter(f"{name}_weight", (results, int(x.shape[1]), kernel, kernel))
    y = nn.conv2d(x, weight, stride, kernel // 2, 1)
    around = {"gamma": scale, "beta": 0.0, "mean": 0.0, "var": 1.0}
    numbers = [parameter(f"{name}_{key}", (results,), at - 0.1, at + 0.1) for key, at in around.items()]
    return nn.batch_norm(y, *numbers)[0]


def block(x, results, stride, name):
    """Two convolutions, and what came in added to what comes out."""
    y = nn.relu(conv_norm(x, results, 3, stride, f"{name}_1"))
    y = conv_norm(y, results, 3, 1, f"{name}_2", 0.5)
    same = stride == 1 and int(x.shape[1]) == results
    return nn.relu(y + (x if same else conv_norm(x, results, 1, stride, f"{name}_short")))


# --- 3. Stages: from the image to the numbers -------------------------------------------------------------------------
def stem(x):
    y = nn.relu(conv_norm(x, 64, 7, 2, "stem"))
    return nn.pool2d(y, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")


def blocks(number, results, stride):
    return lambda x: block(block(x, results, stride, f"b{number}_1"), results, 1, f"b{number}_2")


def head(x):
    pooled = nn.flatten(nn.global_pool(x, "avg"))
    return nn.dense(pooled, parameter("fc_weight", (1000, 512)), parameter("fc_bias", (1000,), -0.5, 0.5))


STAGES = {"stem": stem, "blocks 1": blocks(1, 64, 1), "blocks 2": blocks(2, 128, 2), "blocks 3": blocks(3, 256, 2),
          "blocks 4": blocks(4, 512, 2), "head": head}


# --- 4. One schedule, one kernel --------------------------------------------------------------------------------------
def compiled(result, x):
    """A function from the array for `x` to that of `result`; the schedule of its kernel and the tensors that it reads."""
    s = topi.schedules.schedule(result)
    reads = [stage.op.output(0) for stage in s.stages if isinstance(stage.op, te.PlaceholderOp)]
    kernel = tedsl.build(s, [*reads, result])
    out = np.empty([int(extent) for extent in result.shape], "float32")

    def call(value):
        kernel(*[value if one.name == x.name else arrays[one.name] for one in reads], out)
        return out

    return call, s, reads


image = te.placeholder((1, 3, SIZE, SIZE), name="image")
logits = image
for stage in STAGES.values():
    logits = stage(logits)
begin = time.perf_counter()
network, schedule, reads = compiled(logits, image)
print(f"ResNet-18 of {len(schedule.stages)} stages and {len(reads)} tensors to read, scheduled and built in "
      f"{time.perf_counter() - begin:.1f} s")

# Nothing is stored between a convolution and its relu: batch norms are inlined, and a convolution is computed in the loops of
# what follows it, the residual included.
text = str(schedule)
convolutions = len(re.findall(r"^  conv2d_nchw\S*: ", text, re.MULTILINE))
inside = len(re.findall(r"^  conv2d_nchw\S*: computed at T_\S+, loop", text, re.MULTILINE))
print(f"{inside} of {convolutions} convolutions are computed in the loops of what follows them")
assert inside == convolutions == 20

# What has to be stored shares few arrays: one is free again when its last reader is done.
ROOT = 1
stored = [one.op.output(0).shape for one in schedule.stages
          if isinstance(one.op, te.ComputeOp) and one.attach_type == ROOT and not one.is_output]
apart = sum(4e-6 * np.prod([int(extent) for extent in shape]) for shape in stored)
loops = str(tedsl.lower(schedule, [*reads, logits], simple_mode=True))
arrays_of_kernel = [int(n) for n in re.findall(r"^  allocate\(.*\[(\d+)\]\)", loops, re.MULTILINE)]
shared = 4e-6 * sum(arrays_of_kernel)
print(f"{len(stored)} results in between would take {apart:.1f} MB; in the kernel they share {len(arrays_of_kernel)} arrays of "
      f"{shared:.1f} MB")
assert shared < apart / 2


# --- 5. The same with torch -------------------------------------------------------------------------------------------
def torch_stages():
    """The stages as functions of torch, with the same weights: written again, not derived from those above."""
    w = {name: torch.from_numpy(array) for name, array in arrays.items()}

    def conv_norm(x, name, stride):
        kernel = w[f"{name}_weight"]
        y = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        return F.batch_norm(y, *[w[f"{name}_{key}"] for key in ("mean", "var", "gamma", "beta")])

    def block(x, stride, name):
        y = conv_norm(F.relu(conv_norm(x, f"{name}_1", stride)), f"{name}_2", 1)
        return F.relu(y + (conv_norm(x, f"{name}_short", stride) if f"{name}_short_weight" in w else x))

    def blocks(number, stride):
        return lambda x: block(block(x, stride, f"b{number}_1"), 1, f"b{number}_2")

    return {"stem": lambda x: F.max_pool2d(F.relu(conv_norm(x, "stem", 2)), 3, 2, 1), "blocks 1": blocks(1, 1),
            "blocks 2": blocks(2, 2), "blocks 3": blocks(3, 2), "blocks 4": blocks(4, 2),
            "head": lambda x: F.linear(x.mean((2, 3)), w["fc_weight"], w["fc_bias"])}


def median_ms(function, *args, rounds=9):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function(*args)
        taken.append(time.perf_counter() - begin)
    return 1e3 * sorted(taken)[rounds // 2]


def without_gradients(function):
    def call(x):
        with torch.no_grad():
            return function(torch.from_numpy(x)).numpy()

    return call


# --- 6. Stage by stage ------------------------------------------------------------------------------------------------
# To look at the stages one by one, each gets a kernel of its own; what one returns goes into the next.
theirs = {name: without_gradients(call) for name, call in torch_stages().items()} if torch else {}
picture = rng.standard_normal((1, 3, SIZE, SIZE), "float32")
if not torch:
    print("torch is not installed: the stages are timed, and checked against the one kernel alone")
print(f"\nTime of a call in ms, median{', torch with its threads and without gradients' if torch else ''}:\n")
value = picture
for name, stage in STAGES.items():
    x = te.placeholder(value.shape, name="x")
    call, _, _ = compiled(stage(x), x)
    result, beside = call(value), ""
    if torch:
        np.testing.assert_allclose(result, theirs[name](value), rtol=1e-4, atol=1e-4)
        beside = f"   torch {median_ms(theirs[name], value):8.3f}"
    print(f"  {name:9} {value.shape!s:18} -> {result.shape!s:18} topi {median_ms(call, value):8.3f}{beside}")
    value = result
np.testing.assert_allclose(network(picture), value, rtol=1e-4, atol=1e-4)
beside = ""
if torch:
    def torch_network(x):
        for call in theirs.values():
            x = call(x)
        return x

    np.testing.assert_allclose(network(picture), torch_network(picture), rtol=1e-4, atol=1e-4)
    beside = f"   torch {median_ms(torch_network, picture):8.3f}"
print(f"  {'ResNet-18':9} {picture.shape!s:18} -> {value.shape!s:18} topi {median_ms(network, picture):8.3f}{beside}")
# A measure for these times: 1.8 billion multiplications for 224 x 224, which numpy does in one product of square matrices.
side = round((1.814e9 * (SIZE / 224) ** 2) ** (1 / 3))
square = rng.standard_normal((side, side), "float32")
print(f"\nnumpy multiplies as many numbers in {median_ms(np.matmul, square, square):.1f} ms, in one product of {side} x {side} "
      "matrices:\nwhat the network takes above that is for layers whose matrices are small, and for loading and storing.")
print(f"The image is most of all a {int(network(picture).argmax())}; with random weights that says nothing.")

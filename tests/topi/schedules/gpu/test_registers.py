"""Kernels of drawn shapes under the schedules of topi.cuda: NVIDIA's assembler spills no register, blocks have the memory."""

import random

import pytest

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from tests.codegen.nvptx.assembler import assembler_for
from topi.schedules.gpu.block_tiles import block_tile, element_threads, unrolled_statements
from topi.schedules.gpu.limits import limits_of

KINDS = ("NCHW", "NHWC", "tensor cores", "depthwise NCHW", "depthwise NHWC")
FOUND = [  # spilled, or more shared memory than a block has
    ("NHWC", 1, 64, 64, 5, 1, 1, 3, 8, "float32", True, "sm_90"),
    ("NCHW", 1, 64, 38, 5, 1, 1, 128, 16, "float32", False, "sm_80"),
    ("NCHW", 16, 17, 12, 3, 2, 2, 48, 64, "float32", False, "sm_90"),
    ("NCHW", 2, 7, 7, 1, 1, 1, 256, 10, "float32", True, "sm_80"),
    ("tensor cores", 8, 64, 64, 7, 2, 1, 32, 256, "float16", False, "sm_90"),
    ("tensor cores", 8, 28, 28, 5, 1, 2, 128, 256, "float16", True, "sm_90"),
    ("depthwise NCHW", 1, 17, 22, 3, 1, 1, 64, 2, "float32", False, "sm_80"),
    ("tensor cores", 16, 56, 19, 1, 2, 2, 128, 64, "float16", False, "sm_80"),
    ("tensor cores", 16, 56, 19, 1, 2, 2, 128, 64, "float16", False, "sm_90")]


def drawn(seed):
    rng = random.Random(seed)
    kind, height = rng.choice(KINDS), rng.choice((7, 8, 13, 14, 17, 28, 31, 56, 64))
    cores = kind == "tensor cores"
    channels = rng.choice((16, 32, 64, 128)) if cores else rng.choice((3, 16, 48, 64, 96, 256))
    results = rng.choice((1, 2)) if kind.startswith("depthwise") else rng.choice((32, 64, 256) if cores else (8, 10, 64, 256))
    return (kind, rng.choice((8, 16)) if cores else rng.choice((1, 2, 16)), height, rng.choice((height, rng.randint(5, 60))),
            rng.choice((1, 3, 5, 7)), rng.choice((1, 2)), rng.choice((1, 1, 2)), channels, results,
            "float16" if cores else rng.choice(("float32", "float16")), rng.random() < 0.5, rng.choice(("sm_80", "sm_90")))


def convolution(kind, images, height, width, window, stride, dilation, channels, results, dtype, relu):
    """A convolution of odd or even sizes, and its schedule. results: channels of the result, by channel of depthwise ones."""
    padding = (dilation * (window - 1) + 1) // 2
    last = kind.endswith("NHWC") or kind == "tensor cores"
    data = (images, height, width, channels) if last else (images, channels, height, width)
    deep, many = (channels, results) if last or kind.startswith("depthwise") else (results, channels)
    weights = (window, window, deep, many) if last else (deep, many, window, window)
    A, W = te.placeholder(data, dtype, name="A"), te.placeholder(weights, dtype, name="W")
    layout = "nhwc" if last else "nchw"
    name = f"depthwise_conv2d_{layout}" if kind.startswith("depthwise") else f"conv2d_{layout}"
    out = {"out_dtype": "float32"} if kind == "tensor cores" else {}
    B = getattr(topi.nn, name)(A, W, stride, padding, dilation, **out)
    B = topi.nn.relu(B) if relu else B
    return [A, W, B], getattr(topi.cuda, f"schedule_{name}{'_tensorcore' if kind == 'tensor cores' else ''}")([B])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", [*FOUND, *(drawn(seed) for seed in range(60))], ids=str)
def test_no_convolution_spills(case):
    *of, arch = case
    assembler_for(arch)
    target = Target(f"cuda -arch={arch}")
    with target, tedsl.transform.PassContext(config={"tedsl.check_registers": True}):
        try:
            args, s = convolution(*of)
        except tedsl.errors.ArgumentError as e:
            assert case[0] == "tensor cores" and "no shape of theirs divides" in str(e)
            return
        tedsl.build(s, args, target=target)


@pytest.mark.parametrize("rows, columns", [(1, 7), (1000, 3), (64, 4096), (6000, 6000), (8 * 1023, 8 * 1023)])
def test_a_thread_has_the_registers_of_its_tile(rows, columns):
    limits = limits_of(Target("cuda -registers_per_block=32768"))
    tile = block_tile(rows, columns, 64, 16, 4, limits)
    held = tile.down * tile.across + tile.down + tile.across
    assert held + 24 <= min(255, limits.registers // tile.threads)
    unrolled = unrolled_statements(tile.down, tile.across, tile.threads, limits)
    assert unrolled % (tile.down * tile.across) == 0 and unrolled > 0


@pytest.mark.parametrize("each", [1, 32])
@pytest.mark.parametrize("count", [1, 7, 49, 784, 4096, 10007, 200704, 10**7 + 19])
def test_threads_of_results_that_share_nothing(count, each):
    limits = limits_of(Target("cuda"))
    number = element_threads(count, each, limits)
    assert 1 <= number * each <= limits.threads
    if count * each >= limits.processors * limits.threads:
        assert number * each >= limits.threads // 2  # enough for all: large blocks
    elif count >= limits.processors * limits.warp:
        assert -(-count // number) >= limits.processors  # no processor is idle while others have several blocks

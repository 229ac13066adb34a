"""Schedules with blocks and threads, their threads run as loops of the processor: shapes that no tile divides, every layout,
tiles of the user's, rows of warps and of blocks, other limits of the device.
"""

import numpy as np
import pytest
import scipy.special

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target import Target
from tests.topi.run import run
from topi import nn, testing
from topi.cuda import ConvTiles
from topi.schedules.gpu.block_tiles import block_tile
from topi.schedules.gpu.limits import limits_of

pytestmark = pytest.mark.whole

rng = np.random.default_rng(3)


def floats(*shape):
    return rng.standard_normal(shape, "float32")


def feed(*shape, name="a"):
    return te.placeholder(shape, name=name), floats(*shape)


def close(made, expected):
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (3, 32), (2, 64), (5, 96), (2, 2048), (1, 2080), (2, 33), (1, 13000), (3, 0)],
                         ids=str)
def test_softmax_of_rows_that_fit_a_warp_a_block_or_neither(shape):
    x, data = feed(*shape)
    if 0 in shape:
        assert run(nn.softmax(x), {x: data}, "cuda").shape == shape
    else:
        close(run(nn.softmax(x), {x: data}, "cuda"), scipy.special.softmax(data, 1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_by_warps_along_any_axis_with_what_follows(axis):
    x, data = feed(32, 64, 96)
    close(run(nn.relu(nn.softmax(x, axis) - 0.01), {x: data}, "cuda"), np.maximum(scipy.special.softmax(data, axis) - 0.01, 0))


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (4, 4, 4), (5, 7, 3), (64, 64, 64), (65, 33, 40), (3, 100, 70), (100, 3, 70),
                                     (130, 67, 1), (17, 129, 130)])
def test_products(m, n, k):
    (a, x), (b, y) = feed(m, k), feed(n, k, name="b")
    close(run(nn.relu(nn.dense(a, b)), {a: x, b: y}, "cuda"), np.maximum(x @ y.T, 0))


def test_a_product_of_a_matrix_with_itself():
    a, x = feed(20, 20)
    close(run(topi.matmul(a, a), {a: x}, "cuda"), x @ x)


@pytest.mark.parametrize("batch, m, n, k", [(1, 8, 8, 8), (3, 17, 9, 33), (2, 64, 70, 5)])
def test_products_in_batches(batch, m, n, k):
    (a, x), (b, y) = feed(batch, m, k), feed(batch, n, k, name="b")
    close(run(nn.batch_matmul(a, b), {a: x, b: y}, "cuda"), x @ y.transpose(0, 2, 1))


# channels, height, width, results, kernel, stride, padding, dilation, groups
CONVOLUTIONS = [(3, 5, 5, 1, 3, 1, 1, 1, 1), (5, 9, 7, 17, 3, 1, 1, 1, 1), (4, 6, 35, 33, 3, 2, 0, 1, 1),
                (6, 7, 13, 48, 1, 1, 0, 1, 1), (8, 6, 9, 64, 3, 2, 1, 2, 2), (6, 6, 9, 9, 3, 1, 1, 1, 3),
                (64, 7, 7, 40, 3, 1, 1, 1, 1)]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=str)
def test_convolutions(shape, layout):
    c, h, w, o, k, stride, padding, dilation, groups = shape
    x, z = floats(2, c, h, w), floats(o, c // groups, k, k)
    expected = np.maximum(testing.conv2d_nchw_python(x, z, stride, padding, groups, dilation), 0)
    operator = nn.group_conv2d_nchw
    if layout == "NHWC":
        x, z, expected, operator = x.transpose(0, 2, 3, 1), z.transpose(2, 3, 1, 0), expected.transpose(0, 2, 3, 1), \
            nn.group_conv2d_nhwc
    a, b = te.placeholder(x.shape, name="a"), te.placeholder(z.shape, name="b")
    close(run(nn.relu(operator(a, b, stride, padding, dilation, groups)), {a: x, b: z}, "cuda"), expected)


def test_convolutions_of_one_and_three_dimensions():
    (a, x), (b, z) = feed(2, 5, 21), feed(7, 5, 3, name="b")
    close(run(nn.conv1d_ncw(a, b, 1, 1, 1), {a: x, b: z}, "cuda"), testing.conv1d_ncw_python(x, z, 1, 1, 1))
    (a, x), (b, z) = feed(1, 3, 4, 5, 6), feed(7, 3, 3, 3, 3, name="b")
    close(run(nn.conv3d_ncdhw(a, b, 1, 1, 1), {a: x, b: z}, "cuda"), testing.conv3d_ncdhw_python(x, z, 1, 1))


@pytest.mark.parametrize("tiles", [
    ConvTiles((1, 2, 3, 2), (1, 1, 2, 2), (1, 3, 4, 1), (1, 2), (1, 3), (1, 1), 0),
    ConvTiles((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (1, 1), (1, 1)),
    ConvTiles((1, 3, 5, 1), (1, 2, 7, 1), (1, 1, 16, 2), (1, 5), (1, 2), (1, 3), 64),
], ids=str)
def test_tiles_of_the_user(tiles):
    (a, x), (b, z) = feed(1, 5, 9, 11), feed(7, 5, 3, 3, name="b")
    out = nn.relu(nn.conv2d_nchw(a, b, 1, 1, 1))
    made = np.empty((1, 7, 9, 11), "float32")
    tedsl.build(topi.cuda.schedule_conv2d_nchw([out], tiles), [a, b, out])(x, z, made)
    close(made, np.maximum(testing.conv2d_nchw_python(x, z, 1, 1), 0))


def test_tiles_that_do_not_fit_are_refused():
    a, b = te.placeholder((1, 5, 9, 11), name="a"), te.placeholder((7, 5, 3, 3), name="b")
    out, fine = nn.conv2d_nchw(a, b, 1, 1, 1), ConvTiles((1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (1, 1), (1, 1))
    for field, value, words in (("f", (1, 1, 1), "f is (1, 1, 1), not a tuple of 4 positive numbers"),
                                ("rc", (1, 0), "rc is (1, 0), not a tuple of 2 positive numbers"),
                                ("x", (1, 1, 2000, 1), "2000 threads, and a block of the device has at most 1024")):
        changed = ConvTiles(**{name: getattr(fine, name) for name in ("f", "y", "x", "rc", "ry", "rx")} | {field: value})
        with pytest.raises(ArgumentError) as caught:
            topi.cuda.schedule_conv2d_nchw([out], changed)
        assert words in str(caught.value)
    with pytest.raises(ArgumentTypeError, match=r"tiles is a topi\.cuda\.ConvTiles"):
        topi.cuda.schedule_conv2d_nchw([out], 4)


def threads_of(module):
    """The largest block that the text of lowered loops launches."""
    best, block = 0, {}
    for line in str(module).splitlines():
        if '"thread_extent"' in line and "threadIdx" in line:
            block[line.split("threadIdx.")[1][0]] = int(line.split("thread_extent\" = ")[1].split(";")[0].split(" ")[0])
            best = max(best, int(np.prod(list(block.values()))))
    return best


@pytest.mark.parametrize("target, threads", [("cuda", 1024), ("opencl", 256), ("cuda -max_num_threads=128", 128)])
def test_blocks_keep_the_limit_of_the_device(target, threads):
    (a, _), (b, _) = feed(1, 16, 30, 30), feed(32, 16, 3, 3, name="b")
    c, d = te.placeholder((200, 300), name="c"), te.placeholder((100, 300), name="d")
    with Target(target):
        programs = [(topi.cuda.schedule_conv2d_nchw, nn.conv2d_nchw(a, b, 1, 1, 1), [a, b]),
                    (topi.cuda.schedule_reduce, topi.sum(c, axis=1), [c]), (topi.cuda.schedule_reduce, topi.sum(c), [c]),
                    (topi.cuda.schedule_injective, topi.exp(c), [c]), (topi.cuda.schedule_softmax, nn.softmax(c), [c]),
                    (topi.cuda.schedule_dense, nn.dense(c, d), [c, d])]
        for schedule, out, arguments in programs:
            launched = threads_of(tedsl.lower(schedule([out]), [*arguments, out], simple_mode=True))
            assert 1 < launched <= threads, (out, launched)


@pytest.mark.parametrize("target", ["cuda", "opencl", "cuda -max_shared_memory_per_block=8192 -registers_per_block=8192"])
def test_modelled_tiles_fit_the_device(target):
    limits = limits_of(Target(target))
    for _ in range(60):
        rows, columns, terms, batch = (int(2 ** rng.uniform(0, 12)) for _ in range(4))
        size = int(rng.choice([1, 2, 4, 8]))
        tile = block_tile(rows, columns, terms, batch, size, limits)
        assert tile.threads <= limits.threads and tile.step >= 1
        assert tile.step * (tile.rows + tile.columns) * size <= limits.shared, tile

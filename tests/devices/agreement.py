"""Schedules with blocks and threads that every way of running them must agree on: the interpreter of their loops, the processor
with threads as loops, the simulator of PTX, OpenCL.

Each is a function that returns the schedule, its arguments and the inputs of calls; the last arguments are results. Sums are of
small whole numbers, so that they are exact in any order, but where EXACT lacks the name.
"""

import numpy as np

import tedsl
import topi
from tedsl import te
from tests.passes.threads import programs

EACH = {}  # name -> function
TOLERANCE = {}  # name -> relative tolerance, of those whose values depend on the order of a sum


def listed(name=None, rtol=0.0, **options):
    """Decorator: lists a function, with `options`, as a schedule; it returns (schedule, arguments, [inputs of each call])."""
    def add(function):
        called = name or function.__name__
        assert called not in EACH
        EACH[called] = lambda: function(**options)
        TOLERANCE[called] = rtol
        return function

    return add


def numbers(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def calls_of(program, *shapes):
    """A program of two or one input of those shapes, called once."""
    s, args = program
    return s, args, [[numbers(*shape, seed=k) for k, shape in enumerate(shapes)]]


# --- by hand ----------------------------------------------------------------------------------------------------------

for n in (1, 7, 64, 0):
    listed(f"add_{n}", n=n)(lambda n: calls_of(programs.vector_add(n), (n,), (n,)))


@listed()
def add_symbolic():
    s, args = programs.vector_add(te.var("n"), 32)
    return s, args, [[numbers(n), numbers(n, seed=1)] for n in (1, 31, 32, 100)]


for n, m, k in ((16, 16, 16), (17, 5, 9), (1, 1, 1)):
    listed(f"tiled_product_{n}_{m}_{k}", n=n, m=m, k=k)(
        lambda n, m, k: calls_of(programs.tiled_matmul(n, m, k), (n, k), (k, m)))
for virtual, step in ((1, 4), (3, 8)):
    listed(f"tiled_product_of_{virtual}_virtual_threads", virtual=virtual, step=step)(
        lambda **options: calls_of(programs.tiled_matmul(20, 36, 12, threads=2, **options), (20, 12), (12, 36)))


@listed()
def tiled_product_symbolic():
    s, args = programs.tiled_matmul(te.var("n"), te.var("m"), te.var("k"))
    return s, args, [[numbers(n, k), numbers(k, m, seed=1)] for n, m, k in ((16, 16, 16), (17, 5, 9), (3, 33, 20))]


for threads in (4, 8, 32, 48, 64):
    listed(f"row_sums_by_{threads}", threads=threads)(
        lambda threads: calls_of(programs.row_sums(5, 100, threads, rows=2), (5, 100)))
listed("row_sums_in_place")(lambda: calls_of(programs.row_sums(5, 13, factored=False), (5, 13)))
listed("row_maxima")(lambda: calls_of(programs.row_sums(5, 19, reduce=te.max), (5, 19)))
listed("row_products")(lambda: calls_of(programs.row_sums(5, 4, reduce=topi_prod), (5, 4)))


def topi_prod(value, axis):
    return te.comm_reducer(lambda a, b: a * b, lambda t: tedsl.tir.const(1, t), name="prod")(value, axis=axis)


@listed()
def row_sums_symbolic():
    s, args = programs.row_sums(te.var("n"), te.var("m"), 32)
    return s, args, [[numbers(n, m)] for n, m in ((8, 32), (5, 13), (1, 1), (3, 100))]


for n, m in ((3, 16), (4, 13)):
    listed(f"softmax_by_hand_{n}_{m}", rtol=2e-6, n=n, m=m)(lambda n, m: calls_of(programs.softmax(n, m), (n, m)))
for size, channels, filters, batch in ((3, 4, 16, 16), (2, 3, 5, 7)):
    listed(f"convolution_by_hand_{filters}_{batch}", n=size, c=channels, f=filters, b=batch)(
        lambda n, c, f, b: calls_of(programs.convolution(n, c, f, b), (n, n, c, b), (3, 3, c, f)))


def bound(s, stage, axis, threads=32):
    block, thread = s[stage].split(axis, factor=threads)
    s[stage].bind(block, te.thread_axis("blockIdx.x"))
    s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    return thread


@listed(align=0)
@listed("turned_through_shared_memory_with_padding", align=33)
def turned_through_shared_memory(align):
    A = te.placeholder((40, 70), name="A")
    B = te.compute((70, 40), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    tile = s.cache_read(A, "shared", [B])
    y, x, yi, xi = s[B].tile(*s[B].op.axis, 16, 16)
    for loop, name in ((y, "blockIdx.y"), (x, "blockIdx.x"), (yi, "threadIdx.y"), (xi, "threadIdx.x")):
        s[B].bind(loop, te.thread_axis(name))
    s[tile].compute_at(s[B], x)
    a, b = s[tile].op.axis
    if align:
        s[tile].storage_align(a, align, 1)
    s[tile].bind(s[tile].split(a, nparts=16)[0], te.thread_axis("threadIdx.y"))
    s[tile].bind(s[tile].split(b, nparts=16)[0], te.thread_axis("threadIdx.x"))
    return s, [A, B], [[numbers(40, 70)]]


@listed("stencil")
@listed("stencil_double_buffered", double=True)
def stencil(double=False):
    """Windows of a row in shared memory, which each step of a loop fills again."""
    A = te.placeholder((6, 66), name="A")
    B = te.compute((6, 64), lambda i, j: A[i, j] + A[i, j + 1] * 2 + A[i, j + 2], name="B")
    s = te.create_schedule(B.op)
    window = s.cache_read(A, "shared", [B])
    y, x = s[B].op.axis
    xo, xi = s[B].split(x, factor=16)
    s[B].bind(y, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.x"))
    s[window].compute_at(s[B], xo)
    s[window].bind(s[window].split(s[window].op.axis[1], factor=16)[1], te.thread_axis("threadIdx.x"))
    if double:
        s[window].double_buffer()
    return s, [A, B], [[numbers(6, 66)]]


@listed()
def running_sums_of_rows():
    """te.scan: a thread for each column, one row after the other."""
    X = te.placeholder((9, 37), name="X")
    state = te.placeholder((9, 37), name="state")
    first = te.compute((1, 37), lambda _, i: X[0, i], name="first")
    step = te.compute((9, 37), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    out = te.scan(first, step, state, inputs=[X], name="running")
    s = te.create_schedule(out.op)
    for stage in (first, step):
        block, thread = s[stage].split(s[stage].op.axis[1], factor=16)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [X, out], [[numbers(9, 37)]]


@listed()
def vectors_and_unrolled_loops():
    A = te.placeholder((256,), name="A")
    B = te.compute((256,), lambda i: A[i] * 3 + 1, name="B")
    s = te.create_schedule(B.op)
    block, rest = s[B].split(B.op.axis[0], factor=128)
    thread, inside = s[B].split(rest, factor=8)
    copies, lanes = s[B].split(inside, factor=4)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].unroll(copies)
    s[B].vectorize(lanes)
    return s, [A, B], [[numbers(256)]]


@listed()
def a_warp_keeps_a_row():
    """Memory of scope "warp": each thread reads what another one stored."""
    A = te.placeholder((4, 32), name="A")
    B = te.compute((4, 32), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((4, 32), lambda i, j: B[i, (j + 5) % 32], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(s[C].op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(s[C].op.axis[1], te.thread_axis((0, 32), "threadIdx.x"))
    s[B].compute_at(s[C], s[C].op.axis[0])
    s[B].set_scope("warp")
    s[B].bind(s[B].op.axis[1], te.thread_axis((0, 32), "threadIdx.x"))
    return s, [A, C], [[numbers(4, 32)]]


@listed()
def threads_in_three_dimensions():
    A = te.placeholder((5, 6, 7), name="A")
    B = te.compute((5, 6, 7), lambda z, y, x: A[z, y, x] - 1, name="B")
    s = te.create_schedule(B.op)
    for axis, name in zip(B.op.axis, "zyx"):
        block, thread = s[B].split(axis, factor=3)
        s[B].bind(block, te.thread_axis(f"blockIdx.{name}"))
        s[B].bind(thread, te.thread_axis(f"threadIdx.{name}"))
    return s, [A, B], [[numbers(5, 6, 7)]]


@listed()
def kernels_one_after_the_other():
    A = te.placeholder((50,), name="A")
    B = te.compute((50,), lambda i: A[i] + 1, name="B")
    C = te.compute((50,), lambda i: B[49 - i] * 2, name="C")
    s = te.create_schedule(C.op)
    bound(s, B, B.op.axis[0])
    bound(s, C, C.op.axis[0], 16)
    return s, [A, C], [[numbers(50)]]


@listed()
def two_results():
    A = te.placeholder((33,), name="A")
    B, C = te.compute((33,), lambda i: (A[i] + 1, A[i] * A[i]), name="B")
    s = te.create_schedule(B.op)
    bound(s, B, B.op.axis[0], 8)
    return s, [A, B, C], [[numbers(33)]]


@listed()
def elements_by_index():
    A, I = te.placeholder((20,), name="A"), te.placeholder((45,), "int32", name="I")
    B = te.compute((45,), lambda i: A[I[i]], name="B")
    s = te.create_schedule(B.op)
    bound(s, B, B.op.axis[0], 16)
    return s, [A, I, B], [[numbers(20), np.arange(45, dtype="int32") * 7 % 20]]


# --- operators by the schedules of topi.cuda -----------------------------------------------------------------------------

def operator(name, make, *shapes, dtypes=(), rtol=0.0, low=None):
    """Lists the operator that `make` gives of placeholders of those shapes; low: all values are positive, and at least that."""
    @listed(name, rtol)
    def scheduled():
        kinds = [*dtypes, *["float32"] * (len(shapes) - len(dtypes))]
        inputs = [te.placeholder(shape, dtype, name=f"x{k}") for k, (shape, dtype) in enumerate(zip(shapes, kinds))]
        outs = make(*inputs)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        s = topi.cuda.schedule_injective(outs)
        values = [numbers(*shape, dtype=dtype, seed=k) for k, (shape, dtype) in enumerate(zip(shapes, kinds))]
        if low is not None:
            values = [(np.abs(value) + low).astype(value.dtype) for value in values]
        return s, [*inputs, *outs], [values]


nn = topi.nn
operator("whole_sum", lambda x: topi.sum(x), (13, 50))
operator("sum_of_rows", lambda x: topi.sum(x, axis=1), (13, 50))
operator("sum_of_columns", lambda x: topi.sum(x, axis=0), (50, 13))
operator("sum_of_two_axes", lambda x: topi.sum(x, axis=(0, 2)), (6, 5, 11))
operator("short_sum", lambda x: topi.sum(x, axis=1), (40, 5))
operator("sum_then_relu", lambda x: nn.relu(topi.sum(x, axis=1)), (13, 50))
operator("largest_place", lambda x: topi.argmax(x, axis=1), (7, 90))
operator("smallest_place", lambda x: topi.argmin(x, axis=0), (90, 7))
operator("softmax_by_warps", lambda x: nn.softmax(x), (3, 96), rtol=2e-6)
operator("softmax_by_blocks", lambda x: nn.softmax(x), (3, 83), rtol=2e-6)
operator("log_softmax", lambda x: nn.log_softmax(x), (3, 64), rtol=2e-6)
operator("layer_norm", lambda x, g, b: nn.layer_norm(x, g, b, axis=[1]), (5, 70), (70,), (70,), rtol=1e-5)
operator("dense_relu", lambda a, b: nn.relu(nn.dense(a, b)), (17, 33), (21, 33))
operator("dense_of_one_row", lambda a, b: nn.dense(a, b), (1, 70), (21, 70))
operator("batch_products", lambda a, b: nn.batch_matmul(a, b), (2, 9, 12), (2, 17, 12))
operator("convolution_relu", lambda a, b: nn.relu(nn.conv2d_nchw(a, b, 1, 1, 1)), (1, 5, 9, 7), (6, 5, 3, 3))
operator("convolution_with_strides", lambda a, b: nn.conv2d_nchw(a, b, 2, 0, 1), (2, 3, 9, 8), (4, 3, 3, 3))
operator("convolution_channels_last", lambda a, b: nn.conv2d_nhwc(a, b, 1, 1, 1), (1, 6, 7, 5), (3, 3, 5, 6))
operator("depthwise_convolution", lambda a, b: nn.depthwise_conv2d_nchw(a, b, 1, 1, 1), (1, 5, 7, 6), (5, 1, 3, 3))
operator("maxima_of_windows", lambda a: nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"), (1, 4, 9, 9))
operator("broadcast_and_select", lambda a, b: topi.where(a > 0, a + b, a * 2), (7, 9), (9,))
operator("turned_axes", lambda a: topi.transpose(a, (2, 0, 1)), (5, 6, 7))
operator("half_precision", lambda a, b: a * b + a, (7, 33), (7, 33), dtypes=("float16", "float16"))
operator("bfloat16", lambda a: topi.cast(topi.cast(a, "bfloat16") * topi.cast(a, "bfloat16"), "float32"), (7, 33))
operator("bytes", lambda a, b: a + b, (7, 33), (7, 33), dtypes=("int8", "int8"))
operator("long_integers", lambda a, b: topi.floor_divide(a, b) + topi.floor_mod(a, b), (7, 33), (7, 33),
         dtypes=("int64", "int64"))
operator("truth_values", lambda a, b: topi.logical_and(a > 0, b > 0), (7, 33), (7, 33))
operator("doubles", lambda a: topi.sqrt(topi.abs(a)) + topi.sum(a), (6, 6), dtypes=("float64",))
operator("functions", lambda a: topi.exp(a) + topi.log(a) + topi.tanh(a) + topi.sigmoid(a) + topi.erf(a), (5, 33), low=0.5,
         rtol=1e-6)
operator("gather", lambda a, i: topi.take(a, i, axis=0), (9, 5), (12,), dtypes=("float32", "int32"), low=0)

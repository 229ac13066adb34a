"""The three CUDA programs of TVM's introduction to topi: what lowering prints for their schedules.

Beside TVM's own listings (0.8): the order of `buffers`; conditions that are proved to hold are gone, and equal ones stand once;
`.repl` is the result of the sum; virtual threads that are nested are unrolled in the other order; maxima start from -inf, where
TVM prints -3.40282e+38; the reciprocal of the sum of softmax is multiplied.
"""

import tedsl
import topi
from tedsl import te
from tedsl.target import Target
from topi.cuda import ConvTiles

# With these TVM tunes the convolution of its introduction.
TUNED = ConvTiles(f=(5, 2, 1, 1), y=(224, 1, 1, 1), x=(2, 7, 16, 1), rc=(3, 1), ry=(5, 1), rx=(5, 1), unroll=512)


def test_a_sum_by_all_threads_of_a_block(golden):
    a, b = te.placeholder((100, 10, 10), name="a"), te.placeholder((10, 10), name="b")
    with Target("cuda"):
        s = topi.cuda.schedule_reduce(topi.sum(topi.elemwise_sum([a + b, a * b]) / 2.0))
    golden(str(tedsl.lower(s, [a, b], simple_mode=True)))


def test_softmax_by_a_warp_for_each_row(golden):
    x = te.placeholder((512, 512), name="tarray")
    with Target("cuda"):
        s = topi.cuda.schedule_softmax(topi.nn.softmax(x))
    golden(str(tedsl.lower(s, [x], simple_mode=True)))


def test_a_convolution_with_relu(golden):
    data, kernel = te.placeholder((1, 3, 224, 224), name="data"), te.placeholder((10, 3, 5, 5), name="kernel")
    with Target("cuda"):
        s = topi.cuda.schedule_conv2d_nchw([topi.nn.relu(topi.cuda.conv2d_nchw(data, kernel, 1, 2, 1))], TUNED)
    golden(str(tedsl.lower(s, [data, kernel], simple_mode=True)))

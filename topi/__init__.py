"""topi: operators on top of tedsl. An operator is a formula; it takes tensors and returns tensors.

Names are those of TVM's topi. `nn/` holds the operators of neural networks, `image/` those of images, `vision/` those of
detectors, `random/` random numbers, `sparse/` sparse matrices; `transform/` moves elements, `indexing/` reads and writes at
positions, `ordering/` sorts and searches; the others are in this folder. `threads/` holds statements of operators for kernels.
Schedules: `schedules/`, by TVM's names `generic/`, `x86/`, `cpp/`; derivatives are in `adjoints/`, references in `testing/`.
"""

import sys

from tedsl.errors import entries
from topi import arm_cpu, cuda, elementwise, generic, image, nn, random, sparse, tag, testing, utils, vision, x86
from topi.broadcast import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    broadcast_to,
    divide,
    equal,
    floor_divide,
    floor_mod,
    fmod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
from topi.creation import arange, meshgrid, ndarray_size, shape
from topi.einsum import einsum
from topi.elementwise import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cast,
    ceil,
    ceil_log2,
    clip,
    cos,
    cosh,
    elemwise_sum,
    erf,
    exp,
    fixed_point_multiply,
    floor,
    full,
    full_like,
    identity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    nearbyint,
    negative,
    reinterpret,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from topi.fast_math import fast_erf, fast_exp, fast_tanh
from topi.indexing import (
    adv_index,
    argwhere,
    gather,
    gather_nd,
    index_put,
    invert_permutation,
    matrix_set_diag,
    one_hot,
    scatter,
    scatter_add,
    scatter_elements,
    scatter_nd,
    sequence_mask,
    slice_scatter,
    sparse_to_dense,
    take,
    trilu,
    unravel_index,
    where,
)
from topi.linalg import matmul, tensordot
from topi.ordering import argsort, searchsorted, sort, topk, unique
from topi.ordering import binary_search as binary_search  # it writes statements: no operator, so not in __all__
from topi.reduction import all, any, argmax, argmin, max, min, prod, sum
from topi.reduction import collapse_sum as collapse_sum  # sums of sums, so not in __all__
from topi.scan import cumprod, cumsum, scanop
from topi.sparse.rearranged import sparse_fill_empty_rows, sparse_reshape
from topi.transform import (
    concatenate,
    expand_dims,
    expand_like,
    flip,
    layout_transform,
    repeat,
    reshape,
    reverse_sequence,
    split,
    squeeze,
    stack,
    strided_set,
    strided_slice,
    tile,
    transpose,
)

sliding_window = sys.modules["topi.transform"].sliding_window
broadcast_add, broadcast_subtract, broadcast_multiply, broadcast_divide = add, subtract, multiply, divide
broadcast_floor_divide, broadcast_mod, broadcast_floor_mod, broadcast_power = floor_divide, mod, floor_mod, power
broadcast_maximum, broadcast_minimum = maximum, minimum
broadcast_sub, broadcast_mul, broadcast_div, broadcast_pow = subtract, multiply, divide, power  # before TVM 0.4
broadcast_left_shift, broadcast_right_shift = left_shift, right_shift
broadcast_greater, broadcast_less, broadcast_equal, broadcast_not_equal = greater, less, equal, not_equal
broadcast_greater_equal, broadcast_less_equal = greater_equal, less_equal
broadcast_logical_and, broadcast_logical_or, broadcast_logical_xor = logical_and, logical_or, logical_xor
broadcast_bitwise_and, broadcast_bitwise_or, broadcast_bitwise_xor = bitwise_and, bitwise_or, bitwise_xor

__all__ = [
    "abs", "acos", "acosh", "add", "all", "any", "argmax", "argmin", "asin", "asinh", "atan", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast_add", "broadcast_bitwise_and", "broadcast_bitwise_or",
    "broadcast_bitwise_xor", "broadcast_divide", "broadcast_equal", "broadcast_floor_divide", "broadcast_floor_mod",
    "broadcast_greater", "broadcast_greater_equal", "broadcast_left_shift", "broadcast_less", "broadcast_less_equal",
    "broadcast_logical_and", "broadcast_logical_or", "broadcast_logical_xor", "broadcast_maximum", "broadcast_minimum",
    "broadcast_mod", "broadcast_multiply", "broadcast_not_equal", "broadcast_power", "broadcast_right_shift",
    "broadcast_subtract", "broadcast_to", "cast", "ceil", "clip", "cos", "cosh", "cuda", "divide", "elemwise_sum", "equal",
    "erf", "exp", "floor", "floor_divide", "floor_mod", "full", "full_like", "generic", "greater", "greater_equal", "identity",
    "image", "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log10", "log2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "matmul", "max", "maximum", "min", "minimum", "mod", "multiply", "negative",
    "nn", "not_equal", "power", "prod", "right_shift", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "subtract",
    "sum", "tag", "tan", "tanh", "tensordot", "testing", "trunc", "utils", "vision", "x86",
]
__all__ += [
    "concatenate", "expand_dims", "expand_like", "flip", "repeat", "reshape", "reverse_sequence", "split", "squeeze", "stack",
    "strided_set", "strided_slice", "tile", "transpose",
]
__all__ += [
    "adv_index", "argwhere", "gather", "gather_nd", "invert_permutation", "matrix_set_diag", "one_hot", "scatter",
    "scatter_add", "scatter_nd", "sequence_mask", "sparse_to_dense", "take", "unravel_index", "where",
]
__all__ += ["arange", "fast_erf", "fast_exp", "fast_tanh", "meshgrid", "ndarray_size", "reinterpret", "shape"]
__all__ += ["arm_cpu", "scanop"]
__all__ += ["ceil_log2", "fixed_point_multiply", "random", "sparse", "sparse_fill_empty_rows", "sparse_reshape"]
__all__ += ["argsort", "cumprod", "cumsum", "searchsorted", "sort", "topk", "unique"]
__all__ += ["index_put", "scatter_elements", "slice_scatter", "trilu"]
__all__ += ["einsum", "fmod", "layout_transform", "nearbyint"]

util = utils  # its name before TVM 0.8

_OTHER_NAMES = {  # modules by the names that TVM has for them
    "util": "utils", "nn.util": "nn.utils", "x86.util": "x86.utils",
    "math": "elementwise", "sort": "ordering", "argwhere": "indexing", "scatter": "indexing", "searchsorted": "ordering",
    "unique": "ordering", "nn.conv2d": "nn.convolution", "nn.conv1d": "nn.convolution", "nn.conv3d": "nn.convolution",
    "nn.conv2d_transpose": "nn.convolution", "nn.depthwise_conv2d": "nn.convolution", "nn.pooling": "nn.pool",
    "nn.bitserial_util": "nn.bits",
    "nn.winograd_util": "nn.convolution.steps", "nn.batch_matmul": "nn.dense", "nn.local_response_norm": "nn.normalization",
    "nn.elemwise": "nn.elementwise", "nn.flatten": "nn.mapping", "nn.l2_normalize": "nn.normalization",
    "nn.batch_norm": "nn.normalization", "nn.bnn": "nn", "nn.bitserial_conv2d": "nn", "nn.sparse": "nn",
    "nn.deformable_conv2d": "nn.convolution", "nn.space_to_depth": "nn.space", "nn.depth_to_space": "nn.space",
    "nn.space_to_batch_nd": "nn.space", "nn.batch_to_space_nd": "nn.space", "testing.common": "testing",
    "nn.conv1d_transpose": "nn.convolution", "nn.conv3d_transpose": "nn.convolution", "nn.bitserial_dense": "nn",
    "random.kernel": "random",
    "scatter_add": "indexing", "sparse_fill_empty_rows": "sparse", "sparse_reshape": "sparse", "vision.nms_util": "vision.nms",
    "vision.ssd.multibox": "vision.ssd",
    **{f"{family}.{part}": family for family in ("x86", "generic", "arm_cpu", "cuda")
       for part in ("conv2d", "nn", "dense", "reduction", "pooling", "injective", "conv2d_int8", "depthwise_conv2d",
                    "bitserial_conv2d", "bitserial_dense", "conv2d_transpose", "group_conv2d")},
    **{f"x86.{part}": "x86" for part in (
        "batch_matmul", "binarize_pack", "binary_dense", "concat", "conv1d", "conv2d_avx_1x1", "conv2d_avx_common", "conv3d",
        "conv3d_transpose", "roi_align", "scatter", "sparse")},
    **{f"cuda.{part}": "cuda" for part in (
        "argwhere", "batch_matmul", "conv1d", "conv1d_transpose_ncw", "conv2d_direct", "conv2d_hwcn", "conv2d_nhwc",
        "conv2d_nhwc_tensorcore", "conv2d_nhwc_winograd", "conv2d_transpose_nchw", "conv2d_winograd", "conv3d", "conv3d_direct",
        "conv3d_transpose_ncdhw", "correlation", "deformable_conv2d", "dense_tensorcore", "group_conv2d_nchw", "nms", "scan",
        "scatter", "searchsorted", "softmax", "sort", "sparse", "sparse_reshape", "tensor_intrin", "transform", "unique",
        "vision")},
    **{f"generic.{part}": "generic" for part in ("extern", "image", "search", "sort", "vision")},
    **{f"sparse.{part}": "sparse" for part in ("csrmm", "csrmv", "dense")},
    **{f"vision.rcnn.{part}": "vision.rcnn" for part in ("roi_align", "roi_pool")},
    **{f"cpp.{part}": part for part in ("nn", "utils", "image", "vision")}, "cpp.util": "utils",
}
for _there, _here in _OTHER_NAMES.items():
    _package, _, _last = f"topi.{_there}".rpartition(".")
    sys.modules[f"topi.{_there}"] = sys.modules[f"topi.{_here}"]
    if _package in sys.modules:  # topi.cuda.reduction.schedule_reduce; an operator of that name, as topi.nn.dense, comes first
        vars(sys.modules[_package]).setdefault(_last, sys.modules[f"topi.{_here}"])
sys.modules["topi.tensor"] = sys.modules[__name__]  # of elemwise_sum, full and full_like
math = elementwise
const_vector, make_idx, within_index = utils.const_vector, utils.make_idx, utils.within_index
get_const_int, get_const_tuple = utils.get_const_int, utils.get_const_tuple

from topi import cpp as cpp  # noqa: E402 - it stands on all of the above

entries(globals(), absent={"embed_grad": "te.gradient(loss, [weight]) differentiates topi.take(weight, indices, axis=0)"})

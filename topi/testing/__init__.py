"""Support for tests of operators: numpy references, and schedules by target."""

from tedsl.errors import entries
from topi.testing.convolution import (
    conv1d_ncw_python,
    conv1d_transpose_ncw_python,
    conv2d_hwcn_python,
    conv2d_nchw_python,
    conv2d_nhwc_python,
    conv2d_transpose_nchw_python,
    conv2d_transpose_nhwc_python,
    conv3d_ncdhw_python,
    conv3d_ndhwc_python,
    conv3d_transpose_ncdhw_python,
    conv_python,
    conv_transpose_python,
    depthwise_conv2d_python_nchw,
    depthwise_conv2d_python_nchwc,
    depthwise_conv2d_python_nhwc,
    dilate_python,
)
from topi.testing.image import (
    affine_grid_python,
    bilinear_resize_python,
    crop_and_resize_python,
    dilation2d_nchw_python,
    dilation2d_nhwc_python,
    dilation2d_python,
    resize1d_python,
    resize2d_python,
    resize3d_python,
    resize_python,
    trilinear_resize3d_python,
    upsampling3d_python,
    upsampling_python,
)
from topi.testing.indexing import (
    gather_nd_python,
    gather_python,
    one_hot,
    scatter_nd_python,
    scatter_python,
    searchsorted_ref,
    sparse_to_dense,
    take_python,
)
from topi.testing.normalization import (
    batch_norm,
    batch_to_space_nd_python,
    depth_to_space_python,
    l2_normalize_python,
    layer_norm_python,
    log_softmax_python,
    lrn_python,
    nll_loss,
    softmax_python,
    space_to_batch_nd_python,
    space_to_depth_python,
)
from topi.testing.pooling import (
    adaptive_pool,
    adaptive_pool_channel_first,
    pool1d_ncw_python,
    pool3d_ncdhw_python,
    pool_grad_nchw,
    poolnd_python,
)
from topi.testing.products import batch_matmul, dense, matmul, slice_axis_python
from topi.testing.schedules import (
    compare_numpy_tvm,
    dispatch,
    get_broadcast_schedule,
    get_conv2d_nchw_implement,
    get_elemwise_schedule,
    get_injective_schedule,
    get_reduce_schedule,
)
from topi.testing.transform import (
    matrix_set_diag,
    reverse_sequence_python,
    sequence_mask_python,
    strided_set_python,
    strided_slice_python,
)
from topi.testing.vision import reorg_python, roi_align_nchw_python, roi_align_nhwc_python, roi_pool_nchw_python
from topi.testing.windows import (
    correlation_nchw_python,
    deformable_conv2d_nchw_python,
    deformable_conv2d_nhwc_python,
    grid_sample_nchw_python,
)

sequence_mask = sequence_mask_python  # its name in TVM

__all__ = ["dispatch", "get_broadcast_schedule", "get_elemwise_schedule", "get_injective_schedule", "get_reduce_schedule"]
__all__ += ["matrix_set_diag", "reverse_sequence_python", "sequence_mask_python", "strided_set_python", "strided_slice_python"]
__all__ += ["gather_nd_python", "gather_python", "one_hot", "scatter_nd_python", "scatter_python", "searchsorted_ref",
            "sequence_mask", "sparse_to_dense", "take_python"]
__all__ += [
    "conv1d_ncw_python", "conv1d_transpose_ncw_python", "conv2d_hwcn_python", "conv2d_nchw_python", "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python", "conv3d_ncdhw_python", "conv3d_ndhwc_python", "conv3d_transpose_ncdhw_python",
    "conv_python", "conv_transpose_python", "depthwise_conv2d_python_nchw", "depthwise_conv2d_python_nhwc", "dilate_python",
]
__all__ += ["adaptive_pool", "pool_grad_nchw", "poolnd_python"]
__all__ += ["layer_norm_python", "log_softmax_python", "softmax_python"]
__all__ += ["batch_norm", "batch_to_space_nd_python", "depth_to_space_python", "l2_normalize_python", "lrn_python", "nll_loss",
            "space_to_batch_nd_python", "space_to_depth_python"]
__all__ += ["affine_grid_python", "crop_and_resize_python", "dilation2d_python", "resize2d_python", "resize_python"]
__all__ += ["correlation_nchw_python", "deformable_conv2d_nchw_python", "grid_sample_nchw_python", "upsampling3d_python",
            "upsampling_python"]
__all__ += ["deformable_conv2d_nhwc_python", "get_conv2d_nchw_implement"]
__all__ += ["batch_matmul", "conv2d_transpose_nhwc_python", "dense", "matmul", "resize1d_python", "resize3d_python",
            "slice_axis_python"]
__all__ += ["adaptive_pool_channel_first", "compare_numpy_tvm", "depthwise_conv2d_python_nchwc", "dilation2d_nchw_python",
            "dilation2d_nhwc_python"]
__all__ += ["bilinear_resize_python", "trilinear_resize3d_python"]
__all__ += ["pool1d_ncw_python", "pool3d_ncdhw_python"]
__all__ += ["reorg_python", "roi_align_nchw_python", "roi_align_nhwc_python", "roi_pool_nchw_python"]


entries(globals())

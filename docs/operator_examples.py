"""A small call of every operator of topi, for docs/operators.py.

Each example takes `new`, a function from a shape to a tensor of the dtype that is tried. An example with a second parameter
takes a layout, and its tensors have the rank of that layout. Operators that are not listed here are called with matrices only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import topi
from tedsl import te
from tedsl.contrib import sparse
from topi import image, nn, vision

New = Callable[..., te.Tensor]
LAYOUTS = {
    "NCW": ("NCW", "NWC", "NCWc", "NCW2c"), "NCHW": ("NCHW", "NHWC", "HWCN", "NCHWc", "NCHW2c"),
    "NCDHW": ("NCDHW", "NDHWC", "NCDHWc", "NCDHW2c"), "OIHW": ("OIHW", "HWIO"),
}


def integers(*shape: int) -> te.Tensor:
    return te.placeholder(shape, "int32", name="indices")


def plain(operator: Callable[..., Any], tensors: int) -> Callable[[New], Any]:
    """The call of an operator with `tensors` matrices."""
    return lambda new: operator(*[new(2, 3) for _ in range(tensors)])


def cube(new: New, layout: str, last: int = 4) -> te.Tensor:
    """A tensor with extent 4 in each dimension of the layout. last: the extent of a block of channels."""
    letters = [letter for letter in layout if letter.isalpha()]
    return new(*[4] * (len(letters) - 1), last if layout[-1].islower() else 4)


def blocked(new: New, layout: str) -> te.Tensor:
    """Like `cube`, for layouts that contain the size of a block."""
    return cube(new, layout, 2)


def conv2d(new: New, layout: str = "NCHW") -> te.Tensor:
    kernels = {"NCHWc": (4, 4, 3, 3, 4, 4), "NHWC": (3, 3, 4, 4), "HWCN": (3, 3, 4, 4)}
    return nn.conv2d(cube(new, layout), new(*kernels.get(layout, (4, 4, 3, 3))), 1, 1, 1, layout)


def conv1d(new: New, layout: str = "NCW") -> te.Tensor:
    return nn.conv1d(cube(new, layout), new(4, 4, 3) if layout == "NCW" else new(3, 4, 4), 1, 1, 1, layout)


def pool(operator: Callable[..., te.Tensor], rank: int) -> Callable[..., te.Tensor]:
    default = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    return lambda new, layout=default: operator(blocked(new, layout), [2] * rank, [2] * rank, [1] * rank, [0] * 2 * rank, "avg",
                                                layout=layout)


def adaptive(operator: Callable[..., te.Tensor], default: str, *size: Any) -> Callable[..., te.Tensor]:
    return lambda new, layout=default: operator(blocked(new, layout), *size, "avg", layout)


def resized(operator: Callable[..., te.Tensor], default: str, rank: int) -> Callable[..., te.Tensor]:
    return lambda new, layout=default: operator(blocked(new, layout), (0.0,) * 2 * rank, (6,) * rank, layout)


def square(operator: Callable[..., Any], kernel: Sequence[int], *rest: Any) -> Callable[[New], Any]:
    """A convolution of data with an extent of 4 for each dimension; rest: what follows data and kernel."""
    rank = len(kernel)
    return lambda new: operator(new(*[4] * rank), new(*kernel), *(rest or (1, 1, 1)))


EXAMPLES: dict[str, Callable[..., Any]] = {
    # topi
    "adv_index": lambda new: topi.adv_index(new(2, 3), [integers(4)]),
    "arange": lambda new: topi.arange(0, 4, 1, new(1).dtype),
    "argwhere": lambda new: topi.argwhere(integers(2, 2), new(2, 3)),
    "broadcast_to": lambda new: topi.broadcast_to(new(3), (2, 3)),
    "cast": lambda new: topi.cast(new(2, 3), "float32"),
    "clip": lambda new: topi.clip(new(2, 3), 0, 1),
    "concatenate": lambda new: topi.concatenate([new(2, 3), new(2, 3)]),
    "einsum": lambda new: topi.einsum("ij,jk->ik", new(2, 3), new(3, 2)),
    "elemwise_sum": lambda new: topi.elemwise_sum([new(2, 3), new(2, 3)]),
    "expand_dims": lambda new: topi.expand_dims(new(2, 3), 0),
    "expand_like": lambda new: topi.expand_like(new(2), new(2, 3), [1]),
    "fixed_point_multiply": lambda new: topi.fixed_point_multiply(new(2, 3), 1 << 30, 1),
    "full": lambda new: topi.full((2, 3), new(1).dtype, 1),
    "full_like": lambda new: topi.full_like(new(2, 3), 1),
    "gather": lambda new: topi.gather(new(2, 3), 1, integers(2, 2)),
    "gather_nd": lambda new: topi.gather_nd(new(2, 3), integers(1, 4)),
    "invert_permutation": lambda new: topi.invert_permutation(new(4)),
    "layout_transform": lambda new: topi.layout_transform(new(1, 4, 2, 2), "NCHW", "NHWC"),
    "matmul": lambda new: topi.matmul(new(2, 3), new(3, 2)),
    "matrix_set_diag": lambda new: topi.matrix_set_diag(new(2, 3, 3), new(2, 3)),
    "meshgrid": lambda new: topi.meshgrid([new(2), new(3)], "ij"),
    "one_hot": lambda new: topi.one_hot(new(4), 1, 0, 3, -1, "float32"),
    "reinterpret": lambda new: topi.reinterpret(new(2, 3), f"int{new(1).dtype.bits}"),
    "repeat": lambda new: topi.repeat(new(2, 3), 2, 0),
    "reshape": lambda new: topi.reshape(new(2, 3), (3, 2)),
    "reverse_sequence": lambda new: topi.reverse_sequence(new(2, 3), integers(3), 0, 1),
    "scatter": lambda new: topi.scatter(new(2, 3), integers(2, 3), new(2, 3)),
    "scatter_add": lambda new: topi.scatter_add(new(2, 3), integers(2, 3), new(2, 3)),
    "scatter_elements": lambda new: topi.scatter_elements(new(2, 3), integers(2, 3), new(2, 3), 0, "mul"),
    "scatter_nd": lambda new: topi.scatter_nd(new(2, 3), integers(1, 2), new(2, 3), "add"),
    "scanop": lambda new: topi.scanop(new(2, 3), te.max, 0, "cummax", 1),
    "searchsorted": lambda new: topi.searchsorted(new(5), new(3)),
    "sequence_mask": lambda new: topi.sequence_mask(new(2, 3), integers(3)),
    "sparse_to_dense": lambda new: topi.sparse_to_dense(integers(3), (5,), new(3), topi.full((), new(1).dtype, 0)),
    "split": lambda new: topi.split(new(4, 3), 2),
    "stack": lambda new: topi.stack([new(2, 3), new(2, 3)]),
    "strided_set": lambda new: topi.strided_set(new(4, 3), new(2, 3), [0], [2]),
    "strided_slice": lambda new: topi.strided_slice(new(4, 3), [0], [2]),
    "take": lambda new: topi.take(new(2, 3), integers(2), 1),
    "tensordot": lambda new: topi.tensordot(new(2, 3), new(3, 2), 1),
    "tile": lambda new: topi.tile(new(2, 3), (2, 1)),
    "topk": lambda new: topi.topk(new(2, 3), 2),
    "unique": lambda new: topi.unique(new(4)),
    "unravel_index": lambda new: topi.unravel_index(new(4), topi.full((2,), "int32", 3)),
    "where": lambda new: topi.where(te.placeholder((2, 3), "bool", name="condition"), new(2, 3), new(2, 3)),
    # topi.nn
    "nn.binarize_pack": lambda new: nn.binarize_pack(new(2, 32)),
    "nn.bitpack": lambda new: nn.bitpack(new(2, 32), 1, 1, 1, "uint32"),
    "nn.bitserial_conv2d_nchw": lambda new: nn.bitserial_conv2d_nchw(new(1, 32, 4, 4), new(4, 32, 3, 3), 1, 1, 2, 1),
    "nn.bitserial_conv2d_nhwc": lambda new: nn.bitserial_conv2d_nhwc(new(1, 4, 4, 32), new(3, 3, 32, 4), 1, 1, 2, 1),
    "nn.bitserial_dense": lambda new: nn.bitserial_dense(new(2, 32), new(3, 32), 2, 1),
    "nn.adaptive_pool": adaptive(nn.adaptive_pool, "NCHW", (2, 2)),
    "nn.adaptive_pool1d": adaptive(nn.adaptive_pool1d, "NCW", (2,)),
    "nn.adaptive_pool3d": adaptive(nn.adaptive_pool3d, "NCDHW", (2, 2, 2)),
    "nn.batch_matmul": lambda new: nn.batch_matmul(new(2, 3, 4), new(2, 5, 4)),
    "nn.batch_norm": lambda new: nn.batch_norm(new(1, 4, 3, 3), *[new(4) for _ in range(4)])[0],
    "nn.batch_to_space_nd": lambda new: nn.batch_to_space_nd(new(4, 2, 2, 3), [2, 2], [0, 0], [0, 0]),
    "nn.bias_add": lambda new: nn.bias_add(new(2, 3), new(3)),
    "nn.conv": square(nn.conv, (4, 2, 3, 3), 1, 1, 1, 2, "NCHW"),
    "nn.conv1d": conv1d,
    "nn.conv1d_ncw": square(nn.conv1d_ncw, (4, 4, 3)),
    "nn.conv1d_nwc": square(nn.conv1d_nwc, (3, 4, 4)),
    "nn.conv1d_transpose_ncw": square(nn.conv1d_transpose_ncw, (4, 4, 3), 2, 1, None, 0),
    "nn.conv2d": conv2d,
    "nn.conv2d_NCHWc": lambda new: nn.conv2d_NCHWc(new(1, 2, 4, 4, 4), new(2, 2, 3, 3, 4, 4), 1, 1, 1),
    "nn.conv2d_NCHWc_int8": lambda new: nn.conv2d_NCHWc_int8(
        new(1, 2, 4, 4, 4), te.placeholder((2, 2, 3, 3, 1, 4, 4), "int8", name="kernel"), 1, 1, 1),
    "nn.conv2d_gemm_weight_transform": lambda new: nn.conv2d_gemm_weight_transform(new(3, 3, 2, 5), 4, 8),
    "nn.conv2d_hwcn": lambda new: nn.conv2d_hwcn(new(4, 4, 4, 2), new(3, 3, 4, 4), 1, 1, 1),
    "nn.conv2d_nchw": square(nn.conv2d_nchw, (4, 4, 3, 3)),
    "nn.conv2d_nhwc": square(nn.conv2d_nhwc, (3, 3, 4, 4)),
    "nn.conv2d_pack_weights": lambda new, layout="OIHW": nn.conv2d_pack_weights(new(4, 4, 4, 4), 2, None, layout),
    "nn.conv2d_transpose_nchw": square(nn.conv2d_transpose_nchw, (4, 4, 3, 3), 2, 1, None, (0, 0)),
    "nn.conv2d_unpack_weights": lambda new: nn.conv2d_unpack_weights(new(2, 4, 3, 3, 1, 4), 8),
    "nn.conv2d_winograd_nchw": square(nn.conv2d_winograd_nchw, (4, 4, 3, 3)),
    "nn.conv2d_winograd_nhwc": square(nn.conv2d_winograd_nhwc, (3, 3, 4, 4)),
    "nn.conv2d_winograd_weight_transform":
        lambda new, layout="OIHW": nn.conv2d_winograd_weight_transform(new(3, 3, 3, 3), 4, layout),
    "nn.conv3d_ncdhw": square(nn.conv3d_ncdhw, (4, 4, 3, 3, 3)),
    "nn.conv3d_ndhwc": square(nn.conv3d_ndhwc, (3, 3, 3, 4, 4)),
    "nn.conv3d_transpose_ncdhw": lambda new: nn.conv3d_transpose_ncdhw(new(1, 2, 3, 3, 3), new(2, 1, 3, 3, 3), 2, 1, None,
                                                                       (0, 0, 0)),
    "nn.conv3d_winograd_weight_transform": lambda new: nn.conv3d_winograd_weight_transform(new(2, 2, 3, 3, 3), 2),
    "nn.correlation_nchw": lambda new: nn.correlation_nchw(new(1, 2, 6, 6), new(1, 2, 6, 6), 1, 1, 1, 1, 1, True),
    "nn.deformable_conv2d_nchw":
        lambda new: nn.deformable_conv2d_nchw(new(1, 2, 4, 4), new(1, 18, 4, 4), new(2, 2, 3, 3), 1, 1, 1, 1, 1),
    "nn.deformable_conv2d_nhwc":
        lambda new: nn.deformable_conv2d_nhwc(new(1, 4, 4, 2), new(1, 4, 4, 18), new(3, 3, 2, 2), 1, 1, 1, 1, 1),
    "nn.dense": lambda new: nn.dense(new(2, 3), new(4, 3)),
    "nn.dense_pack_weights": lambda new: nn.dense_pack_weights(new(4, 3), 2),
    "nn.dense_unpack_weights": lambda new: nn.dense_unpack_weights(new(2, 3, 4), 8),
    "nn.depth_to_space": lambda new, layout="NCHW": nn.depth_to_space(cube(new, layout), 2, layout),
    "nn.depthwise_conv2d_backward_input_nhwc": lambda new: nn.depthwise_conv2d_backward_input_nhwc(
        new(3, 3, 4, 1), new(1, 4, 4, 4), (1, 4, 4, 4), (1, 4, 4, 4), 1, 1),
    "nn.depthwise_conv2d_backward_weight_nhwc": lambda new: nn.depthwise_conv2d_backward_weight_nhwc(
        new(1, 4, 4, 4), new(1, 4, 4, 4), (1, 4, 4, 4), (3, 3, 4, 1), 1, 1),
    "nn.depthwise_conv2d_NCHWc": lambda new: nn.depthwise_conv2d_NCHWc(new(1, 2, 4, 4, 4), new(2, 1, 3, 3, 1, 4), 1, 1, 1),
    "nn.depthwise_conv2d_nchw": square(nn.depthwise_conv2d_nchw, (4, 1, 3, 3)),
    "nn.depthwise_conv2d_nhwc": square(nn.depthwise_conv2d_nhwc, (3, 3, 4, 1)),
    "nn.dilate": lambda new: nn.dilate(new(2, 3), (2, 2)),
    "nn.fifo_buffer": lambda new: nn.fifo_buffer(new(1, 3), new(4, 3), 0),
    "nn.global_pool": adaptive(nn.global_pool, "NCHW"),
    "nn.group_conv2d_nchw": square(nn.group_conv2d_nchw, (4, 2, 3, 3), 1, 1, 1, 2),
    "nn.group_conv2d_nhwc": square(nn.group_conv2d_nhwc, (3, 3, 2, 4), 1, 1, 1, 2),
    "nn.group_conv2d_transpose_nchw": square(nn.group_conv2d_transpose_nchw, (4, 2, 3, 3), 2, 1, None, (0, 0), 2),
    "nn.l2_normalize": lambda new: nn.l2_normalize(new(2, 3), 1e-6, 1),
    "nn.group_norm": lambda new: nn.group_norm(new(2, 4, 3), new(4), new(4), 2, 1, [2]),
    "nn.instance_norm": lambda new: nn.instance_norm(new(2, 4, 3), new(4), new(4), 1, [2]),
    "nn.rms_norm": lambda new: nn.rms_norm(new(2, 3), new(3), 1),
    "nn.lstm": lambda new: nn.lstm(new(2, 2, 3), new(8, 3), new(8, 2)),
    "nn.pixel_shuffle": lambda new: nn.pixel_shuffle(new(4, 2, 3), 2),
    "index_put": lambda new: topi.index_put(new(4), [integers(3)], new(3)),
    "slice_scatter": lambda new: topi.slice_scatter(new(4), new(2), 0, 4, 2, 0),
    "trilu": lambda new: topi.trilu(new(3, 3), 0, True),
    "nn.layer_norm": lambda new: nn.layer_norm(new(2, 3), new(3), new(3), 1),
    "nn.leaky_relu": lambda new: nn.leaky_relu(new(2, 3), 0.5),
    "nn.lrn": lambda new: nn.lrn(new(1, 4, 2, 2), 3),
    "nn.matmul": lambda new: nn.matmul(new(2, 3), new(3, 2)),
    "nn.mirror_pad": lambda new: nn.mirror_pad(new(2, 3), (1, 1)),
    "nn.nll_loss": lambda new: nn.nll_loss(new(2, 3), integers(2), new(3), "mean", -1),
    "nn.pad": lambda new: nn.pad(new(2, 3), (1, 1), None, 0),
    "nn.pool1d": pool(nn.pool1d, 1),
    "nn.pool2d": pool(nn.pool2d, 2),
    "nn.pool3d": pool(nn.pool3d, 3),
    "nn.pool_grad": lambda new, layout="NCHW": nn.pool_grad(
        nn.pool2d(blocked(new, layout), (2, 2), (2, 2), (1, 1), (0,) * 4, "avg", layout=layout), blocked(new, layout), (2, 2),
        (2, 2), (0,) * 4, "avg", layout=layout),
    "nn.prelu": lambda new: nn.prelu(new(2, 3), new(3)),
    "nn.scale_shift_nchw": lambda new: nn.scale_shift_nchw(new(1, 4, 2, 2), new(4), new(4)),
    "nn.scale_shift_nchwc": lambda new: nn.scale_shift_nchwc(new(1, 2, 2, 2, 4), new(2, 4), new(2, 4)),
    "nn.scale_shift_nhwc": lambda new: nn.scale_shift_nhwc(new(1, 2, 2, 4), new(4), new(4)),
    "nn.simulated_dequantize": lambda new: nn.simulated_dequantize(new(2, 3), "int8", new(1), integers(1)),
    "nn.simulated_quantize": lambda new: nn.simulated_quantize(new(2, 3), "int8", new(1), integers(1)),
    "nn.space_to_batch_nd": lambda new: nn.space_to_batch_nd(new(1, 4, 4, 3), [2, 2], [0, 0], [0, 0], 0),
    "nn.space_to_depth": lambda new, layout="NCHW": nn.space_to_depth(cube(new, layout), 2, layout),
    "nn.upsampling": lambda new, layout="NCHW": nn.upsampling(blocked(new, layout), 2, 2, layout),
    "nn.upsampling3d": lambda new, layout="NCDHW": nn.upsampling3d(blocked(new, layout), 2, 2, 2, layout),
    # topi.image
    "image.affine_grid": lambda new: image.affine_grid(new(1, 2, 3), (4, 4)),
    "image.crop_and_resize": lambda new, layout="NCHW": image.crop_and_resize(
        blocked(new, layout), te.placeholder((2, 4), "float32", name="boxes"), integers(2), (3, 3), layout),
    "image.dilation2d_nchw": lambda new: image.dilation2d_nchw(new(1, 2, 4, 4), new(2, 3, 3), 1, 1, 1),
    "image.dilation2d_nhwc": lambda new: image.dilation2d_nhwc(new(1, 4, 4, 2), new(3, 3, 2), 1, 1, 1),
    "image.grid_sample": lambda new: image.grid_sample(new(1, 2, 4, 4), te.placeholder((1, 2, 3, 3), "float32", name="grid")),
    "image.resize1d": resized(image.resize1d, "NCW", 1),
    "image.resize2d": resized(image.resize2d, "NCHW", 2),
    "image.resize3d": resized(image.resize3d, "NCDHW", 3),
    # topi.vision
    "vision.all_class_non_max_suppression":
        lambda new: vision.all_class_non_max_suppression(new(1, 5, 4), new(1, 2, 5), 3, 0.5, 0.1),
    "vision.get_valid_counts": lambda new: vision.get_valid_counts(new(1, 5, 6)),
    "vision.multibox_detection": lambda new: vision.multibox_detection(new(1, 3, 5), new(1, 20), new(1, 5, 4)),
    "vision.multibox_prior": lambda new: vision.multibox_prior(new(1, 2, 3, 4)),
    "vision.multibox_transform_loc": lambda new: vision.multibox_transform_loc(new(1, 3, 5), new(1, 20), new(1, 5, 4)),
    "vision.non_max_suppression": lambda new: vision.non_max_suppression(new(1, 5, 6), integers(1), integers(1, 5)),
    "vision.proposal": lambda new: vision.proposal(
        new(1, 2, 3, 4), new(1, 4, 3, 4), new(1, 3), (1,), (1,), 8, 0.7, 6, 4, 2, False),
    "vision.reorg": lambda new: vision.reorg(new(1, 4, 4, 4), 2),
    "vision.roi_align_nchw":
        lambda new: vision.roi_align_nchw(new(1, 2, 4, 4), te.placeholder((2, 5), name="rois"), 2, 1.0, "avg"),
    "vision.roi_align_nhwc":
        lambda new: vision.roi_align_nhwc(new(1, 4, 4, 2), te.placeholder((2, 5), name="rois"), 2, 1.0, "avg"),
    "vision.roi_pool_nchw": lambda new: vision.roi_pool_nchw(new(1, 2, 4, 4), te.placeholder((2, 5), name="rois"), 2, 1.0),
    # topi.random
    "random.threefry_generate": lambda new: topi.random.threefry_generate(new(10), (8,)),
    "random.threefry_split": lambda new: topi.random.threefry_split(new(10)),
    "random.uniform": lambda new: topi.random.uniform(
        te.placeholder((10,), "uint64", name="gen"), new(), new(), (8,), new(1).dtype),
    # topi.sparse
    "sparse.csrmm": lambda new: topi.sparse.csrmm(sparse.placeholder((2, 3), 4, new(1).dtype), new(3, 4)),
    "sparse.csrmv": lambda new: topi.sparse.csrmv(sparse.placeholder((2, 3), 4, new(1).dtype), new(3, 1)),
    "sparse.dense": lambda new: topi.sparse.dense(new(4, 3), sparse.placeholder((2, 3), 4, new(1).dtype)),
    "sparse_fill_empty_rows": lambda new: topi.sparse_fill_empty_rows(
        integers(4, 2), new(4), integers(2), new(), (6, 2), (6,), (3,)),
    "sparse_reshape": lambda new: topi.sparse_reshape(new(4, 2), new(2), new(3), (4, 3), (3,)),
    "nn.sparse_add": lambda new: nn.sparse_add(new(2, 3), new(4), integers(4), integers(3)),
    "nn.sparse_conv2d": lambda new: nn.sparse_conv2d(new(1, 2, 2, 4), new(3, 2, 2), integers(3), integers(3)),
    "nn.sparse_dense": lambda new: nn.sparse_dense(new(4, 3), new(4), integers(4), integers(3)),
    "nn.sparse_dense_sp_lhs": lambda new: nn.sparse_dense_sp_lhs(new(4), integers(4), integers(3), new(4, 3)),
    "nn.sparse_dense_sp_rhs": lambda new: nn.sparse_dense_sp_rhs(new(4, 3), new(4), integers(4), integers(3)),
    "nn.sparse_transpose": lambda new: nn.sparse_transpose(new(4), integers(4), integers(3)),
}

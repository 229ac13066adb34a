"""The rearrangement of YOLO v2: pixels of an image become channels of a smaller one."""

from __future__ import annotations

from tedsl import te
from tedsl.errors import ShapeError
from topi.arguments import checked
from topi.extents import as_int, indices_at, opening, require_shape, row_major, shown
from topi.injective import injective


@checked
def reorg(data: te.Tensor, stride: int) -> te.Tensor:
    """The elements of an image as one `stride` times smaller in height and width, with stride * stride times the channels.

    data: (batch, channels, height, width); stride * stride divides the channels, stride height and width. The order is that of
    darknet's layer of this name (Redmon and Farhadi, 2016): the images are read as if they had channels / stride^2 channels of
    (height * stride) x (width * stride) pixels, from which element (k, y, x) takes channel k % c at (y * stride + k // c //
    stride, x * stride + k // c % stride), c the number of those channels; the result is these elements in row-major order.
    """
    where = opening("reorg", data)
    require_shape(data, [None] * 4, where, "data is (batch, channels, height, width)")
    batch, channels, height, width = data.shape
    extents = [as_int(extent) for extent in (channels, height, width)]
    if stride < 1 or any(extent is not None and extent % divisor for extent, divisor in
                         zip(extents, (stride * stride, stride, stride))):
        raise ShapeError(f"{where}: stride {stride} does not divide the shape {shown(data.shape)}",
                         hint="stride * stride divides the channels, stride the height and the width")
    blocks = channels // (stride * stride)
    shape = (batch, channels * (stride * stride), height // stride, width // stride)
    source, large = (channels, height, width), (blocks, height * stride, width * stride)

    def element(n: object, *i: object) -> object:
        k, y, x = indices_at(row_major(i, shape[1:]), source)
        place = (k % blocks, y * stride + k // blocks // stride, x * stride + k // blocks % stride)
        return data(n, *indices_at(row_major(place, large), source))

    return injective("reorg", shape, element, tag="reorg_output")

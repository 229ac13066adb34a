"""Operators of images."""

from tedsl.errors import entries
from topi.image.dilation2d import dilation2d_nchw, dilation2d_nhwc
from topi.image.grid_sample import affine_grid, grid_sample
from topi.image.resize import crop_and_resize, resize1d, resize2d, resize3d
from topi.image.resize import resize as resize  # an older name of resize2d, so not in __all__; it hides the module

__all__ = ["affine_grid", "crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "grid_sample", "resize1d", "resize2d",
           "resize3d"]


entries(globals())

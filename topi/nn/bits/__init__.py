"""Networks of bits: integers of few bits packed into words, and their products by counting bits."""

from topi.nn.bits.pack import binarize_pack, bitpack
from topi.nn.bits.pack import binary_op_multiplier as binary_op_multiplier  # no operator, so not in __all__
from topi.nn.bits.products import binary_dense, bitserial_conv2d_nchw, bitserial_conv2d_nhwc, bitserial_dense

__all__ = ["binarize_pack", "binary_dense", "bitpack", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "bitserial_dense"]

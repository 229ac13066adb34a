"""Convolutions: a tile of the result stays in registers while the sums run over channels and window.

    channels innermost (NHWC, NCHWc):        lanes along the channels; a tile is some pixels of a row times some vectors
    width innermost (NCHW), window of 1:     a product of matrices: lanes along all pixels of the image, whose rows follow each
                                             other; a tile is some channels times some vectors of pixels
    width innermost, channels that fill      lanes along the channels, with a copy of the weights whose channels are neighbours;
    vectors:                                 the tile is transposed when it is stored
    width innermost, few channels or terms:  lanes along the width; a tile is some channels times some vectors of a row
    width innermost, bytes or bfloat16:      as with channels innermost, of a copy of the image, where processors add up groups

Element-wise operators after the convolution (bias, batch norm, relu, a residual) are computed on the tile as it is stored.
"""

from topi.schedules.cpu.conv.bands import border_of_image
from topi.schedules.cpu.conv.choice import panels_of, schedule_conv
from topi.schedules.cpu.conv.winograd import schedule_by_bands

__all__ = ["border_of_image", "panels_of", "schedule_by_bands", "schedule_conv"]

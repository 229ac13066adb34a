"""Operators of the detectors R-CNN: regions of interest, and proposals of them."""

from tedsl.errors import entries
from tedsl.target.generic import give_implementations
from topi.vision.rcnn.proposal import proposal
from topi.vision.rcnn.roi import roi_align_nchw, roi_align_nhwc, roi_pool_nchw

__all__ = ["proposal", "roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]

give_implementations(globals())
entries(globals())

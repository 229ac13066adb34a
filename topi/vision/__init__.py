"""Operators of object detectors: boxes and their overlaps; those of SSD stand in `ssd.py`, those of R-CNN in `rcnn/`."""

from tedsl.errors import entries
from tedsl.target.generic import give_implementations
from topi.vision import rcnn, ssd
from topi.vision.nms import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from topi.vision.rcnn import proposal, roi_align_nchw, roi_align_nhwc, roi_pool_nchw
from topi.vision.reorg import reorg
from topi.vision.ssd import multibox_detection, multibox_prior, multibox_transform_loc

__all__ = ["all_class_non_max_suppression", "get_valid_counts", "multibox_detection", "multibox_prior",
           "multibox_transform_loc", "non_max_suppression", "proposal", "rcnn", "reorg", "roi_align_nchw", "roi_align_nhwc",
           "roi_pool_nchw", "ssd"]

give_implementations(globals())
entries(globals())

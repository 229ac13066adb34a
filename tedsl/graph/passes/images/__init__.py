"""Groups of images: layers that run for some images of a batch after others, so that what they leave is still in caches.

alone.py: which operators treat each image alone. number.py: calls of operators for another number of images. traffic.py: what
is moved between memory and caches, and the groups for which that is least. groups.py: the graph with layers for groups.
"""

from tedsl.graph.passes.images.groups import by_groups, in_groups, segments_of
from tedsl.graph.passes.images.traffic import Segment

__all__ = ["Segment", "by_groups", "in_groups", "segments_of"]

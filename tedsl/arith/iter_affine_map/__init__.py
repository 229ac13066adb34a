"""Quasi-affine maps of iterators: indices as sums of parts of loops, whether they are bijective, and their inverse.

    nodes: what a map is, and its expression      sums: arithmetic on maps      detect: indices -> maps, with a predicate
    cover: whether the parts of each iterator fit together      divide: outer and inner loops      inverse: outputs -> inputs

The factors may be sizes. A map is of use where its loops run, so that a SizeVar in an extent or a divisor counts as positive.
"""

from tedsl.arith.iter_affine_map.detect import detect_iter_map
from tedsl.arith.iter_affine_map.divide import subspace_divide
from tedsl.arith.iter_affine_map.inverse import inverse_affine_iter_map
from tedsl.arith.iter_affine_map.nodes import IterMapExpr, IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr

__all__ = ["IterMapExpr", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map", "inverse_affine_iter_map",
           "normalize_iter_map_to_expr", "subspace_divide"]

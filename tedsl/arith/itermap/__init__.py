"""Quasi-affine maps of iterators: indices as sums of parts of loops, whether they are bijective, and their inverse.

    nodes: what a map is, and its expression      sums: arithmetic on maps      detect: indices -> maps, with a predicate
    cover: whether the parts of each iterator fit together      divide: outer and inner loops      inverse: outputs -> inputs

The factors may be sizes. A map is of use where its loops run, so that a SizeVar in an extent or a divisor counts as positive.
"""

"""Tensor intrinsics: instructions described by formulas, which tensorize and te.compute call for a region."""

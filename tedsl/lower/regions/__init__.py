"""Bound inference: the region of each stage, propagated along relations from consumers to producers."""

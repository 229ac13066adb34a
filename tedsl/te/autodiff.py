"""Derivatives by the module name that TVM's programs use: `te.autodiff.gradient`."""

from tedsl.autodiff.gradient import gradient
from tedsl.errors import entries

__all__ = ["gradient"]

entries(globals())

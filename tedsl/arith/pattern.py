"""Forms of expressions that are looked for, by the name of TVM's module."""

from tedsl.arith.bound import detect_clip_bound as detect_clip_bound
from tedsl.arith.linear import detect_linear_equation as detect_linear_equation
from tedsl.arith.linear import solve_for as solve_for

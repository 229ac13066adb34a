"""Systems of linear equations and inequalities over the integers, with symbols on their right-hand sides.

    linear (coefficients of a sum) -> smith (diagonal forms of matrices) -> equations (fewer variables)
    linear -> inequalities (ranges of the variables) -> solve (the names of TVM, over constraints)
"""

from tedsl.arith.int_solver.constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from tedsl.arith.int_solver.solve import solve_linear_equations, solve_linear_inequalities

__all__ = ["IntConstraints", "IntConstraintsTransform", "IntGroupBounds", "solve_linear_equations",
           "solve_linear_inequalities"]

"""Systems of linear equations and inequalities over the integers, with symbols on their right-hand sides.

    linear (coefficients of a sum) -> smith (diagonal forms of matrices) -> equations (fewer variables)
    linear -> inequalities (ranges of the variables) -> solve (the names of TVM, over constraints)
"""

"""Adjoints of operators, in operators: what the records of `topi.kinds` answer when they are asked for a derivative.

An adjoint takes the `head`, the derivative of some number with respect to the result of an operator, and gives those with
respect to its operands. Written as sums over the formula of the operator they would be slow; here the adjoint of a convolution
is convolutions, that of a product of matrices is products, so that `topi.schedules` has fast loops for them. Each module holds
a family; `table.py` says which record is answered by which function.
"""

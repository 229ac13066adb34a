"""Checks of handwritten functions, made before any pass: they establish what a schedule guarantees by construction.

    function      a PrimFunc of the user's: variables, well-formedness, accesses; generated functions are not checked again
    statements    the rewriter of statements: what each of them means for the accesses inside
    accesses      one access under its loops and conditions: proved, refused, asserted or clamped
    known_memory  the number of elements behind each pointer, and the range of each index of an access
    demand        a bounds check as an assertion, and its hoisting out of loops
"""

"""Functions written by hand: what a schedule guarantees by construction is checked here before any pass sees them.

    function      a PrimFunc of the user's: variables, well-formedness, accesses; what our own pipeline made passes unseen
    statements    the rewriter of statements: what each of them means for the accesses inside
    accesses      one access under its loops and conditions: proved, refused, asserted or clamped
    known_memory  how many elements stand behind each pointer, and the range of each index of an access
    demand        a condition that a call must satisfy, and the way it moves out of loops
"""

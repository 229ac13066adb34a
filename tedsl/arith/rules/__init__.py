"""One file per operator. A rule takes an expression whose operands are simplified, and what is known at its place.

It returns a form that is simpler, or None; its comment gives the side condition under which the values are equal.
"""

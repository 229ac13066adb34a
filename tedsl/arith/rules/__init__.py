"""One file per operator. A rule takes an expression whose operands are simplified, and the facts known at its place.

It returns a simpler form, or None; its comment gives the side condition under which the values are equal.
"""

"""One function per directive: a call of it that the schedule should accept, as text, or None where there is no place for it.

Loops are written `loop(T1, 2)`: by their number now, so that a sequence from which some directives are taken is still one.
"""

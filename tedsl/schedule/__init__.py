"""How a formula is computed: stages, the loops of each, the relations between loops, and the directives that change them.

primitives/ holds the directives, one file each; record/ what a schedule remembers of them (undo, journals, replay); scan/ what
recurrences allow.
"""

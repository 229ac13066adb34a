"""Where formulas are zero.

    terms      a value as a sum of terms, each zero unless its conditions hold
    borders    the conditions outside of which a value is zero, those of the formulas that it reads included
"""

"""Where formulas are zero.

    terms      a value as a sum of terms, each zero unless its conditions hold
"""

"""What can be proved about integers.

    ranges -> affine (sums of terms) -> canonical (equal values, one representative) -> bounds (what is known here)
    rules/<operator>: one step of simplification each, with its side condition -> simplify -> analyzer (the front door)
    prove: inequalities over symbols        interval: regions        solve: equations        modular: divisibility

**When the rules apply.** The arithmetic rules hold for ideal integers. An expression is treated as ideal (it is *exact*) if
- it is *index arithmetic*: scalar int32 or int64 whose leaves are variables and constants (decision 3: it never overflows), or
- the range of its ideal value is proved to lie within its dtype, e.g. `cast(int32, A[i]) + 1` for a uint8 `A`.
Everything else (loads, calls, narrow or unsigned dtypes, sums of them that may wrap) is *data*: opaque to the arithmetic, and
rewritten only by identities that also hold modulo 2**bits. Floats: only identities that hold for every bit pattern.
Division by zero gives 0, so a rule that cancels a divisor asks for a proof that it is not 0.
Memory may change between two statements, so no fact about a loaded value is remembered by a constraint.
"""

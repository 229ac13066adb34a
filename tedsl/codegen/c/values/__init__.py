"""Expressions in C: data with the arithmetic of its dtype, index arithmetic in 64 bits, vectors lane by lane."""

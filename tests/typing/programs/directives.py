"""Directives that are misspelled or get arguments of a wrong kind."""

from tedsl import te

A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
s = te.create_schedule(B.op)
s[B].splitt(B.op.axis[0], factor=4)  # error: attr-defined
s[B].split(B.op.axis[0], faktor=4)  # error: call-arg
s[B].vectorize("i")  # error: arg-type
outer, inner, rest = s[B].split(B.op.axis[0], factor=4)  # error: misc
s.vectorize(B.op.axis[0])  # error: attr-defined

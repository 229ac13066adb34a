"""Fields that the operation of a tensor does not have."""

from tedsl import te

A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
A.op.axis  # error: attr-defined
B.op.reduce_axes  # error: attr-defined
B.shapes  # error: attr-defined
te.compute((64,), "A[i] * 2.0")  # error: call-overload
te.sum(A[0], axes=B.op.axis[0])  # error: call-arg

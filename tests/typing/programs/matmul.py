"""A schedule of a matrix product, as its user writes it: no finding."""

import numpy as np

import tedsl
from tedsl import te, topi

M = N = K = 64
k = te.reduce_axis((0, K), "k")
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")

s = te.create_schedule(C.op)
CC = s.cache_write(C, "global")
mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 16)
s[CC].compute_at(s[C], no)
mc, nc = s[CC].op.axis
(kaxis,) = s[CC].op.reduce_axis
ko, ki = s[CC].split(kaxis, factor=4)
s[CC].reorder(ko, mc, ki, nc)
s[CC].vectorize(nc)
s[CC].unroll(ki)
s[C].parallel(mo)

target = tedsl.target.Target("llvm")
print(tedsl.lower(s, [A, B, C], simple_mode=True))
func = tedsl.build(s, [A, B, C], target=target, name="mmult")
a = tedsl.nd.array(np.random.rand(M, K).astype("float32"), tedsl.cpu(0))
c = tedsl.nd.array(np.zeros((M, N), "float32"))
func(a, a, c)
seconds: float = func.time_evaluator(func.entry_name, tedsl.cpu(0), number=3)(a, a, c).mean
product: te.Tensor = topi.nn.dense(A, B)

"""Programs in the styles of TVM's versions: each begins with its imports, and checks what it computes."""

V06 = {
    "vector add": '''
import tvm
import numpy as np

n = tvm.var("n")
A = tvm.placeholder((n,), name="A")
B = tvm.placeholder((n,), name="B")
C = tvm.compute(A.shape, lambda i: A[i] + B[i], name="C")  # element by element
s = tvm.create_schedule(C.op)
fadd = tvm.build(s, [A, B, C], "llvm", target_host="llvm", name="myadd")
ctx = tvm.context("llvm", 0)
a = tvm.nd.array(np.arange(10).astype(A.dtype), ctx)
c = tvm.nd.array(np.zeros(10, dtype=C.dtype), ctx=ctx)
fadd(a, a, c)
np.testing.assert_allclose(c.asnumpy(), 2 * a.asnumpy())
''',
    "blocked product": '''
import tvm
import numpy
M = N = K = 24
k = tvm.reduce_axis((0, K), 'k')
A = tvm.placeholder((M, K), name='A')
B = tvm.placeholder((K, N), name='B')
C = tvm.compute((M, N), lambda x, y: tvm.sum(A[x, k] * B[k, y], axis=k), name='C')
s = tvm.create_schedule(C.op)
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
ko, ki = s[C].split(k, factor=4)
s[C].reorder(xo, yo, ko, xi, ki, yi)
s[C].vectorize(yi)
func = tvm.build(s, [A, B, C], target='llvm', name='mmult')
a, b = (numpy.random.rand(24, 24).astype('float32') for _ in range(2))
c = tvm.nd.array(numpy.zeros((M, N), dtype='float32'), tvm.cpu(0))
func(tvm.nd.array(a), tvm.nd.array(b), c)
numpy.testing.assert_allclose(c.asnumpy(), a.dot(b), rtol=1e-5)
assert func.time_evaluator(func.entry_name, ctx=tvm.cpu(), number=1)(tvm.nd.array(a), tvm.nd.array(b), c).mean > 0
''',
    "nodes": '''
from __future__ import absolute_import
import tvm
from tvm import expr, stmt
from tvm.ir_pass import Simplify

x = tvm.var("x", dtype="int32")
e = tvm.make.Add(x, tvm.const(0, "int32"))
assert isinstance(e, expr.Add) and Simplify(e) is x
assert tvm.ir_pass.Equal(tvm.ir_pass.Simplify(x * 2 - x), x)
body = tvm.make.Evaluate(1)
assert isinstance(body, stmt.Evaluate)
''',
    "select": '''
import tvm as t
import numpy as np
A = t.placeholder((7,), name="A", dtype="int32")
B = t.compute((7,), lambda i: t.select(A[i] > 3, A[i], t.const(0, "int32")))
f = t.build(t.create_schedule(B.op), [A, B])
out = t.nd.empty((7,), "int32", ctx=t.cpu())
f(t.nd.array(np.arange(7, dtype="int32")), out)
assert out.asnumpy().tolist() == [0, 0, 0, 0, 4, 5, 6]
''',
    "reducer": '''
import tvm
import numpy as np
product = tvm.comm_reducer(lambda x, y: x * y, lambda t: tvm.const(1, dtype=t), name="product")
A = tvm.placeholder((3, 5), name="A")
k = tvm.reduce_axis((0, 5))
B = tvm.compute((3,), lambda i: product(A[i, k], axis=k))
f = tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")
a = np.random.rand(3, 5).astype("float32")
b = tvm.nd.array(np.zeros(3, "float32"))
f(tvm.nd.array(a), b)
np.testing.assert_allclose(b.asnumpy(), a.prod(1), rtol=1e-5)
''',
    "scan": '''
import tvm
import numpy as np
m, n = 5, 4
X = tvm.placeholder((m, n), name="X")
state = tvm.placeholder((m, n))
init = tvm.compute((1, n), lambda _, i: X[0, i])
update = tvm.compute((m, n), lambda t, i: state[t-1, i] + X[t, i])
res = tvm.scan(init, update, state, inputs=[X])
f = tvm.build(tvm.create_schedule(res.op), [X, res])
a = np.random.rand(m, n).astype("float32")
b = tvm.nd.array(np.zeros((m, n), "float32"))
f(tvm.nd.array(a), b)
np.testing.assert_allclose(b.asnumpy(), a.cumsum(0), rtol=1e-5)
''',
    "topi beside it": '''
import numpy as np
import tvm
import topi
from topi.util import get_const_tuple
import topi.testing
A = tvm.placeholder((4, 6), name="A")
B = topi.nn.softmax(A)
with tvm.target.create("llvm"):
    s = topi.generic.schedule_softmax(B)
assert get_const_tuple(B.shape) == (4, 6)
f = tvm.build(s, [A, B], "llvm")
a = np.random.rand(4, 6).astype("float32")
b = tvm.nd.array(np.zeros((4, 6), "float32"))
f(tvm.nd.array(a), b)
np.testing.assert_allclose(b.asnumpy(), topi.testing.softmax_python(a), rtol=1e-5)
''',
    "ir builder": '''
import tvm
import numpy as np

def gen(ins, outs):
    ib = tvm.ir_builder.create()
    src, dst = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, 6, name="i") as i:
        dst[i] = src[i] + 1.0
    return ib.get()

A = tvm.placeholder((6,), name="A")
B = tvm.extern((6,), [A], gen, dtype="float32", name="B")
f = tvm.build(tvm.create_schedule(B.op), [A, B], "llvm")
b = tvm.nd.array(np.zeros(6, "float32"))
f(tvm.nd.array(np.arange(6, dtype="float32")), b)
assert b.asnumpy().tolist() == [1, 2, 3, 4, 5, 6]
''',
    "options": '''
import tvm
A = tvm.placeholder((8,), name="A")
B = tvm.compute((8,), lambda i: tvm.if_then_else(i < 4, A[i], tvm.const(0.0)))
s = tvm.create_schedule(B.op)
with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=True):
    text = str(tvm.lower(s, [A, B], simple_mode=True))
assert "for" not in text and tvm.nd.context is not None
''',
    "hybrid": '''
import tvm
import numpy as np

@tvm.hybrid.script
def double(a):
    b = output_tensor((5,), 'float32')
    for i in range(5):
        b[i] = a[i] * 2.0
    return b

A = tvm.placeholder((5,), name="A")
B = double(A)
f = tvm.build(tvm.create_schedule(B.op), [A, B])
b = tvm.nd.array(np.zeros(5, "float32"))
f(tvm.nd.array(np.ones(5, "float32")), b)
assert b.asnumpy().sum() == 10
''',
}
V07 = {
    "te and tir": '''
import tvm
from tvm import te, tir
import numpy as np
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: tir.if_then_else(i > 1, A[i], tir.const(0.0, "float32")), name="B")
f = tvm.build(te.create_schedule(B.op), [A, B])
b = tvm.nd.array(np.zeros(4, "float32"), ctx=tvm.cpu(0))
f(tvm.nd.array(np.ones(4, "float32"), ctx=tvm.cpu(0)), b)
assert b.asnumpy().tolist() == [0, 0, 1, 1]
''',
    "topi inside": '''
import tvm, numpy
from tvm import te, topi
from tvm.topi.util import get_const_tuple
import tvm.testing
A = te.placeholder((3, 4), name="A")
B = topi.nn.relu(A)
s = topi.generic.schedule_injective(B)
f = tvm.build(s, [A, B], "llvm", name="relu")
a = numpy.random.randn(*get_const_tuple(A.shape)).astype("float32")
b = tvm.nd.array(numpy.zeros((3, 4), "float32"))
f(tvm.nd.array(a), b)
tvm.testing.assert_allclose(b.asnumpy(), numpy.maximum(a, 0), rtol=1e-5)
''',
    "threads": '''
import tvm
from tvm import te
A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
s = te.create_schedule(B.op)
bx, tx = s[B].split(B.op.axis[0], factor=32)
s[B].bind(bx, te.thread_axis("blockIdx.x"))
s[B].bind(tx, te.thread_axis("threadIdx.x"))
assert "threadIdx.x" in str(tvm.lower(s, [A, B], simple_mode=True))
''',
    "only submodules": '''
import tvm.te
import tvm.tir as tir
A = tvm.te.placeholder((4,), name="A")
assert isinstance(A.shape[0], tir.IntImm)
''',
    "inside a function": '''
def shape_of(n):
    import tvm
    from tvm import te
    A = te.placeholder((n, 2), name="A")
    return tvm.runtime.convert(list(A.shape))

assert len(shape_of(3)) == 2
''',
    "pragma": '''
import tvm
from tvm import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: te.exp(A[i]), name="B")
s = te.create_schedule([B.op])
s[B].pragma(B.op.axis[0], "auto_unroll_max_step", 16)
s[B].pragma(B.op.axis[0], "unroll_explicit", True)
assert str(tvm.lower(s, [A, B], simple_mode=True)).count("@tir.exp") == 8
''',
    "analyzer": '''
import tvm
from tvm import te
ana = tvm.arith.Analyzer()
x = te.var("x")
ana.bind(x, tvm.ir.Range(0, 8))
assert ana.const_int_bound(x * 2 + 1).max_value == 15
assert tvm.tir.analysis.expr_deep_equal(ana.simplify(x - x), tvm.tir.const(0))
''',
}
V08 = {
    "get started": '''
import tvm
import tvm.testing
from tvm import te
import numpy as np
tgt = tvm.target.Target(target="llvm", host="llvm")
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
s[C].parallel(C.op.axis[0])
fadd = tvm.build(s, [A, B, C], tgt, name="myadd")
dev = tvm.device(tgt.kind.name, 0)
a, b, c = (tvm.nd.array(np.random.uniform(size=33).astype(A.dtype), dev) for _ in range(3))
fadd(a, b, c)
tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
''',
    "passes": '''
import tvm
from tvm import te
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] + 0.0 * A[i], name="B")
s = te.create_schedule(B.op)
seen = []

@tvm.tir.transform.prim_func_pass(opt_level=0)
def look(f, mod, ctx):
    tvm.tir.stmt_functor.post_order_visit(f.body, lambda n: seen.append(type(n).__name__))
    return f

with tvm.transform.PassContext(opt_level=3, config={"tir.add_lower_pass": [(1, look)]}):
    tvm.lower(s, [A, B])
assert "For" in seen
''',
    "cache write": '''
import numpy as np
import tvm
from tvm import te
k = te.reduce_axis((0, 16), "k")
A = te.placeholder((8, 16), name="A")
C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")
s = te.create_schedule(C.op)
CC = s.cache_write(C, "global")
xo, xi = s[C].split(C.op.axis[0], 4)
s[CC].compute_at(s[C], xo)
f = tvm.build(s, [A, C], target="llvm")
a = np.random.rand(8, 16).astype("float32")
c = tvm.nd.empty((8,))
f(tvm.nd.array(a), c)
np.testing.assert_allclose(c.numpy(), a.sum(1), rtol=1e-5)
''',
    "long imports": '''
from tvm import (  # the language
    te,
    topi,
)
from tvm.topi.utils import get_const_tuple as const
from tvm.contrib.utils import tempdir
A = te.placeholder((2, 3), name="A")
assert const(topi.transpose(A).shape) == (3, 2)
assert tempdir().relpath("x").endswith("x")
''',
    "names of one's own": '''
import tvm
from tvm import te

class Holder:
    """tvm.placeholder is a word in this text."""
    tvm = "tvm.placeholder"
    placeholder = 3

h = Holder()
assert h.tvm == "tvm.placeholder" and h.placeholder == 3 and te.var("x").dtype == "int32"
''',
    "registered function": '''
import numpy as np
import tvm
from tvm import te

@tvm.register_func("programs.twice", override=True)
def twice(x, y):
    tvm.nd.array(x.numpy() * 2).copyto(y)

A = te.placeholder((4,), name="A")
B = te.extern(A.shape, [A], lambda ins, outs: tvm.tir.call_packed("programs.twice", ins[0], outs[0]), name="B")
f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
b = tvm.nd.empty((4,))
f(tvm.nd.array(np.ones(4, "float32")), b)
assert b.numpy().sum() == 8
''',
    "error": '''
import tvm
from tvm import te
try:
    te.create_schedule(3)
    raise SystemExit("no error")
except tvm.TVMError:
    pass
''',
}
V12 = {
    "prim func": '''
import tvm
from tvm import te
A = te.placeholder((16,), name="A", dtype="float32")
B = te.compute((16,), lambda i: A[i] + te.const(1.0, "float32"), name="B")
func = te.create_prim_func([A, B])
assert isinstance(func, tvm.tir.PrimFunc)
''',
    "targets": '''
import tvm
target = tvm.target.Target("llvm -mcpu=x86-64-v3 -num-cores 4")
assert target.kind.name == "llvm"
other = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3"})
assert other.kind.name == "llvm"
''',
    "time": '''
import numpy as np
import tvm
from tvm import te
A = te.placeholder((64,), name="A")
B = te.compute((64,), lambda i: te.sqrt(A[i]), name="B")
f = tvm.build(te.create_schedule(B.op), [A, B])
a = tvm.nd.array(np.ones(64, "float32"))
timer = f.time_evaluator(f.entry_name, tvm.cpu(0), number=2, repeat=2, min_repeat_ms=0, cooldown_interval_ms=0)
assert len(timer(a, tvm.nd.empty((64,))).results) == 2
''',
    "layouts": '''
from tvm import te, topi
from tvm.topi.utils import get_const_tuple
A = te.placeholder((1, 3, 8, 8), name="A")
W = te.placeholder((4, 3, 3, 3), name="W")
B = topi.nn.conv2d(A, W, 1, 1, 1, data_layout="NCHW", kernel_layout="OIHW")
assert get_const_tuple(B.shape) == (1, 4, 8, 8)
''',
    "conditional import": '''
try:
    import tvm
    from tvm import te
except ImportError:
    tvm = None
assert tvm is not None and te.var("n") is not None
''',
    "module text": '''
import tvm
from tvm import te
A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] * A[i], name="B")
mod = tvm.lower(te.create_schedule(B.op), [A, B])
assert isinstance(mod, tvm.IRModule) and "A" in mod.script()
''',
}
PROGRAMS = {f"{version} {name}": text.lstrip("\n")
            for version, programs in (("0.6", V06), ("0.7", V07), ("0.8", V08), ("0.12", V12))
            for name, text in programs.items()}

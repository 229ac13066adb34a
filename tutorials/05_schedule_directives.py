"""The directives, one by one: what each does to the loops, and that the result stays the same.

Run it: `python tutorials/05_schedule_directives.py`. It prints the loops of four small programs, then for each directive
(tensorize has tutorial 06) the loops that it makes of them; it builds each schedule, runs it and compares with numpy. The page
docs/directives.md lists all directives; docs/reading_the_loops.md says how to read the loops.
"""

import textwrap

import numpy as np

import tedsl
from tedsl import te, tir

rng = np.random.default_rng(0)


# --- Four small programs ----------------------------------------------------------------------------------------------
def chain():
    """B = A + 1, C = B * 2, eight rows of twelve."""
    A = te.placeholder((8, 12), name="A")
    B = te.compute((8, 12), lambda y, x: A[y, x] + 1.0, name="B")
    C = te.compute((8, 12), lambda y, x: B[y, x] * 2.0, name="C")
    return (A, B, C), [A, C], lambda a: (a + 1) * 2


def blur():
    """B = A * 2, and sums of three neighbours of B: to compute four of C takes six of B."""
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda x: A[x] * 2.0, name="B")
    C = te.compute((16,), lambda x: B[x] + B[x + 1] + B[x + 2], name="C")
    return (A, B, C), [A, C], lambda a: 2 * (a[:-2] + a[1:-1] + a[2:])


def row_sum():
    """The sum of each of eight rows of 64."""
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return (A, B), [A, B], lambda a: a.sum(axis=1)


def window_sum():
    """Sums of three neighbours of A, which has a border of zeros."""
    A = te.placeholder((16,), name="A")
    P = te.compute((18,), lambda x: te.if_then_else(te.all(x >= 1, x < 17), A[x - 1], 0.0), name="P")
    k = te.reduce_axis((0, 3), "k")
    B = te.compute((16,), lambda x: te.sum(P[x + k], axis=k), name="B")
    return (A, B), [A, B], lambda a: np.convolve(a, np.ones(3, "float32"), "same")


def loops(s, args):
    """The loops as text, without the head of the function."""
    return textwrap.dedent(tedsl.lower(s, args, simple_mode=True).readable().partition("\n")[2])


for program in (chain, blur, row_sum, window_sum):
    tensors, args, _ = program()
    print(f"\n=== {program.__name__}: {program.__doc__}\n{loops(te.create_schedule(tensors[-1].op), args)}")


def lesson(title, program, directives):
    """Prints `directives(s, *tensors)` and the loops that they make, checks the result, and returns the loops."""
    tensors, args, expected = program()
    s = te.create_schedule(tensors[-1].op)
    directives(s, *tensors)
    after = loops(s, args)
    print(f"\n=== {title}", *(f"--- {directive.text}" for directive in s.journal), after, sep="\n")

    a = rng.random([int(extent) for extent in args[0].shape], dtype="float32")
    out = np.zeros([int(extent) for extent in args[-1].shape], "float32")
    tedsl.build(s, args)(a, out)
    np.testing.assert_allclose(out, expected(a), rtol=1e-5)
    return after


# --- 1. The loops of one stage ----------------------------------------------------------------------------------------
after = lesson("split: a loop of twelve as three times four", chain, lambda s, A, B, C: s[C].split(C.op.axis[1], factor=4))
assert "for x.outer in range(3):" in after

after = lesson("split where it does not come out even: a guard, and only there", chain,
               lambda s, A, B, C: s[C].split(C.op.axis[1], factor=5))
assert "if likely(x.outer*5 + x.inner < 12):" in after

after = lesson("split with a tail of its own: two full fives without a guard, and what is left behind them", chain,
               lambda s, A, B, C: s[C].split(C.op.axis[1], factor=5, tail="partition"))
assert "for x.outer in range(2):" in after

after = lesson("fuse: two loops as one", chain, lambda s, A, B, C: s[C].fuse(*C.op.axis))
assert "for y.x.fused in range(96):" in after

lesson("reorder: the columns outside", chain, lambda s, A, B, C: s[C].reorder(C.op.axis[1], C.op.axis[0]))
lesson("tile: blocks of 4 x 4", chain, lambda s, A, B, C: s[C].tile(*C.op.axis, 4, 4))


def vectorized(s, A, B, C):
    _, lanes = s[C].split(C.op.axis[1], factor=4)
    s[C].vectorize(lanes)


after = lesson("vectorize: four elements in one instruction", chain, vectorized)
assert "C[y, at : at+4] = B[y, at : at+4]*2.0" in after
lesson("unroll: copies instead of a loop", row_sum, lambda s, A, B: s[B].unroll(s[B].split(B.op.reduce_axis[0], 4)[1]))
after = lesson("parallel: rows on all cores", chain, lambda s, A, B, C: s[C].parallel(C.op.axis[0]))
assert "for y in parallel(8):" in after


def noted(s, A, B, C):
    outer, _ = s[C].split(C.op.axis[1], factor=4)
    s[C].pragma(outer, "auto_unroll_max_step", 4)


after = lesson("pragma: a note for the passes, here to make copies of up to four statements", chain, noted)
assert "for x.inner" not in after


# --- 2. Where a stage is computed -------------------------------------------------------------------------------------
def at_tiles(s, A, B, C):
    tile, _ = s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], tile)


after = lesson("compute_at: as much of B as four of C need, six with the halo", blur, at_tiles)
assert "B = allocate(float32[6])" in after
after = lesson("compute_inline: B is nowhere, its formula stands in C", chain, lambda s, A, B, C: s[B].compute_inline())
assert "allocate" not in after
after = lesson("reverse_compute_at: the consumer goes to its producer", chain,
               lambda s, A, B, C: s[C].reverse_compute_at(s[B], B.op.axis[0]))
assert "B = allocate(float32[1, 12])" in after


after = lesson("compute_with: two stages share a loop, and keep their memory", chain,
               lambda s, A, B, C: s[C].compute_with(s[B], B.op.axis[0], C.op.axis[0]))
assert "B = allocate(float32[8, 12])" in after and after.count("range(8)") == 1


def grouped(s, A, B, C):
    s.create_group(outputs=B, inputs=A).compute_at(s[C], C.op.axis[0])


after = lesson("create_group: the stages between two tensors, here only B, are placed together", chain, grouped)
assert "B = allocate(float32[1, 12])" in after


def back_at_the_root(s, A, B, C):
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].compute_root()


after = lesson("compute_root: on its own again, before its readers", chain, back_at_the_root)
assert "B = allocate(float32[8, 12])" in after


# --- 3. Memory --------------------------------------------------------------------------------------------------------
def cached(s, A, B, C):
    near = s.cache_read(B, "local", [C])
    s[near].compute_at(s[C], C.op.axis[0])


lesson("cache_read: a row of B is copied to where it is used", chain, cached)


def every_second():
    """Every second of sixteen elements, doubled."""
    A = te.placeholder((16,), name="A")
    B = te.compute((8,), lambda i: A[i * 2] * 2.0, name="B")
    return (A, B), [A, B], lambda a: 2 * a[::2]


def in_the_order_of_the_reader(s, A, B):
    read = s.reindex_cache_read(A, "global", B)
    s[read].compute_at(s[B], s[B].split(B.op.axis[0], factor=4)[0])


after = lesson("reindex_cache_read: what B reads of A lies side by side", every_second, in_the_order_of_the_reader)
assert "allocate(float32[4])" in after


def write_cached(s, A, B):
    total = s.cache_write(B, "local")
    s[total].compute_at(s[B], B.op.axis[0])


after = lesson("cache_write: the sum is made in a variable of its own, then stored", row_sum, write_cached)
assert "B.local" in after
after = lesson("set_scope: B in memory of another scope", chain, lambda s, A, B, C: s[B].set_scope("local"))
assert 'scope="local"' in after
lesson("storage_align: rows of B start 17 elements apart", chain, lambda s, A, B, C: s[B].storage_align(B.op.axis[0], 16, 1))
after = lesson("double_buffer: the next tile is computed before this one is used", blur,
               lambda s, A, B, C: (at_tiles(s, A, B, C), s[B].double_buffer()))
assert "B = allocate(float32[12])" in after
after = lesson("rolling_buffer: what two tiles share is computed once", blur,
               lambda s, A, B, C: (at_tiles(s, A, B, C), s[B].rolling_buffer()))
assert "%6]" in after
lesson("transform_layout: B lies in memory in columns of four", chain,
       lambda s, A, B, C: s[B].transform_layout(lambda y, x: [x // 4, y, x % 4]))
after = lesson("prefetch: while a row is computed, the cache is asked for the next one", chain,
               lambda s, A, B, C: s[B].prefetch(A, B.op.axis[0], 1))
assert "prefetch" in after
after = lesson("nontemporal: results that nobody reads soon are stored past the cache", chain,
               lambda s, A, B, C: s[C].nontemporal())
assert "nontemporal" in after


def whole_rows(ins, outs, threads=1, shared=0):
    """Statements of a stage that no formula makes; by_threads launches them as a kernel, one thread for several rows."""
    ib = tir.ir_builder.create()
    a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    thread = te.thread_axis("threadIdx.x")
    ib.scope_attr(thread, "thread_extent", threads)
    with ib.for_range(0, 8 // threads, name="y") as y, ib.for_range(0, 12, name="x") as x:
        b[y * threads + thread, x] = a[y * threads + thread, 11 - x]
    return ib.get()


def written():
    A = te.placeholder((8, 12), name="A")
    B = te.extern((8, 12), [A], whole_rows, name="B", by_threads=whole_rows)
    return (A, B), [A, B], lambda a: a[:, ::-1]


after = lesson("by_threads: a stage of te.extern is computed by its statements for kernels", written,
               lambda s, A, B: s[B].by_threads(threads=4, shared=0))
assert "threadIdx.x" in after


# --- 4. Reductions ----------------------------------------------------------------------------------------------------
def factored(s, A, B):
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    partial = s.rfactor(B, ki)
    s[partial].vectorize(s[partial].op.axis[0])


after = lesson("rfactor: sixteen partial sums side by side, then their sum", row_sum, factored)
assert "B.rf" in after


def padded(s, A, B):
    (longer,) = s.pad_sum(B, B.op.reduce_axis[0], 24)
    s[longer].compute_at(s[B], B.op.axis[0])
    s[B].split(s[B].op.reduce_axis[0], factor=24)


after = lesson("pad_sum: the sum runs over more terms, which are zeros", row_sum, padded)
assert "A.padded" in after


def decomposed(s, A, B):
    i = B.op.axis[0]
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    s[B].reorder(ki, i)
    s[B].decompose_reduction(s[B].leaf_iter_vars[0])


lesson("decompose_reduction: the zeros in a nest of their own", row_sum, decomposed)


def skipping(s, A, B):
    s[B].skip_zeros(B.op.reduce_axis[0])


after = lesson("skip_zeros: the border is not added", window_sum, skipping)
assert "if (1 <= " in after or "if 1 <= " in after


# --- 5. Threads of a device, run on this machine ----------------------------------------------------------------------
def bound(s, A, B, C):
    s[B].compute_inline()
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))


after = lesson("bind: rows are blocks, columns are threads", chain, bound)
assert "for threadIdx.x in threads(12):" in after


def reduced_by_threads(s, A, B):
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(B.op.reduce_axis[0], tx)
    s[B].set_store_predicate(tx.var.equal(0))


after = lesson("set_store_predicate: all threads have the sum, the first one stores it", row_sum, reduced_by_threads)
assert "if threadIdx.x == 0:" in after


def launched(s, A, B, C):
    s[B].compute_inline()
    s[C].env_threads([te.thread_axis((0, 4), "threadIdx.x")])


after = lesson("env_threads: four threads around all loops of a stage; each runs all of them", chain, launched)
assert "for threadIdx.x in threads(4):" in after


# --- 6. One kernel for several cases ----------------------------------------------------------------------------------
n = te.size_var("n")
A = te.placeholder((n,), name="A")
C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
s = te.create_schedule(C.op)
s[C].split(C.op.axis[0], factor=4)
before = loops(s, [A, C])
s[C].specialize(n % 4 == 0)
after = loops(s, [A, C])
assert before.count("if likely(") == after.count("if likely(") == 1 and "if n%4 == 0:" in after
print(f"\n=== specialize: loops without guards where four divides n\n--- {s.journal[-1].text}\n{after}")
double = tedsl.build(s, [A, C])
for size in (8, 9, 0):
    a, c = rng.random(size, dtype="float32"), np.zeros(size, "float32")
    double(a, c)
    np.testing.assert_array_equal(c, a * 2)

# --- 7. Taking it back ------------------------------------------------------------------------------------------------
# A directive that cannot be applied changes nothing, and the last ones can be undone.
tensors, args, _ = chain()
A, B, C = tensors
s = te.create_schedule(C.op)
s[C].split(C.op.axis[0], factor=8)
try:
    s[C].parallel(C.op.axis[0])
except tedsl.TedslError as error:
    print("\n=== Refused, and nothing changed\n" + str(error))
else:
    raise AssertionError("a loop that was split is there no more, and must not become parallel")
s.undo()
s[C].split(C.op.axis[0], factor=4)
assert [d.name for d in s.journal] == ["split"]
print("\nEvery result agreed with numpy.")

"""Products of matrices by tile registers, where a pragma asks for them: as loops, as calls in the interpreter, and on AMX."""

import itertools

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import LoweringError, ShapeError, TedslError
from tedsl.ir.evaluate import run as interpret
from tedsl.ir.ops import TILE_PRODUCT
from tedsl.ir.walk.visitor import post_order
from tedsl.passes.default import target_pipeline
from tedsl.target import Target
from tests.codegen.test_bfloat16_pairs import bits
from tests.topi.run import run
from topi.schedules.packing import panels_in

AMX = "llvm -mcpu=sapphirerapids -mtriple=x86_64-linux-gnu"
WITHOUT = ["llvm -mcpu=icelake-server -mtriple=x86_64-linux-gnu", "llvm -mcpu=sapphirerapids -mtriple=x86_64-apple-darwin",
           "llvm -mtriple=aarch64-linux-gnu"]
KINDS = {("uint8", "int8"): "tdpbusd", ("int8", "uint8"): "tdpbsud", ("int8", "int8"): "tdpbssd", ("uint8", "uint8"): "tdpbuud",
         ("bfloat16", "bfloat16"): "tdpbf16ps"}
here = pytest.mark.skipif(not Target("llvm").multiplies_tiles("int8", "int8"), reason="this machine lacks amx-int8")
SHAPES = [(1, 1, 4), (16, 16, 64), (33, 31, 68), (5, 70, 128), (40, 17, 8), (70, 33, 132)]


def product(m, n, k, kinds=("uint8", "int8"), tall=None, wide=None, order="ikjr"):
    """C = A B with B by groups of terms; tall, wide: rows and columns of a block."""
    of, group = ("float32", 2) if kinds[0] == "bfloat16" else ("int32", 4)
    a, b = te.placeholder((m, k), kinds[0], name="a"), te.placeholder((k // group, n, group), kinds[1], name="b")
    p = te.reduce_axis((0, k), name="p")

    def term(i, j):
        return a[i, p].astype(of) * b[p // group, j, p % group].astype(of)

    c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=p), name="c")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    outer = []
    if tall:
        io, i = s[c].split(i, factor=tall)
        outer.append(io)
    if wide:
        jo, j = s[c].split(j, factor=wide)
        outer.append(jo)
    steps, inside = s[c].split(p, factor=group)
    loops = {"i": i, "j": j, "k": steps, "r": inside}
    s[c].reorder(*outer, *(loops[name] for name in order))
    s[c].pragma(loops[order[0]], "tile_products")
    return s, [a, b, c]


def arrays(m, n, k, kinds):
    """Operands as arrays of the program, and their product, exact or in float64."""
    if kinds[0] == "bfloat16":
        (x, left), (y, right) = bits(m, k), bits(k, n, seed=1)
        left, right, group = left.astype("float64"), right.astype("float64"), 2
    else:
        rng, group = np.random.default_rng(0), 4
        x, y = (rng.integers(*((0, 256) if kind == "uint8" else (-128, 128)), shape, kind) for kind, shape in
                zip(kinds, ((m, k), (k, n))))
        left, right = x.astype("int64"), y.astype("int64")
    packed = np.ascontiguousarray(y.reshape(k // group, group, n).transpose(0, 2, 1))
    return x, packed, left @ right, np.abs(left) @ np.abs(right)


def same(found, wanted, size):
    if found.dtype == "int32":
        np.testing.assert_array_equal(found, wanted)
    else:
        assert (np.abs(found - wanted) <= size * 2.0**-18).all()


def lowered(s, args):
    """The loops with the calls for AMX."""
    return target_pipeline(Target(AMX))(tedsl.lower(s, args)["main"])


def calls(func):
    return [node for node in post_order(func.body) if getattr(node, "op", None) is TILE_PRODUCT]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_interpreter_knows_the_call(shape, kinds):
    s, args = product(*shape, kinds)
    func = lowered(s, args)
    assert len(calls(func)) == 1
    x, y, wanted, size = arrays(*shape, kinds)
    out = np.ones(shape[:2], "float32" if kinds[0] == "bfloat16" else "int32")
    interpret(func, [x, y, out])
    same(out, wanted, size)


@here
@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_processor_does_the_same(shape, kinds):
    s, args = product(*shape, kinds)
    kernel = tedsl.build(s, args)
    assert KINDS[kinds] in kernel.get_source("asm")
    x, y, wanted, size = arrays(*shape, kinds)
    out = np.ones(shape[:2], "float32" if kinds[0] == "bfloat16" else "int32")
    kernel(x, y, out)
    same(out, wanted, size)


@pytest.mark.parametrize("tall, wide", [(7, None), (32, 32), (None, 5), (40, 48)])
def test_guards_end_the_rows_and_the_columns(tall, wide):
    m, n, k = 67, 53, 72
    s, args = product(m, n, k, tall=tall, wide=wide)
    func = lowered(s, args)
    assert calls(func)
    x, y, wanted, _ = arrays(m, n, k, ("uint8", "int8"))
    runs = [lambda *given: interpret(func, given)]
    if Target("llvm").multiplies_tiles("uint8", "int8"):
        runs.append(tedsl.build(s, args))
    for kernel in runs:
        out = np.ones((m, n), "int32")
        kernel(x, y, out)
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("order", ["".join(order) for order in itertools.permutations("ikjr")])
def test_loops_in_any_order(order):
    s, args = product(9, 18, 24, order=order)
    func = lowered(s, args)
    assert len(calls(func)) == 1
    x, y, wanted, _ = arrays(9, 18, 24, ("uint8", "int8"))
    out = np.ones((9, 18), "int32")
    interpret(func, [x, y, out])
    np.testing.assert_array_equal(out, wanted)


def test_loops_stay_where_the_target_has_no_tiles():
    s, args = product(20, 20, 16)
    for target in WITHOUT:
        assert not calls(target_pipeline(Target(target))(tedsl.lower(s, args)["main"]))
    x, y, wanted, _ = arrays(20, 20, 16, ("uint8", "int8"))
    out = np.ones((20, 20), "int32")
    tedsl.build(s, args, "llvm -mtriple=x86_64-linux-gnu")(x, y, out)
    np.testing.assert_array_equal(out, wanted)


def test_arrays_that_may_overlap_keep_their_loops():
    s, args = product(20, 20, 16)
    func = tedsl.lower(s, args)["main"].with_attr("tir.noalias", False)
    assert not calls(target_pipeline(Target(AMX))(func))


def test_what_is_no_product_is_refused():
    a = te.placeholder((8, 16), "uint8", name="a")
    p = te.reduce_axis((0, 16), name="p")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, p].astype("int32") * a[j, p].astype("int32"), axis=p), name="c")
    s = te.create_schedule(c.op)
    s[c].pragma(c.op.axis[0], "tile_products")
    with pytest.raises(LoweringError, match="over 4 neighbours, which are added at once") as refused:
        tedsl.build(s, [a, c], AMX)
    assert "k split by g (4 bytes, or 2 bfloat16)" in str(refused.value)

    s, args = product(8, 8, 8)
    s[args[2]].vectorize(s[args[2]].leaf_iter_vars[2])
    with pytest.raises(LoweringError, match="serial loops, conditions of their ends and sums of single elements"):
        tedsl.build(s, args, AMX)


@pytest.mark.parametrize("target", [AMX, WITHOUT[0]])
@pytest.mark.parametrize("kinds, of", [
    (("int16", "int8"), "int32"), (("float32", "float32"), "float32"), (("int8", "int8"), "int64")])
def test_products_of_other_numbers_are_refused(kinds, of, target):
    """They kept their loops, and nothing said why."""
    a, b = te.placeholder((8, 16), kinds[0], name="a"), te.placeholder((4, 8, 4), kinds[1], name="b")
    p = te.reduce_axis((0, 16), name="p")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, p].astype(of) * b[p // 4, j, p % 4].astype(of), axis=p), name="c")
    s = te.create_schedule(c.op)
    steps, inside = s[c].split(p, factor=4)
    s[c].reorder(c.op.axis[0], steps, c.op.axis[1], inside)
    s[c].pragma(c.op.axis[0], "tile_products")
    with pytest.raises(LoweringError, match="neither adds a product of two bytes to 32 bits or of bfloat16 to float32"):
        tedsl.build(s, [a, b, c], target)


def test_loops_by_hand_that_tiles_would_change_are_refused():
    """Rows that have elements in common, and zeros behind the sums."""
    a, b, c = (tir.decl_buffer((256,), of, name=name) for name, of in (("a", "uint8"), ("b", "int8"), ("c", "int32")))
    i, j, k, r = (tir.Var(name, "int32") for name in "ijkr")

    def program(row, zeros_behind):
        at = i * row + j
        value = a.vload([i * 16 + k * 4 + r]).astype("int32") * b.vload([k * 32 + j * 4 + r]).astype("int32")
        body = tir.BufferStore(c, c.vload([at]) + value, [at])
        for var, extent in ((r, 4), (j, 8), (k, 4)):
            body = tir.For(var, 0, extent, tir.ForKind.SERIAL, body)
        zero = tir.For(j, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(c, tir.const(0, "int32"), [at]))
        body = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.SeqStmt([body, zero] if zeros_behind else [zero, body]))
        func = tir.PrimFunc([a, b, c], tir.AttrStmt(i, "pragma_tile_products", tir.const(1, "int32"), body))
        return func.with_attr("tir.noalias", True)

    assert "tdpbusd" in tedsl.build(program(8, False), target=AMX).get_source("asm")
    with pytest.raises(LoweringError, match="rows and columns have elements in common"):
        tedsl.build(program(1, False), target=AMX)
    with pytest.raises(LoweringError, match="zero after products were added"):
        tedsl.build(program(8, True), target=AMX)


def test_a_call_by_hand_says_what_it_takes():
    c, a, b = (tir.decl_buffer((64,), of, name=name) for name, of in (("c", "float32"), ("a", "uint8"), ("b", "int8")))
    places = [tir.address_of(buffer.vload([0], buffer.dtype)) for buffer in (c, a, b)]
    with pytest.raises(TedslError, match="of sums of 32 bits and of narrow numbers"):
        tir.call_intrin("int32", "tir.tile_product", *places, 1, 1, 4, 1, 32, 4, 4, 128, 1)
    with pytest.raises(TedslError, match="nine integers"):
        tir.call_intrin("int32", "tir.tile_product", *places, 1, 1)


# --- topi ---------------------------------------------------------------------------------------------------------------

def gives(kernel, left, right, wanted):
    """Checks what a kernel gives for two arrays."""
    result = np.ones(wanted.shape, "int32")
    kernel(left, right, result)
    np.testing.assert_array_equal(result, wanted)


CASES = [(33, 70, 68), (12, 65, 512), (100, 200, 60), (200, 40, 128), (65, 200, 128)]


def by_schedule(make, *given):
    """Runs an operator by its schedule for AMX: in the interpreter, and on the processor if it has tiles."""
    inputs = [te.placeholder(x.shape, "bfloat16" if x.dtype == "uint16" else str(x.dtype), name=f"x{k}")
              for k, x in enumerate(given)]
    with Target(AMX):
        out = make(*inputs)
        s = topi.schedules.schedule([out])
    func = lowered(s, [*inputs, out])
    assert calls(func)
    kernels = [lambda *held: interpret(func, held)]
    if Target("llvm").multiplies_tiles("uint8", "int8"):
        kernels.append(tedsl.build(s, [*inputs, out], AMX))
    for kernel in kernels:
        result = np.ones([int(n) for n in out.shape], str(out.dtype))
        kernel(*given, result)
        yield result


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("shape", CASES, ids=str)
def test_dense_of_bytes(shape, follows):
    m, n, k = shape
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (m, k), "uint8"), rng.integers(-128, 128, (n, k), "int8")
    wanted = x.astype("int64") @ w.T

    def make(x, w):
        out = topi.nn.dense(x, w, out_dtype="int32")
        return topi.nn.relu(out) if follows else out

    for out in by_schedule(make, x, w):
        np.testing.assert_array_equal(out, np.maximum(wanted, 0) if follows else wanted)


@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)), ids=str)
def test_products_of_bfloat16(transposed):
    m, n, k = 40, 72, 96
    (x, left), (y, right) = bits(m, k), bits(k, n, seed=1)
    given = [np.ascontiguousarray(v.T) if turned else v for v, turned in zip((x, y), transposed)]
    for out in by_schedule(lambda a, b: topi.nn.matmul(a, b, None, "float32", *transposed), *given):
        same(out, left.astype("float64") @ right, np.abs(left) @ np.abs(right))


@pytest.mark.parametrize("follows", [False, True])
def test_weights_that_are_packed_before(follows):
    m, n, k = 50, 70, 128
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (m, k), "uint8"), rng.integers(-128, 128, (n, k), "int8")
    a, b = te.placeholder(x.shape, "uint8", name="a"), te.placeholder(w.shape, "int8", name="b")

    def layer(x, w):
        out = topi.nn.dense(x, w, out_dtype="int32")
        return topi.nn.relu(out) if follows else out

    asked = panels_in([layer(a, b)], AMX)[b]
    assert asked == (32, 4)
    panels = run(topi.nn.dense_pack_weights(b, asked.results, group=asked.group), {b: w})
    wanted = x.astype("int64") @ w.T
    for out in by_schedule(lambda x, p: layer(x, topi.nn.dense_unpack_weights(p, n)), x, panels):
        np.testing.assert_array_equal(out, np.maximum(wanted, 0) if follows else wanted)
    assert asked != panels_in([layer(a, b)], WITHOUT[0]).get(b)


def test_groups_that_leave_a_rest_are_refused():
    with pytest.raises(ShapeError, match="groups of 4 leave a rest of 6 terms"):
        topi.nn.dense_pack_weights(te.placeholder((8, 6), "int8"), 32, group=4)


def test_strides_that_are_variables_keep_their_loops():
    """A function of any batch has a version for compact arrays, which uses tiles, and one for others."""
    n = te.size_var("n")
    a, b = te.placeholder((n, 40, 64), "int8", name="a"), te.placeholder((n, 50, 64), "int8", name="b")
    with Target(AMX):
        out = topi.nn.batch_matmul(a, b, out_dtype="int32")
        s = topi.schedules.schedule([out])
    kernel = tedsl.build(s, [a, b, out], AMX)
    assert "tdpbssd" in kernel.get_source("asm")
    if not Target("llvm").multiplies_tiles("int8", "int8"):
        return
    rng = np.random.default_rng(0)
    for count in (0, 1, 3):
        x, y = rng.integers(-128, 128, (count, 40, 128), "int8"), rng.integers(-128, 128, (count, 50, 64), "int8")
        for given in (np.ascontiguousarray(x[:, :, :64]), x[:, :, :64], x[:, :, ::2]):
            gives(kernel, given, y, given.astype("int64") @ y.transpose(0, 2, 1))


@pytest.mark.parametrize("batch", [False, True])
def test_any_number_of_rows(batch):
    m = te.size_var("m")
    a, b = te.placeholder((2, m, 64) if batch else (m, 64), "uint8", name="a"), \
        te.placeholder((2, 70, 64) if batch else (70, 64), "int8", name="b")
    with Target(AMX):
        out = (topi.nn.batch_matmul if batch else topi.nn.dense)(a, b, out_dtype="int32")
        s = topi.schedules.schedule([out])
    kernel = tedsl.build(s, [a, b, out], AMX)
    assert "tdpbusd" in kernel.get_source("asm")
    if not Target("llvm").multiplies_tiles("uint8", "int8"):
        return
    rng = np.random.default_rng(0)
    for rows in (0, 1, 16, 33, 100):
        shape = (2, rows, 64) if batch else (rows, 64)
        x, y = rng.integers(0, 256, shape, "uint8"), rng.integers(-128, 128, (2, 70, 64) if batch else (70, 64), "int8")
        gives(kernel, x, y, x.astype("int64") @ np.swapaxes(y, -1, -2))


def test_batches():
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (3, 40, 64), "uint8"), rng.integers(-128, 128, (3, 50, 64), "int8")
    for out in by_schedule(lambda x, w: topi.nn.batch_matmul(x, w, out_dtype="int32"), x, w):
        np.testing.assert_array_equal(out, x.astype("int64") @ w.transpose(0, 2, 1))


@pytest.mark.parametrize("size, channels, filters, window, stride", [
    (9, 16, 40, 3, 1), (14, 136, 33, 1, 1), (13, 32, 16, 3, 2), (7, 256, 70, 1, 2)])
def test_convolutions(size, channels, filters, window, stride):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (2, size, size, channels), "uint8")
    w = rng.integers(-128, 128, (window, window, channels, filters), "int8")
    edge = window // 2
    padded = np.pad(x.astype("int64"), ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    count = (size + 2 * edge - window) // stride + 1
    taken = [slice(at, at + (count - 1) * stride + 1, stride) for at in range(window)]
    wanted = sum(padded[:, taken[r], taken[q]] @ w[r, q].astype("int64") for r in range(window) for q in range(window))
    for out in by_schedule(lambda x, w: topi.nn.conv2d(x, w, stride, edge, 1, "NHWC", "int32"), x, w):
        np.testing.assert_array_equal(out, wanted)


# --- shapes, strides and checks at run time -------------------------------------------------------------------------------


def test_every_access_is_checked_in_loops():
    s, args = product(9, 18, 24)
    x, y, wanted, _ = arrays(9, 18, 24, ("uint8", "int8"))
    out = np.ones((9, 18), "int32")
    tedsl.build(s, args, AMX if Target("llvm").multiplies_tiles("uint8", "int8") else "llvm", checked=True)(x, y, out)
    np.testing.assert_array_equal(out, wanted)
    assert "tdpb" not in tedsl.build(s, args, AMX, checked=True).get_source("asm")


@pytest.mark.parametrize("n, k", [(48, 64), (65, 132), (512, 512), (0, 64)])
def test_rows_that_are_known_at_run_time(n, k):
    """With panels of which the last are fewer, and with arrays whose rows are apart."""
    rows = te.var("m")
    x, w = te.placeholder((rows, k), "uint8", name="x"), te.placeholder((n, k), "int8", name="w")
    with Target(AMX):
        out = topi.nn.dense(x, w, out_dtype="int32")
        s = topi.schedules.schedule([out])
    assert ("tdpbusd" in tedsl.build(s, [x, w, out], AMX).get_source("asm")) == (n > 0)
    if Target("llvm").multiplies_tiles("uint8", "int8"):
        kernel, rng = tedsl.build(s, [x, w, out], AMX), np.random.default_rng(0)
        for m in (1, 33, 70):
            b = rng.integers(-128, 128, (n, k), "int8")
            for a in (rng.integers(0, 256, (m, k), "uint8"), rng.integers(0, 256, (m, 2 * k), "uint8")[:, ::2]):
                gives(kernel, a, b, a.astype("int64") @ b.T)


@pytest.mark.parametrize("symbolic", ["n", "h", "w", "nh"])
@pytest.mark.parametrize("window", [1, 3])
def test_images_whose_sizes_are_known_at_run_time(symbolic, window):
    """Batches and rows; windows step by rows of a width that is known."""
    sizes = [te.var(name) if name in symbolic else size for name, size in zip("nhw", (2, 14, 14))]
    x, w = te.placeholder((*sizes, 64), "uint8", name="x"), te.placeholder((window, window, 64, 40), "int8", name="w")
    with Target(AMX):
        out = topi.nn.conv2d(x, w, 1, 0, 1, "NHWC", "int32")
        s = topi.schedules.schedule([out])
    kernel = tedsl.build(s, [x, w, out], AMX)
    assert ("tdpbusd" in kernel.get_source("asm")) == ("w" not in symbolic)
    if Target("llvm").multiplies_tiles("uint8", "int8"):
        rng, count = np.random.default_rng(0), 15 - window
        a, b = rng.integers(0, 256, (2, 14, 14, 64), "uint8"), rng.integers(-128, 128, (window, window, 64, 40), "int8")
        wanted = sum(a[:, r:r + count, q:q + count].astype("int64") @ b[r, q] for r in range(window) for q in range(window))
        gives(kernel, a, b, wanted)


@pytest.mark.parametrize("which", ["x", "w", "xw"])
@pytest.mark.parametrize("target, instruction", [(AMX, "tdpbssd"), (WITHOUT[0], "vpdpbusd")])
def test_operands_that_are_rounded_before(target, instruction, which):
    """Operations with others inlined into them, as those that make numbers narrow."""
    def narrow(x):
        return topi.cast(topi.clip(topi.right_shift(x, te.const(3, "int32")), -128, 127), "int8")

    def kernel(x_shape, w_shape, make):
        x, w = (te.placeholder(shape, "int32" if name in which else "int8", name=name)
                for name, shape in (("x", x_shape), ("w", w_shape)))
        with Target(target):
            out = make(*(narrow(of) if of.op.name in which else of for of in (x, w)))
            s = topi.schedules.schedule([out])
        return tedsl.build(s, [x, w, out], target)

    convolution = kernel((1, 9, 9, 64), (3, 3, 64, 64), lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1, "NHWC", "int32"))
    assert instruction in convolution.get_source("asm")
    product = kernel((40, 128), (70, 128), lambda x, w: topi.nn.dense(x, w, out_dtype="int32"))
    assert instruction in product.get_source("asm")
    if Target("llvm").multiplies_tiles("uint8", "int8"):
        rng = np.random.default_rng(0)
        given = [rng.integers(*((-1200, 1200, (n, 128), "int32") if name in which else (-128, 128, (n, 128), "int8")))
                 for name, n in (("x", 40), ("w", 70))]
        left, right = (np.clip(v >> 3, -128, 127) if name in which else v for name, v in zip("xw", given))
        gives(product, *given, left.astype("int64") @ right.T)

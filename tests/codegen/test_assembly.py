"""What instructions come out: vectors, masks instead of branches, no calls, for each kind of processor."""

import re

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.codegen.llvm.effort import needs_vectorizer
from tedsl.codegen.llvm.linking.elf import undefined_symbols
from tedsl.codegen.llvm.machine import check_symbols
from tedsl.errors import InternalError
from tedsl.ir import build
from tedsl.ir.dtype import dtype
from tedsl.ir.expr import Broadcast, Call, Cast, Load, Max, Min, Ramp, Select, Var, pointer_var
from tedsl.ir.ops import Op
from tedsl.ir.stmt import Allocate, For, ForKind, Store, seq
from tests.codegen.kernels import ARM, AVX2, AVX512, PLAIN, Kernel, array, const, elementwise, function, splat

ALL = [PLAIN, AVX2, AVX512, ARM]
REGISTERS = {PLAIN: "xmm", AVX2: "ymm", AVX512: "zmm", ARM: r"v\d+\.4s"}
IDS = ["x86-64", "AVX2", "AVX-512", "AArch64"]
EVERYWHERE = pytest.mark.parametrize("target", ALL, ids=IDS)


def branches(text):
    """The jumps of a function, without those of the loop itself (backwards)."""
    seen, found = set(), []
    for line in text.splitlines():
        if match := re.match(r"(\.L\w+):", line):
            seen.add(match[1])
        elif match := re.match(r"\s+(j\w+|b\.?\w*|cbn?z|tbn?z)\s+.*?(\.L\w+)", line):
            if match[2] not in seen:
                found.append(line.strip())
    return found


def body(target, formula, of="float32", lanes=None, inputs=1, out_dtype=None):
    lanes = lanes or target.vector_lanes(dtype(of))
    kernel = Kernel(elementwise(formula, [of] * inputs, out_dtype or of, lanes, lanes * 61), target)  # 61: one by one
    return kernel, kernel.assembly()


@EVERYWHERE
def test_addition_uses_the_widest_vectors(target):
    kernel, text = body(target, build.add, inputs=2)
    assert re.search(REGISTERS[target], text) and not branches(text)
    assert undefined_symbols(kernel.image) == []


ONE = lambda name: lambda v: Call(v.dtype, Op.get(f"tir.{name}"), (v,))
TO = lambda of: lambda v: Cast(dtype(of).with_lanes(v.dtype.lanes), v)


@EVERYWHERE
@pytest.mark.parametrize("source, of", [("float32", "int32"), ("float32", "int8"), ("float32", "uint8"), ("float16", "int16"),
                                        ("float64", "int32")])
def test_vectors_of_floats_become_integers_without_branches(source, of, target):
    _, text = body(target, TO(of), source, lanes=8, out_dtype=of)
    assert not branches(text)


@EVERYWHERE
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "nearbyint", "round", "sqrt", "fabs", "exp", "tanh", "log"])
@pytest.mark.parametrize("of", ["float32", "float64", "float16", "bfloat16"])
def test_functions_are_vector_code_without_calls(name, of, target):
    kernel, text = body(target, ONE(name), of, lanes=8)
    assert undefined_symbols(kernel.image) == [] and not branches(text)


@EVERYWHERE
@pytest.mark.parametrize("source, to", [
    ("float32", "float16"), ("float16", "float32"), ("float64", "float16"), ("float64", "bfloat16"), ("int64", "bfloat16"),
    ("uint64", "float16"), ("float32", "int8"), ("float64", "uint64"), ("bfloat16", "uint32"), ("uint64", "float32"),
    ("int32", "float16")])
def test_conversions_are_written_out(source, to, target):
    for lanes in (1, 8):
        kernel, text = body(target, TO(to), source, lanes, out_dtype=to)
        assert undefined_symbols(kernel.image) == []
        assert "call" not in text.replace("callee", "") and not re.search(r"\tbl\t", text)


@EVERYWHERE
@pytest.mark.parametrize("kind", [Min, Max])
def test_extrema_with_a_constant_are_one_or_two_instructions(kind, target):
    _, general = body(target, kind, inputs=2)  # a comparison more, for NaN
    _, text = body(target, lambda v: kind(v, splat(1.5, "float32", v.dtype.lanes)))
    if target is not ARM:
        name = ("min" if kind is Min else "max") + "ps"
        assert len(re.findall(name, text)) == 1 and "cmp" not in re.sub(r"\tcmpq.*", "", text)
        assert "unord" in general and len(re.findall(name, general)) == 1 and "cmplt" not in general


@pytest.mark.parametrize("target, loads", [(AVX2, "vmaskmovps"), (AVX512, "{%k")], ids=["AVX2", "AVX-512"])
def test_tails_are_masked(target, loads):
    lanes = target.vector_lanes(dtype("float32"))
    a, b, n, i = array("a", (100,), "float32"), array("b", (100,), "float32"), Var("m"), Var("i")
    at = Ramp(build.mul(i, lanes), const(1), lanes)
    mask = build.less(at, Broadcast(n, lanes))
    load = Load(dtype("float32").with_lanes(lanes), a[1].data, at, mask)
    loop = For(i, const(0), build.floordiv(build.add(n, lanes - 1), lanes), ForKind.SERIAL, Store(b[1].data, load, at, mask))
    kernel = Kernel(function(loop, a, b, n), target)
    text = kernel.assembly()
    assert loads in text and len(branches(text)) <= 1  # whether there is an iteration
    # the mask is one comparison of small constants with a broadcast, not of 64-bit indices
    assert f"icmp slt <{lanes} x i32>" in kernel.text and f"<{lanes} x i64>" not in kernel.text


@pytest.mark.parametrize("lanes", [5, 12, 14])
def test_a_vector_of_any_number_of_lanes_is_one_load_by_a_mask(lanes):
    a, b, at = array("a", (64,), "float32"), array("b", (16,), "float32"), Ramp(const(0), const(1), lanes)
    load = Load(dtype("float32").with_lanes(lanes), a[1].data, Ramp(const(3), const(1), lanes))
    text = Kernel(function(Store(b[1].data, build.mul(load, load), at), a, b), AVX512).assembly()
    assert len(re.findall(r"{%k[0-7]} {z}", text)) == 1 and text.count("vmulps") == 1


def test_byte_tails_are_masked_by_bytes():
    a, b, n = array("a", (64,), "int8"), array("b", (64,), "int8"), Var("n")
    at = Ramp(const(0), const(1), 64)
    mask = build.less(at, Broadcast(n, 64))
    kernel = Kernel(function(Store(b[1].data, Load(dtype("int8x64"), a[1].data, at, mask), at, mask), a, b, n), AVX512)
    assert "icmp slt <64 x i8>" in kernel.text and "vmovdqu8" in kernel.assembly()


@pytest.mark.parametrize("stride, shuffles", [(2, 1), (3, 2), (-2, 2)])
def test_every_second_element_is_picked_from_contiguous_loads(stride, shuffles):
    a, b = array("a", (1000,), "float32"), array("b", (16,), "float32")
    load = Load(dtype("float32x16"), a[1].data, Ramp(const(100), const(stride), 16))
    kernel = Kernel(function(Store(b[1].data, load, Ramp(const(0), const(1), 16)), a, b), AVX512)
    assert "gather" not in kernel.text and kernel.text.count("shufflevector") == shuffles
    assert kernel.text.count("load <16 x float>") == abs(stride)


@pytest.mark.parametrize("lanes, masked", [(16, True), (11, False), (8, True)])
def test_elements_that_a_mask_turns_on_are_picked_from_contiguous_loads(lanes, masked):
    """A gather accesses each lane, and vectors of eleven elements were put together from twos."""
    a, b, n = array("a", (1000,), "float32"), array("b", (16,), "float32"), Var("n")
    on = build.less(Ramp(const(0), const(1), lanes), Broadcast(n, lanes)) if masked else None
    load = Load(dtype(f"float32x{lanes}"), a[1].data, Ramp(const(100), const(2), lanes), on)
    kernel = Kernel(function(Store(b[1].data, load, Ramp(const(0), const(1), lanes), on), a, b, n), AVX512)
    text = kernel.assembly()
    assert "gather" not in kernel.text and kernel.text.count("llvm.masked.load") == 3  # declared, and called for both vectors
    assert "vinsertps" not in text and "vmovsd" not in text and re.search(r"vperm[it]2ps|vshufps", text)


def test_gathers_take_32_bit_indices():
    a, x, b = array("a", (1000,), "float32"), array("x", (16,), "int32"), array("b", (16,), "float32")
    at = Ramp(const(0), const(1), 16)
    index = Max(Min(Load(dtype("int32x16"), x[1].data, at), Broadcast(const(999), 16)), Broadcast(const(0), 16))
    kernel = Kernel(function(Store(b[1].data, Load(dtype("float32x16"), a[1].data, index), at), a, x, b), AVX512)
    text = kernel.assembly()
    assert text.count("vgatherdps") == 1 and "vgatherqps" not in text


@EVERYWHERE
def test_masked_lanes_without_masked_instructions_have_no_branches(target):
    a, b, n = array("a", (8,), "int16"), array("b", (8,), "int16"), Var("n")
    at = Ramp(const(0), const(1), 8)
    mask = build.less(at, Broadcast(n, 8))
    store = Store(b[1].data, Load(dtype("int16x8"), a[1].data, at, mask), at, mask)
    assert not branches(Kernel(function(store, a, b, n), target).assembly())


def test_accumulators_live_in_registers():
    """A 4x2 tile of a matrix product: no store but the last, and one fma per accumulator and k, four k in an iteration."""
    f32, lanes = dtype("float32"), 16
    a, b, c = array("a", (256,), f32), array("b", (64 * 32,), f32), array("c", (4 * 32,), f32)
    k, acc = Var("k"), pointer_var("acc", f32)
    tiles = [(r, h) for r in range(4) for h in range(2)]
    at = lambda r, h: Ramp(const((2 * r + h) * lanes), const(1), lanes)
    vector = lambda buffer, index: Load(f32.with_lanes(lanes), buffer, index)

    def step(r, h):
        left = Broadcast(Load(f32, a[1].data, build.add(k, 64 * r)), lanes)
        right = vector(b[1].data, Ramp(build.add(build.mul(k, 32), 16 * h), const(1), lanes))
        return Store(acc, Call(left.dtype, Op.get("tir.fma"), (left, right, vector(acc, at(r, h)))), at(r, h))
    body = Allocate(acc, f32, (const(128),), build.true(), seq(
        *(Store(acc, Broadcast(const(0.0, "float32"), lanes), at(r, h)) for r, h in tiles),
        For(k, const(0), const(64), ForKind.SERIAL, seq(*(step(r, h) for r, h in tiles))),
        *(Store(c[1].data, vector(acc, at(r, h)), at(r, h)) for r, h in tiles)))
    func = function(body, a, b, c)
    assert not needs_vectorizer(func)
    text = Kernel(func, AVX512).assembly()
    loop = text[text.index(".LBB0_1:"):]
    loop = loop[:re.search(r"\tj\w+\t\.LBB0_1", loop).start()]
    assert loop.count("vfmadd231ps") == 4 * 8 and not re.search(r"vmovups\t%zmm\d+, ", loop) and "rsp" not in loop


def test_invariant_addresses_leave_the_loop():
    i, j, n, m = Var("i"), Var("j"), Var("n"), Var("m")
    a, b = array("a", (n, m), "float32"), array("b", (n,), "float32")
    at = Ramp(build.add(build.mul(i, m), build.mul(j, 8)), const(1), 8)
    store = Store(b[1].data, Load(dtype("float32x8"), a[1].data, at), Ramp(build.mul(j, 8), const(1), 8))
    inner = For(j, const(0), build.floordiv(m, 8), ForKind.SERIAL, store)
    text = Kernel(function(For(i, const(0), n, ForKind.SERIAL, inner), a, b), AVX2).text
    inside = text[text.index("\nloop.1:"):text.index("\ndone.1:")]
    assert "mul i64 %i," not in inside and "sdiv" not in inside


def test_an_invariant_choice_of_places_leaves_the_loop():
    i, j, n = Var("i"), Var("j"), Var("n")
    a, b = array("a", (n, 64), "float32"), array("b", (64,), "float32")
    first = Select(build.less(i, 5), build.mul(i, 64), build.mul(build.sub(n, i), 64))
    at = Ramp(build.add(first, build.mul(j, 8)), const(1), 8)
    store = Store(b[1].data, Load(dtype("float32x8"), a[1].data, at), Ramp(build.mul(j, 8), const(1), 8))
    inner = For(j, const(0), const(8), ForKind.SERIAL, store)
    text = Kernel(function(For(i, const(0), n, ForKind.SERIAL, inner), a, b), AVX2).text
    inside = text[text.index("\nloop.1:"):text.index("\ndone.1:")]
    assert "select" in text and "select" not in inside and "icmp slt i64 %i," not in inside


def test_which_functions_want_the_loop_vectorizer():
    scalar = elementwise(build.add, ["float32"] * 2, "float32", 1, 1024)
    shaped = elementwise(build.add, ["float32"] * 2, "float32", 16, 1024)
    assert needs_vectorizer(scalar) and not needs_vectorizer(shaped)
    assert "zmm" in Kernel(scalar, AVX512).assembly()


def test_a_symbol_that_nobody_declared_is_our_bug():
    kernel, _ = body(PLAIN, build.add, inputs=2)
    check_symbols(kernel.image, set())
    math = Kernel(elementwise(lambda v, w: build.call("tir.fmod", v, w), ["float32"] * 2, "float32", 1, 8), PLAIN)
    with pytest.raises(InternalError, match="the object calls fmodf"):
        check_symbols(math.image, set())


def test_llvm_intrinsics_by_name():
    from tedsl.errors import LoweringError
    from tedsl.ir.expr import StringImm

    call = lambda name: lambda v: Call(v.dtype, Op.get("tir.call_llvm_pure_intrin"), (StringImm(name), v))
    kernel, _ = body(AVX2, call("llvm.bitreverse"), "int32")
    assert "llvm.bitreverse" in kernel.text
    assert "vrcpps" in body(AVX2, call("llvm.x86.avx.rcp.ps.256"))[1]
    for name, words in (("sinf", "names an intrinsic of LLVM, not 'sinf'"),
                        ("llvm.frobnicate", "programs may not call llvm.frobnicate: .* do not exist"),
                        ("llvm.aarch64.neon.frecpe", "cannot be called"), ("llvm.x86.avx.rcp.ps.256", "needs avx")):
        with pytest.raises(LoweringError, match=words):
            body(PLAIN, call(name))


@EVERYWHERE
@pytest.mark.parametrize("of", ["float32", "uint8"])
def test_lanes_that_share_elements_are_loaded_once(of, target):
    """An image twice as wide was gathered, or loaded lane by lane."""
    a, b, i = array("a", (256,), of), array("b", (512,), of), Var("i")
    half = build.add(Broadcast(build.mul(i, 8), 16), build.floordiv(Ramp(const(0), const(1), 16), Broadcast(const(2), 16)))
    store = Store(b[1].data, Load(dtype(of).with_lanes(16), a[1].data, half), Ramp(build.mul(i, 16), const(1), 16))
    text = Kernel(function(For(i, const(0), const(32), ForKind.SERIAL, store), a, b), target).assembly()
    assert not re.search("gather|insert|pinsr", text) and not branches(text)


def sums_of(shape):
    a, b = (te.placeholder(shape, name=name) for name in "ab")
    c = te.compute(shape, lambda *at: a[at] + b[at], name="c")
    return tedsl.build(te.create_schedule(c.op), [a, b, c])


def test_a_version_for_strides_that_never_runs_is_not_made():
    """Of arrays of one dimension that are not compact, one has a stride other than 1; rows of a table may have none."""
    n, m = te.var("n"), te.var("m")
    scalar = '!"llvm.loop.vectorize.enable", i1 false'
    assert scalar in sums_of((n,)).get_source("ll")
    assert scalar not in sums_of((n, m)).get_source("ll")
    whole = np.arange(600, dtype="float32")
    for a, b in [(whole[:100], whole[::6]), (whole[::-6], whole[::3][:100]), (whole[:100], whole[500:])]:
        out = np.zeros(100, "float32")
        sums_of((n,))(a, b, out)
        np.testing.assert_array_equal(out, a + b)

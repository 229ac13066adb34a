"""Operators called by name with dtypes that they do not take or give: wrong values, writes beyond arrays, an abort."""

import itertools

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import DTypeError, InternalError, LoweringError, TedslError
from tedsl.ir.calls.signatures import SIGNATURES, misfit
from tedsl.ir.evaluate import run
from tedsl.ir.ops import BITS_BINARY, BITS_UNARY, CLASSIFY, MATH_BINARY, MATH_UNARY, OPS

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "float32", "float64")
VALUES = (MATH_UNARY, MATH_BINARY, CLASSIFY, BITS_UNARY, BITS_BINARY, ("fma", "likely", "if_then_else", "reinterpret"))
NAMES = [name for group in VALUES for name in group]


def inputs(arity, of):
    """Different arrays of small numbers for each argument."""
    return [np.array([1, 2, 3, 1, 2, 3, 1, 0]).astype(of) for _ in range(arity)] if of != "bool" else \
        [np.arange(8) % 2 == k % 2 for k in range(arity)]


def guarded(of):
    """An output of 8 elements with a border, and the border's bytes."""
    whole = np.zeros(24, of)
    whole.view("uint8")[:] = 1
    return whole, whole[8:16]


def compiled(formula, arrays, of, *, vectorize=False):
    """What a compute of `formula` gives, the same as the interpreter, and nothing around the output is touched."""
    sources = [te.placeholder((8,), str(a.dtype), name=f"p{k}") for k, a in enumerate(arrays)]
    z = te.compute((8,), lambda i: formula(*[p[i] for p in sources]), name="Z")
    assert z.dtype == of
    s = te.create_schedule(z.op)
    if vectorize:
        s[z].vectorize(z.op.axis[0])
    whole, out = guarded(of)
    tedsl.build(s, [*sources, z])(*arrays, out)
    border = np.concatenate([whole[:8], whole[16:]]).view("uint8")
    assert (border == 1).all(), "something beside the output was written"
    known = np.zeros(8, of)
    run(tedsl.lower(s, [*sources, z])["main"], [*arrays, known])
    if np.dtype(of).kind == "f":
        np.testing.assert_allclose(out, known, rtol=2e-3 if of == "float16" else 1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(out, known)
    return out


def test_every_operator_has_a_rule():
    assert set(SIGNATURES) == {name.removeprefix("tir.") for name in OPS}


@pytest.mark.parametrize("name", NAMES)
def test_every_result_dtype_is_refused_or_right(name):
    """call_intrin itself says no, or the machine computes what the interpreter does: no result of another width."""
    arity = OPS[f"tir.{name}"].arity
    accepted = []
    for given, of in itertools.product(DTYPES, DTYPES):
        first = ["bool"] if name == "if_then_else" else []
        operands = [*first, *[given] * (arity - len(first))] if name != "ldexp" else [given, "int32"]
        args = [te.var(f"x{k}", d) for k, d in enumerate(operands)]
        try:
            tir.call_intrin(of, f"tir.{name}", *args)
        except DTypeError as error:
            assert name in str(error) and of in str(error)
        else:
            accepted.append((operands, of))
    assert accepted and len(accepted) < len(DTYPES) ** 2
    for operands, of in accepted[:: 1 + len(accepted) // 8]:
        arrays = [inputs(2, d)[k % 2] for k, d in enumerate(operands)]
        compiled(lambda *a, of=of: tir.call_intrin(of, f"tir.{name}", *a), arrays, of)


REPORTED = [
    ("float32", "isnan", ["float32"]), ("int64", "isinf", ["float32"]), ("int8", "isfinite", ["float32"]),
    ("float32", "likely", ["bool"]), ("bool", "likely", ["int64"]), ("float16", "if_then_else", ["bool", "float32", "float32"]),
    ("float32", "if_then_else", ["int32", "float32", "float32"]), ("uint8", "trunc", ["float32"]), ("int32", "sqrt", ["int32"]),
    ("int32", "fabs", ["float32"]), ("float32", "exp", ["int32"]), ("int32", "bitwise_and", ["int64", "int64"]),
    ("int64", "shift_right", ["int32", "int32"]), ("float32", "pow", ["int32", "int32"]),
    ("float32", "pow", ["float32", "int32"]), ("float32x4", "exp", ["float32"]), ("float32", "ldexp", ["float32", "float32"]),
    ("int64", "reinterpret", ["float32"]), ("int8", "reinterpret", ["bool"]), ("int32x4", "popcount", ["int32"]),
    (None, "exp", ["float32"]), ("bool", "shift_left", ["bool", "bool"]),
]


@pytest.mark.parametrize("of, name, given", REPORTED, ids=lambda v: str(v))
def test_what_wrote_beyond_its_array_is_refused_where_it_is_written(of, name, given):
    args = [te.var(f"x{k}", d) for k, d in enumerate(given)]
    with pytest.raises(DTypeError, match=name):
        tir.call_intrin(of, f"tir.{name}", *args)


@pytest.mark.parametrize("of, name, given", REPORTED[:-2], ids=lambda v: str(v))
def test_a_call_node_written_by_hand_is_refused_by_te_compute(of, name, given):
    sources = [te.placeholder((8,), d, name=f"p{k}") for k, d in enumerate(given)]
    with pytest.raises(DTypeError, match=f"compute Z: {name} of"):
        te.compute((8,), lambda i: tir.Call(of, f"tir.{name}", [p[i] for p in sources]), name="Z")


def test_a_combiner_with_a_call_that_does_not_fit_is_refused():
    a, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), name="k")
    wrong = te.comm_reducer(lambda x, y: x + tir.Call("float32", "tir.isnan", [y]), lambda t: tir.const(0, dtype=t))
    with pytest.raises(DTypeError, match="isnan of float32 is float32"):
        te.compute((1,), lambda i: wrong(a[k], axis=k), name="Z")


def test_what_a_pass_of_the_user_breaks_does_not_become_machine_code():
    """A pass after lowering is not checked by te.compute; what it gives is."""
    a = te.placeholder((8,), name="A")
    z = te.compute((8,), lambda i: te.isnan(a[i]), name="Z")
    s = te.create_schedule(z.op)

    def wrong(node):
        if isinstance(node, tir.Call) and node.op.name == "tir.isnan":
            return tir.Call("bool", "tir.likely", node.args)
        return None

    @tir.transform.prim_func_pass(opt_level=0)
    def broken(func, mod, ctx):
        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, wrong, ["tir.Call"]))

    with tedsl.transform.PassContext(config={"tir.add_lower_pass": [(3, broken)]}), \
            pytest.raises(TedslError, match="likely of float32 is bool") as caught:
        tedsl.build(s, [a, z])
    assert not isinstance(caught.value, InternalError)


# --- what stays allowed -----------------------------------------------------------------------------------------------

def test_the_square_root_by_name():
    out = compiled(lambda x: tir.call_intrin("float32", "tir.sqrt", x), [np.full(8, 4, "float32")], "float32")
    assert out.tolist() == [2.0] * 8


@pytest.mark.parametrize("vectorize", [False, True])
def test_numbers_take_the_dtype_of_the_operands_beside_them(vectorize):
    x, n = np.full(8, 3, "float64"), np.full(8, 2**40 + 5, "int64")
    for formula, data, of, expected in [
            (lambda v: tir.call_intrin("float64", "tir.pow", v, 2), x, "float64", 9),
            (lambda v: tir.call_intrin("float64", "tir.pow", v, tir.const(2, "int32")), x, "float64", 9),
            (lambda v: tir.call_intrin("float64", "tir.if_then_else", v > 5, v, 0), x, "float64", 0),
            (lambda v: tir.call_intrin("float64", "tir.ldexp", v, 2), x, "float64", 12),
            (lambda v: tir.call_intrin("int64", "tir.shift_right", v, tir.const(2, "int32")), n, "int64", (2**40 + 5) >> 2),
            (lambda v: tir.call_intrin("int64", "tir.bitwise_and", v, 7), n, "int64", 5)]:
        assert (compiled(formula, [data], of, vectorize=vectorize) == expected).all()


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(DTypeError):
        tir.call_intrin("int8", "tir.bitwise_and", te.var("x", "int8"), 300)
    with pytest.raises(DTypeError):
        tir.call_intrin("int8", "tir.bitwise_and", te.var("x", "int8"), tir.const(300, "int32"))


def test_bits_of_signed_and_unsigned_integers_of_one_width():
    """LLVM's integers have no sign, so TVM took these."""
    a, b = np.array([-8, 7, -1, 0] * 2, "int32"), np.full(8, 2**32 - 2, "uint32")
    mixed = compiled(lambda x, y: tir.call_intrin("int32", "tir.bitwise_and", x, y), [a, b], "int32")
    np.testing.assert_array_equal(mixed, a & np.int32(-2))
    signed = compiled(lambda x: tir.call_intrin("uint32", "tir.shift_right", x, 1), [a], "uint32")
    np.testing.assert_array_equal(signed, (a >> 1).view("uint32"))
    bools = [np.arange(8) % 2 == 0, np.arange(8) > 3]
    both = compiled(lambda x, y: tir.call_intrin("bool", "tir.bitwise_and", x, y), bools, "bool")
    np.testing.assert_array_equal(both, bools[0] & bools[1])
    inverted = compiled(lambda x: tir.call_intrin("bool", "tir.bitwise_not", x), bools[:1], "bool")
    np.testing.assert_array_equal(inverted, ~bools[0])


@pytest.mark.parametrize("of", ["int8", "float64", "handle", None, "bool"])
@pytest.mark.parametrize("name", ["call_extern", "call_pure_extern", "call_packed", "call_llvm_intrin",
                                  "call_llvm_pure_intrin"])
def test_functions_outside_give_any_dtype(name, of):
    assert tir.call_intrin(of, f"tir.{name}", "f", te.var("x", "float32")).dtype == (of or "void")


def test_vectors_keep_their_lanes():
    x = te.var("x", "float32x4")
    for of, name, args in [("float32x4", "exp", [x]), ("boolx4", "isnan", [x]), ("int8x16", "reinterpret", [x]),
                           ("int64x2", "reinterpret", [x]), ("float32x4", "pow", [x, 2]),
                           ("int32x4", "popcount", [te.var("n", "int8x4")]),
                           ("float32x4", "if_then_else", [te.var("c", "bool"), x, x])]:
        made = tir.call_intrin(of, f"tir.{name}", *args)
        assert made.dtype == of and misfit(made) == ""
    with pytest.raises(DTypeError, match="isnan of float32x4 is bool:"):
        tir.call_intrin("bool", "tir.isnan", x)


def test_an_extern_function_that_does_not_fit_is_refused():
    """A vector for a function that gives one number became invalid LLVM IR: an InternalError."""
    a = te.placeholder((8,), name="A")
    z = te.compute((8,), lambda i: tir.call_pure_extern("float32", "powf", a[i], te.const(2)), name="Z")
    with pytest.raises(LoweringError, match="pow of float32, int32 is float32"):
        tedsl.build(te.create_schedule(z.op), [a, z])
    whole = tir.Broadcast(tir.const(1.0, "float32"), 4)
    z = te.compute((8,), lambda i: a[i] + tir.call_pure_extern("float32", "fdim", whole, a[i]), name="Z")
    with pytest.raises(LoweringError, match="its arguments have 4 lanes, the call has 1"):
        tedsl.build(te.create_schedule(z.op), [a, z])


# --- access_ptr -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("offset", [1.5, te.var("q", "float32"), True, te.var("c", "bool"), te.var("v", "int32x4"), "a"])
def test_the_offset_of_an_access_ptr_is_a_whole_number(offset):
    """A float offset ended in an AssertionError when the program was built."""
    with pytest.raises(DTypeError, match=r"access_ptr of buffer A: the offset .* not an integer"):
        tir.decl_buffer((16,), name="A").access_ptr("r", offset=offset)


@pytest.mark.parametrize("part", [2, 3, 4])
def test_the_numbers_of_a_tvm_access_ptr_are_integers(part):
    data = tir.decl_buffer((16,), name="A").data
    args = [tir.call_intrin("float32", "tir.type_annotation"), data, 0, 16, 1]
    args[part] = te.var("q", "float32")
    with pytest.raises(DTypeError, match="tvm_access_ptr"):
        tir.call_intrin("handle", "tir.tvm_access_ptr", *args)

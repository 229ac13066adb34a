"""Types of programs: dtypes that compute by functions which the program registers."""

import operator

import numpy as np
import pytest

import tedsl
import tedsl.testing
from tedsl import te, tir, topi
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError, LoweringError, OptionError, TedslError
from tedsl.ir import dtype as dtypes
from tedsl.ir import functions
from tedsl.ir.calls import datatypes
from tedsl.ir.evaluate import evaluate
from tedsl.target import datatype

FLOATS = {32: "float32", 16: "float16"}
ARITHMETIC = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
              "Max": te.max, "Min": te.min, "LT": operator.lt, "GE": operator.ge, "EQ": lambda a, b: a.equal(b)}


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    for owner, name in ((dtypes, "CUSTOM_CODES"), (datatypes, "_RULES"), (datatypes, "_MINIMA")):
        monkeypatch.setattr(owner, name, dict(getattr(owner, name)))
    monkeypatch.setattr(datatypes, "CUSTOM_CODES", dtypes.CUSTOM_CODES)
    datatype.register("myfloat", 150)
    yield
    functions.FUNCTIONS.pop("my.add", None)


def number(bits):
    return te.reinterpret(bits, FLOATS[bits.dtype.bits])


def bits(value):
    return te.reinterpret(value, f"uint{value.dtype.bits}")


def with_formulas(target="llvm"):
    """Registers the operators of a type that has the bits of IEEE floats of as many bits."""
    for name, compute in ARITHMETIC.items():
        def rule(op, compute=compute):
            value = compute(number(op.a), number(op.b))
            return value if value.dtype == "bool" else bits(value)

        datatype.register_op(rule, name, target, "myfloat")
    for kind in ("float", "int", "uint"):
        datatype.register_op(lambda op: bits(op.value.astype(FLOATS[op.dtype.bits])), "Cast", target, kind, "myfloat")
        datatype.register_op(lambda op: number(op.value).astype(op.dtype), "Cast", target, "myfloat", kind)
    datatype.register_op(lambda op: bits(tir.const(op.value, FLOATS[op.dtype.bits])), "FloatImm", target, "myfloat")
    datatype.register_op(lambda op: bits(te.sqrt(number(op.args[0]))), "Call", target, "myfloat", intrinsic_name="tir.sqrt")
    datatype.register_min_func(lambda width: tir.const(-float("inf"), f"custom[myfloat]{width}"), "myfloat")


def run(formula, *arrays, of="custom[myfloat]32", out=None, schedule=None, target="llvm"):
    n = te.var("n")
    inputs = [te.placeholder((n,), of, name=f"A{k}") for k in range(len(arrays))]
    B = te.compute((n,), lambda i: formula(*(A[i] for A in inputs)), name="B")
    s = te.create_schedule(B.op)
    if schedule is not None:
        schedule(s, B)
    result = np.zeros(len(arrays[0]), str(B.dtype.storage))
    stored = f"uint{tedsl.DataType(of).bits}"
    tedsl.build(s, [*inputs, B], target)(*(a.view(stored) for a in arrays), result)
    return result if out is None else result.view(out)


def test_the_registry():
    datatype.register("posites2", 131)
    datatype.register("posites2", 131)  # the same again
    assert datatype.get_type_code("posites2") == 131 and datatype.get_type_name(131) == "posites2"
    assert datatype.get_type_registered(131) and not datatype.get_type_registered(132)
    assert tedsl.datatype is datatype
    of = tedsl.DataType("custom[posites2]16x4")
    assert (of.bits, of.lanes, of.type_code, of.custom, of.is_float, of.is_integer, of.bytes) == (16, 4, 131, "posites2", False,
                                                                                                  False, 2)
    assert of.element == "custom[posites2]16" and of.storage == "uint16x4" and tedsl.DataType("float32").storage == "float32"
    assert of.element is tedsl.DataType("custom[posites2]16x1")
    assert tedsl.nd.empty((3,), "custom[posites2]32").dtype == "uint32"


@pytest.mark.parametrize("name", ["custom[absent]32", "custom[myfloat]", "custom[myfloat]12", "custom[]32", "custom[myfloat",
                                  "custom[myfloat]32x0"])
def test_dtypes_that_are_none(name):
    with pytest.raises(DTypeError, match="there is no dtype"):
        te.placeholder((3,), name)


def test_all_halves():
    with_formulas()
    halves = np.arange(2**16, dtype="uint16").view("float16")
    wide = run(lambda a: a.astype("float32"), halves, of="custom[myfloat]16")
    np.testing.assert_array_equal(wide, halves.astype("float32"))
    with np.errstate(all="ignore"):
        for other in (1.5, -3.0, 6e-8):
            for name, compute in ((one, ARITHMETIC[one]) for one in ("Add", "Sub", "Mul", "Div")):
                second = tir.const(other, "custom[myfloat]16")
                got = run(lambda a, compute=compute, second=second: compute(a, second), halves, of="custom[myfloat]16",
                          out="float16")
                np.testing.assert_array_equal(got, compute(halves, np.float16(other)), err_msg=name)
    small = run(lambda a: a < tir.const(1, "custom[myfloat]16"), halves, of="custom[myfloat]16")
    np.testing.assert_array_equal(small.view(bool), halves < 1)


def split_and_vectorized(s, B):
    o, i = s[B].split(B.op.axis[0], 8)
    s[B].vectorize(i)
    s[B].parallel(o)


@pytest.mark.parametrize("target, schedule", [
    ("llvm", None), ("llvm", split_and_vectorized), ("llvm", lambda s, B: s.cache_write(B, "local")), ("c", None)])
def test_formulas_under_directives(target, schedule):
    with_formulas(target)
    x, y = np.float32([1, -2, 0.5, 7, 3, 1e30, 0, -0.0, 9]), np.float32([2, 4, 0.25, 7, 5, 1e10, 1, 3, -4])
    def formula(a, b):
        return te.if_then_else(a < b, a * b + 1.5, tir.Select(a.equal(b), te.sqrt(b), te.max(a, b) / 2))
    with np.errstate(all="ignore"):
        want = np.where(x < y, x * y + np.float32(1.5), np.where(x == y, np.sqrt(y), np.maximum(x, y) / 2))
    np.testing.assert_array_equal(run(formula, x, y, out="float32", schedule=schedule, target=target), want)


def test_reductions_begin_at_constants_of_the_type():
    with_formulas()
    x = np.random.default_rng(0).standard_normal((5, 13)).astype("float32")
    A = te.placeholder(x.shape, "custom[myfloat]32", name="A")
    k, m = te.reduce_axis((0, 13)), te.reduce_axis((0, 13))
    total = te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="total")
    largest = te.compute((5,), lambda i: te.max(A[i, m], axis=m), name="largest")
    f = tedsl.build(te.create_schedule([total.op, largest.op]), [A, total, largest])
    sums, maxima = np.zeros(5, "uint32"), np.zeros(5, "uint32")
    f(x.view("uint32"), sums, maxima)
    np.testing.assert_allclose(sums.view("float32"), x.sum(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(maxima.view("float32"), x.max(axis=1))
    with pytest.raises(DTypeError, match="largest value"):
        te.min(A[0, k], axis=k)
    datatype.register("other", 151)
    with pytest.raises(DTypeError, match=r"smallest value of custom\[other\]32 is not known"):
        te.min_value("custom[other]32")


@pytest.mark.parametrize("rows, columns", [(2, 10), (40, 1), (1, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_few_rows_or_columns_of_topi(rows, columns, turned):
    """Their lanes run along the terms, and only those of numbers are combined in vectors."""
    with_formulas()
    x, w = (np.arange(n * 64, dtype="float32").reshape(n, 64) % 7 for n in (rows, columns))
    w = w if turned else np.ascontiguousarray(w.T)
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    own = [topi.cast(of, "custom[myfloat]32") for of in (X, W)]
    Y = topi.cast(topi.nn.dense(*own) if turned else topi.matmul(*own), "float32")
    result = np.zeros((rows, columns), "float32")
    tedsl.build(topi.schedules.schedule(Y, "llvm"), [X, W, Y])(x, w, result)
    assert np.array_equal(result, x @ (w.T if turned else w))


def test_numbers_and_operators_of_topi():
    with_formulas()
    X, scale = te.placeholder((4,), name="X"), te.var("scale", "custom[myfloat]32")
    Y = topi.cast(topi.cast(X, "custom[myfloat]32") * scale + topi.cast(X, "custom[myfloat]32"), "float32")
    f = tedsl.build(te.create_schedule(Y.op), [X, scale, Y])
    x, y = np.float32([1, 2, 3, 4]), np.zeros(4, "float32")
    f(x, int(np.float32(2.5).view("uint32")), y)
    np.testing.assert_array_equal(y, x * 2.5 + x)


def test_functions_of_python_and_of_c():
    calls = []

    @tedsl.register_func("my.add")
    def add(a, b):
        calls.append((a, b))
        return (a + b) % 2**32

    datatype.register_op(datatype.create_lower_func({16: "never", 32: "my.add"}), "Add", "llvm", "myfloat")
    datatype.register_op(datatype.create_lower_func("htonl"), "Call", "llvm", "myfloat", intrinsic_name="tir.sqrt")
    to_float = datatype.create_lower_func({(32, 32): lambda a: a.astype("float32")})
    datatype.register_op(to_float, "Cast", "llvm", "myfloat", "float")
    x, y = np.uint32([1, 2**31, 7]), np.uint32([2, 2**31 + 5, 0])
    np.testing.assert_array_equal(run(lambda a, b: a + b, x, y), x + y)
    assert len(calls) == 3
    np.testing.assert_array_equal(run(te.sqrt, x), x.byteswap())
    np.testing.assert_array_equal(run(lambda a: a.astype("float32"), x), x.astype("float32"))


def test_a_function_of_the_same_module():
    a, b = te.var("a", "uint32"), te.var("b", "uint32")
    product = tir.PrimFunc([a, b], tir.Evaluate(tir.ret(a * b + tir.const(1, "uint32")))).with_attr("global_symbol", "my_mul")
    datatype.register_op(datatype.create_lower_func({32: "my_mul"}), "Mul", "llvm", "myfloat")
    A = te.placeholder((5,), "custom[myfloat]32", name="A")
    B = te.compute((5,), lambda i: A[i] * A[i], name="B")
    mod = tedsl.lower(te.create_schedule(B.op), [A, B], name="f")
    assert "custom[myfloat]32" in str(mod)
    x, y = np.arange(5, dtype="uint32"), np.zeros(5, "uint32")
    tedsl.build([mod, tedsl.IRModule({"my_mul": product})])["f"](x, y)
    np.testing.assert_array_equal(y, x * x + 1)


def test_the_pass_on_modules_and_rules_of_tvm_s_style():
    with_formulas()
    datatype.register_op(datatype.lower_ite, "Call", "llvm", "myfloat", intrinsic_name="tir.if_then_else")
    datatype.register_op(datatype.lower_call_pure_extern, "Call", "llvm", "myfloat", intrinsic_name="tir.call_pure_extern")
    datatype.register_min_func(datatype.create_min_lower_func({32: "rand"}, "myfloat"), "myfloat")
    assert te.min_value("custom[myfloat]32").args[0] == "rand"
    A = te.placeholder((8,), "custom[myfloat]32", name="A")
    B = te.compute((8,), lambda i: te.if_then_else(i < 4, A[i], tir.call_pure_extern(A.dtype, "htonl", A[i])) + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    mod = tir.transform.LowerCustomDatatypes()(tedsl.lower(s, [A, B]))
    assert "custom" not in str(mod) and "uint32" in str(mod)
    x, y, z = np.arange(8, dtype="float32").view("uint32"), np.zeros(8, "uint32"), np.zeros(8, "uint32")
    tedsl.build(mod)(x, y)
    tedsl.build(s, [A, B])(x, z)
    np.testing.assert_array_equal(y, z)
    np.testing.assert_array_equal(y[:4].view("float32"), np.float32([1, 2, 3, 4]))
    untouched = tedsl.lower(te.create_schedule(te.compute((3,), lambda i: i * 2).op), [])
    assert tir.transform.LowerCustomDatatypes()(untouched)["main"] is untouched["main"]


@pytest.mark.parametrize("formula, words", [
    (lambda a: a - a, "no rule for Sub of myfloat on llvm"), (te.exp, "no rule for tir.exp of myfloat"),
    (lambda a: a + 1, "no rule for FloatImm of myfloat"), (lambda a: te.abs(a), "no rule for tir.fabs of myfloat"),
    (lambda a: a.astype("int32"), "no rule for a Cast from myfloat to int"), (lambda a: a > a, "no rule for GT of myfloat"),
    (lambda a: a.astype("custom[myfloat]16"), "no rule for a Cast from myfloat to myfloat"),
    (lambda a: a // a, r"no rule for Div of myfloat")])
def test_what_has_no_rule(formula, words):
    with pytest.raises(LoweringError, match=words) as refusal:
        run(formula, np.zeros(3, "uint32"))
    assert "datatype.register_op(f, " in refusal.value.hint


def test_nothing_is_folded_that_only_the_program_knows():
    datatype.register_op(lambda op: op.a - op.b, "Add", "llvm", "myfloat")
    datatype.register_op(lambda op: op.a * op.b + tir.const(1, "uint32"), "Mul", "llvm", "myfloat")
    datatype.register_op(lambda op: op.a + op.b, "Max", "llvm", "myfloat")
    datatype.register_op(lambda op: tir.const(int(op.value) + 5, "uint32"), "FloatImm", "llvm", "myfloat")
    x, zero, two = np.arange(6, dtype="uint32"), tir.const(0, "custom[myfloat]32"), tir.const(2, "custom[myfloat]32")
    np.testing.assert_array_equal(run(lambda a: a + 0, x), x - np.uint32(5))
    np.testing.assert_array_equal(run(lambda a: a * 1, x), x * 6 + 1)
    np.testing.assert_array_equal(run(lambda a: te.max(a, a), x), x + x)
    np.testing.assert_array_equal(run(lambda a: te.max(a, zero * two), x), x + 36)
    assert isinstance((zero + two).a, tir.FloatImm) and isinstance(zero.astype("float32"), tir.Cast)


def test_rules_that_give_something_else():
    datatype.register_op(lambda op: op.a.astype("int32"), "Add", "llvm", "myfloat")
    with pytest.raises(ArgumentTypeError, match=r"the rule for Add of myfloat returned(.|\n)*uint32"):
        run(lambda a: a + a, np.zeros(3, "uint32"))
    datatype.register_op(datatype.create_lower_func({16: "f"}), "Add", "llvm", "myfloat")
    with pytest.raises(LoweringError, match="have 32 bits, and there are functions for 16"):
        run(lambda a: a + a, np.zeros(3, "uint32"))


def test_types_that_do_not_fit():
    A = te.placeholder((3,), "custom[myfloat]32", name="A")
    B = te.placeholder((3,), "float32", name="B")
    for wrong in (lambda: A[0] + B[0], lambda: A[0] * te.var("i"), lambda: te.shift_left(A[0], 1), lambda: A[A[0]]):
        with pytest.raises(TedslError):
            wrong()
    assert (A[0] + 1).b.dtype == "custom[myfloat]32"
    with pytest.raises(TedslError, match="myfloat"):
        evaluate(A[0] + 1, {A: np.zeros(3, "uint32")})


@pytest.mark.parametrize("wrong, error", [
    (lambda: datatype.register("my float", 150), ArgumentTypeError), (lambda: datatype.register("x", 3), ArgumentError),
    (lambda: datatype.register("x", 256), ArgumentError), (lambda: datatype.register("x", 150), ArgumentError),
    (lambda: datatype.register("myfloat", 160), ArgumentError), (lambda: datatype.register("x", "y"), ArgumentError),
    (lambda: datatype.get_type_code("x"), OptionError), (lambda: datatype.get_type_name(200), OptionError),
    (lambda: datatype.register_op(3, "Add", "llvm", "myfloat"), ArgumentTypeError),
    (lambda: datatype.register_op(len, "Cast", "llvm", "myfloat"), ArgumentTypeError),
    (lambda: datatype.register_op(len, "Call", "llvm", "myfloat"), ArgumentTypeError),
    (lambda: datatype.register_op(len, "Add", 3, "myfloat"), ArgumentTypeError),
    (lambda: datatype.register_min_func(3, "myfloat"), ArgumentTypeError),
    (lambda: datatype.register_min_func(len, "absent"), OptionError),
    (lambda: datatype.create_lower_func({}), ArgumentTypeError),
    (lambda: datatype.create_lower_func({"a": 3}), ArgumentTypeError),
    (lambda: datatype.create_lower_func(3), ArgumentTypeError), (lambda: datatype.create_lower_func("f")(3), ArgumentTypeError),
    (lambda: datatype.lower_ite(3), ArgumentTypeError), (lambda: datatype.lower_call_pure_extern(3), ArgumentTypeError),
    (lambda: datatype.create_min_lower_func({32: "f"}, "absent")(32), DTypeError)])
def test_wrong_arguments(wrong, error):
    with pytest.raises(error):
        wrong()

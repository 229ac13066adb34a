"""Hybrid scripts: the same results as Python and compiled; refusals that point at the line."""


import linecache
import textwrap

import numpy as np
import pytest

import tedsl
from tedsl import te
from tests.lang.hybrid import scripts
from tests.lang.hybrid.scripts import both_ways


def random(*shape):
    return np.random.default_rng(0).random(shape, dtype="float32")


def test_loops_over_two_inputs():
    c, = both_ways(scripts.outer_product, random(5), random(7))
    assert c.shape == (5, 7)


def test_sums_into_elements():
    a, b = random(4, 6), random(6, 3)
    c, = both_ways(scripts.matmul, a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_an_output_that_is_read_again():
    both_ways(scripts.running_sum, random(9))


def test_several_outputs_and_numbers_that_change():
    low, high = both_ways(scripts.extremes, random(11))
    assert low < high


def test_names_of_the_module_around():
    both_ways(scripts.captured, random(3))


@pytest.mark.parametrize("flag", [True, False])
def test_all_kinds_of_loops_and_conditions(flag):
    both_ways(scripts.everything, random(7) + 1, constants=(4, flag), rtol=1e-5)


def test_threads_are_loops_here():
    both_ways(scripts.threads, random(32))


def test_symbolic_shapes_and_strides():
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((n,), name="A"), te.placeholder((m,), name="B")
    C = scripts.product(A, B)
    kernel = tedsl.build(te.create_schedule(C.op), [A, B, C])
    a, b, c = random(6)[::2], random(4), np.zeros((3, 4), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.outer(a, b))


def test_between_formulas():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    C = scripts.running_sum(B)
    D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[D].split(D.op.axis[0], 3)
    a, d = random(8), np.zeros(8, "float32")
    tedsl.build(s, [A, D])(a, d)
    np.testing.assert_allclose(d, np.cumsum(2 * a) + 1, rtol=1e-6)


def test_ndarrays_run_as_python_too():
    a = tedsl.nd.array(random(3))
    np.testing.assert_array_equal(scripts.product(a, a), np.outer(a.numpy(), a.numpy()))


# --- refusals -------------------------------------------------------------------------------------------------------

def script_of(text, **names):
    """A hybrid script from its text, whose lines errors can show."""
    file = f"<script {hash(text)}>"
    source = textwrap.dedent(text).lstrip()
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"te": te, **names}
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


A = te.placeholder((8,), name="A")


@pytest.mark.parametrize("line, match", [
    ("b[i] = a[i, 0]", r"a has 1 dimensions and is indexed by 2"),
    ("b[i] = a[i] @ a[i]", r"the operator MatMult is not part of hybrid script"),
    ("b[i] = nothing", r"nothing is called nothing here"),
    ("b[i] = a", r"a number is assigned"),
    ("b[i] = a + 1.0", r"a is a whole array"),
    ("b[a[i]] = 1.0", r"an index is an integer, this is float32"),
    ("b[i] = exp(a)", r"exp takes numbers, not the array a"),
    ("b[0:2] = 1.0", r"a part of an array cannot be taken"),
    ("i = 3", r"the variable of a loop or an argument and cannot be assigned"),
    ("del b", r"Delete is not part of hybrid script"),
    ("while True: pass", r"While is not part of hybrid script"),
    ("t = allocate((4,), 'float32', 'moon')", r"there is no scope 'moon'"),
    ("t = allocate()", r"allocate takes shape and dtype"),
    ("c = output_tensor((4,))", r"made outside of all loops"),
    ("return b", r"the return stands at the end of the function"),
    ("b[i] = i / 2", r"`/` on integers"),
    ("b[i] = a.size", r"an array has shape, dtype and ndim, no size"),
    ("b[i] = range(3)", r"range makes a loop"),
    ("b[i] = len(3)", r"len takes what has a length, a number has none"),
    ("b[i] = [x for x in a]", r"ListComp is not part of hybrid script"),
])
def test_an_error_points_at_the_line(line, match):
    f = script_of(f"""
        @te.hybrid.script
        def f(a):
            b = output_tensor(a.shape, a.dtype)
            for i in range(8):
                {line}
            return b
        """)
    with pytest.raises(tedsl.TedslError, match=match) as caught:
        f(A)
    assert "hybrid script f (" in str(caught.value) and f">:5, `{line}`)" in str(caught.value)


@pytest.mark.parametrize("body, match", [
    ("pass", "the function returns nothing"),
    ("b = output_tensor((3,))", "the function returns nothing"),
    ("b = output_tensor((3,))\n    c = output_tensor((3,))\n    return b", "c is an output tensor and is not returned"),
    ("return a", "what is returned is made by output_tensor"),
    ("b = output_tensor((8,))\n    return b, b", "an output tensor is returned twice"),
    ("b = output_tensor((8,))\n    for i in range(0, 8, 2):\n        b[i] = a[i]\n    return b", "takes the end, or"),
    ("b = output_tensor((8,))\n    for i in range(3):\n        x = a[i]\n    b[0] = x\n    return b", "and used after it"),
    ("b = output_tensor((8,))\n    for i in const_range(a[0]):\n        b[i] = 0.0\n    return b", "the bounds of const_range"),
])
def test_the_function_as_a_whole(body, match):
    f = script_of(f"@te.hybrid.script\ndef f(a):\n    {body}\n")
    with pytest.raises(tedsl.TedslError, match=match):
        f(A)


def test_accesses_are_checked():
    f = script_of("""
        @te.hybrid.script
        def f(a):
            b = output_tensor(a.shape, a.dtype)
            for i in range(8):
                b[i] = a[i + 1]
            return b
        """)
    B = f(A)
    with pytest.raises(tedsl.TedslError, match=r"dimension 0 of A has the indices 0 to 7 .* it is 8 at i = 7"):
        tedsl.lower(te.create_schedule(B.op), [A, B])


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"hybrid script product: (.|\n)*missing a required argument: 'b'"):
        scripts.product(A)
    with pytest.raises(TypeError, match=r"the argument b is ndarray among tensors"):
        scripts.product(A, random(3))
    with pytest.raises(TypeError, match=r"decorates a function"):
        te.hybrid.script(3)


@pytest.mark.parametrize("first, then, fits", [("0", "x + a[i]", False), ("0", "1.5", False), ("int32(0)", "int64(3)", False),
                                               ("True", "2", False), ("0.0", "a[i]", True), ("0.0", "1", True),
                                               ("True", "False", True), ("0", "True", True)])
def test_a_name_keeps_the_dtype_of_its_first_value(first, then, fits):
    """What Python keeps was cut off: the fraction of a sum that begins with 0."""
    f = script_of(f"""
        @te.hybrid.script
        def f(a):
            b = output_tensor(a.shape, a.dtype)
            for i in range(8):
                x = {first}
                x = {then}
                b[i] = float32(x)
            return b
        """)
    if fits:
        f(A)
    else:
        with pytest.raises(tedsl.TedslError, match=r"x is \w+, as its first value is, and \w+ is assigned to it"):
            f(A)


@pytest.mark.parametrize("script, inputs", [(scripts.smoothed, 2), (scripts.doubled_twice, 1)])
def test_inputs_that_are_changed_are_copies(script, inputs):
    tensors = [te.placeholder((8,), name=name) for name in "AB"[:inputs]]
    out = script(*tensors)
    arrays = [np.arange(8, dtype="float32") + k for k in range(inputs)]
    kept, got = [one.copy() for one in arrays], np.zeros(8, "float32")
    want = script(*arrays)
    tedsl.build(te.create_schedule(out.op), [*tensors, out])(*arrays, got)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(arrays, kept)
    assert (want != kept[0]).any()
    with pytest.raises(tedsl.TedslError, match="another argument is the same tensor"):
        scripts.smoothed(A, A)

"""Random numbers of kernels, by the names of TVM's contrib.random."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.contrib import random
from tedsl.errors import ArgumentError, ArgumentTypeError, DTypeError


def drawn(A, shape=None):
    out = np.empty(shape or [int(n) for n in A.shape], str(A.dtype))
    tedsl.build(te.create_schedule(A.op), [A])(out)
    return out


def test_uniform_and_normal():
    numbers = drawn(random.uniform(2.5, 4.5, size=(200, 300)))
    assert numbers.dtype == "float32" and numbers.min() >= 2.5 and numbers.max() < 4.5
    assert abs(numbers.mean() - 3.5) < 0.02 and abs(numbers.var() - 1 / 3) < 0.02
    numbers = drawn(random.normal(3, 4, size=(200, 300)))
    assert abs(numbers.mean() - 3) < 0.15 and abs(numbers.std() - 4) < 0.15


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "int64", "uint64"])
def test_randint(dtype):
    low = 0 if dtype.startswith("u") else -3
    numbers = drawn(random.randint(low, 5, size=(40, 50), dtype=dtype))
    assert numbers.dtype == dtype and sorted(set(numbers.ravel().tolist())) == list(range(low, 5))


def test_a_tensor_among_others_with_a_symbolic_extent():
    n = te.var("n")
    A = random.uniform(0, 1, (n,))
    B = te.compute((n,), lambda i: A[i] - 1.0, name="B")
    out = np.zeros(100, "float32")
    tedsl.build(te.create_schedule(B.op), [B])(out)
    assert -1 <= out.min() < out.max() < 0


def test_a_seed_repeats_the_numbers():
    seed, A = tedsl.get_global_func("tvm.contrib.random.seed"), random.normal(0, 1, size=(9,))
    results = []
    for number in (7, 7, 8):
        seed(number)
        results.append(drawn(A).tolist())
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "bool"])
def test_arrays_are_filled(dtype):
    for name in ("random_fill", "random_fill_for_measure"):
        array = tedsl.nd.empty((50, 8), dtype)
        tedsl.get_global_func(f"tvm.contrib.random.{name}")(array)
        numbers = array.numpy()
        assert numbers.min() >= 0 and numbers.max() <= (1 if dtype == "bool" else 10) and len(np.unique(numbers)) > 1


def test_what_cannot_be_drawn_is_refused():
    for make, error, words in (
            (lambda: random.randint(3, 3, (2,)), ArgumentError, "there is no int32 from 3 to below 3"),
            (lambda: random.randint(0, 300, (2,), "int8"), ArgumentError, "not within -128 to 127"),
            (lambda: random.randint(0, 3, (2,), "float32"), DTypeError, "float32 is not a dtype of them"),
            (lambda: random.uniform("a", 3, (2,)), ArgumentTypeError, "low is 'a', a str"),
            (lambda: random.normal(te.var("m"), 3, (2,)), ArgumentTypeError, "give loc as a number"),
            (lambda: random.normal(0, -1, (2,)), ArgumentError, "-1 is negative")):
        with pytest.raises(error, match=words):
            make()


# --- tvm.contrib.sort ------------------------------------------------------------------------------------------------


def sorted_by(function, results, data, *more, given=()):
    """The `results` (shapes and dtypes) of a packed function of `data`, other arrays and the numbers `more`."""
    arrays = [data, *given]
    tensors = [te.placeholder(array.shape, str(array.dtype), name=f"a{k}") for k, array in enumerate(arrays)]
    made = te.extern([shape for shape, _ in results], tensors, lambda ins, outs: tir.call_packed(
        f"tvm.contrib.sort.{function}", *ins, *outs, *more), dtype=[dtype for _, dtype in results])
    made = made if isinstance(made, list) else [made]
    outs = [np.empty(shape, dtype) for shape, dtype in results]
    tedsl.build(te.create_schedule(made[0].op), [*tensors, *made])(*arrays, *outs)
    return outs


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("up", [True, False])
def test_sort_and_argsort_are_stable(axis, up):
    data = np.random.default_rng(3).integers(0, 4, (5, 6, 3)).astype("float32")
    sign = 1 if up else -1
    order = np.argsort(sign * data, axis=axis, kind="stable")
    (found,) = sorted_by("argsort", [(data.shape, "int32")], data, axis, up)
    np.testing.assert_array_equal(found, order)
    (values,) = sorted_by("sort", [(data.shape, "float32")], data, axis, up)
    np.testing.assert_array_equal(values, np.take_along_axis(data, order, axis))


def test_the_first_elements_alone():
    data = np.array([[1, 2, 3], [2, 4.5, 3.5], [1.1, 0.5, 1], [3.2, -5, 0.5], [1.5, 0, 0]], "float32")
    valid = np.array([1, 2, 3, 3, 0], "int32")
    (found,) = sorted_by("argsort_nms", [(data.shape, "int32")], data, 1, False, given=[valid])
    assert found.tolist() == [[0, 1, 2], [1, 0, 2], [0, 2, 1], [0, 2, 1], [0, 1, 2]]
    (found,) = sorted_by("argsort_nms", [(data.T.shape, "int32")], data.T.copy(), 0, True, given=[valid])
    assert found.T.tolist() == [[0, 1, 2], [0, 1, 2], [1, 2, 0], [1, 2, 0], [0, 1, 2]]


@pytest.mark.parametrize("k", [0, 1, 4])
def test_topk(k):
    data = np.random.default_rng(3).permutation(40).reshape(5, 8).astype("int32")
    order = np.argsort(-data, axis=1)[:, :k or 8]
    values = np.take_along_axis(data, order, 1)
    both = [(order.shape, "int32"), (order.shape, "int64")]
    for kind, wanted in (("both", [values, order]), ("values", [values]), ("indices", [order])):
        found = sorted_by("topk", both[:len(wanted)], data, k, 1, kind, False)
        assert [one.tolist() for one in found] == [one.tolist() for one in wanted]


def test_functions_are_called_by_programs():
    data, out = tedsl.nd.array(np.array([3.0, 1.0, 2.0], "float32")), tedsl.nd.empty((3,), "int32")
    tedsl.get_global_func("tvm.contrib.sort.argsort")(data, out, 0, True)
    assert out.numpy().tolist() == [1, 2, 0]
    with pytest.raises(ArgumentError, match="no axis 4 in an array of 1 dimensions"):
        tedsl.get_global_func("tvm.contrib.sort.sort")(data, data, 4, True)
    with pytest.raises(ArgumentError, match="'best' with 1 results"):
        tedsl.get_global_func("tvm.contrib.sort.topk")(data, data, 1, 0, "best", True)

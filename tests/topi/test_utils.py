"""The tools that operators written for TVM are made with."""

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError
from topi import utils


def test_inlining_from_the_end_to_the_first_reduction():
    a = te.placeholder((4, 6), name="a")
    b = topi.nn.relu(topi.add(a, 1.0))
    c = topi.sum(b, axis=1)
    d = topi.exp(c)
    e = topi.add(d, d)
    s = te.create_schedule([e.op, d.op])
    met = []
    utils.traverse_inline(s, e.op, met.append)
    assert met == [c.op, d.op, e.op]
    assert [int(s[t].attach_type) for t in (b, c, d, e)] == [1, 1, 1, 1]
    s = te.create_schedule(b.op)
    utils.traverse_inline(s, b.op, met.append)
    before = b.op.input_tensors[0]
    given = []
    utils.traverse_inline(te.create_schedule(b.op), b, given.append)
    assert given == met[3:] == [before.op, b.op] and [int(s[t].attach_type) for t in (before, b)] == [2, 1]


def test_a_traversal_of_what_is_no_operation():
    with pytest.raises(ArgumentTypeError, match="starts at an operation, not an int"):
        utils.traverse_inline(None, 3, print)
    x = te.placeholder((4,), name="x")
    with pytest.raises(ArgumentTypeError, match="calls a function with each operation, not an int"):
        utils.traverse_inline(te.create_schedule(x.op), x.op, 3)


def test_positions():
    n = te.var("n")
    shape = (3, 1, 4, 5)
    for position in range(60):
        indices = utils.unravel_index(position, shape)
        assert [int(i) for i in indices] == list(np.unravel_index(position, shape))
        assert int(utils.ravel_index(indices, shape)) == position
    i, j = te.var("i"), te.var("j")
    assert repr(utils.simplify(utils.ravel_index([i, j], [3, n]) - j)) == "(i*n)"
    assert repr(utils.unravel_index(i, [n, 4])[1]) == "floormod(i, 4)"
    with pytest.raises(ValueError, match="1 indices for 2 dimensions"):
        utils.ravel_index([i], [3, n])


def test_numbers():
    n = te.var("n")
    assert utils.equal_const_int(n - n + 3, 3) and utils.equal_const_int(3, 3)
    assert not utils.equal_const_int(n, 3) and not utils.equal_const_int(4, 3) and not utils.equal_const_int(te.const(2), 3)
    assert utils.prod([2, 3, 4]) == 24 and int(utils.prod([])) == 1 and repr(utils.prod([n, 2])) == "(n*2)"
    assert [utils.get_max_power2_factor(k) for k in (1, 7, 8, 12)] == [1, 1, 8, 4]
    assert utils.get_max_power2_factor(64, 4) == 8  # as TVM's: the first power above max_value
    assert utils.simplify(3) == 3 and utils.simplify("x") == "x"
    with pytest.raises(ValueError, match="n is 0"):
        utils.get_max_power2_factor(0)


def test_a_matrix_of_constants():
    values = np.array([[1.5, 0, -2], [3, 4, 5]], "float32")
    made = utils.const_matrix(values, "weights")
    assert made.op.name == "weights" and made.dtype == "float32"
    out = np.zeros((2, 3), "float32")
    s = te.create_schedule(made.op)
    tedsl.build(s, [made])(out)
    np.testing.assert_array_equal(out, values)


def test_names_in_the_places_of_tvm():
    from tedsl.topi.generic.default import default_schedule

    assert topi.generic.default.default_schedule is default_schedule is topi.generic.default_schedule
    assert topi.nn.get_pad_tuple("SAME", (3, 3)) == (1, 1, 1, 1) and topi.nn.get_pad_tuple1d(2, (3,)) == (2, 2)


def test_numbers_that_expressions_come_to():
    n = te.var("n")
    assert utils.get_const_int(n + 3 - n) == 3 and utils.get_const_int(np.int64(5)) == 5
    assert repr(utils.get_const_tuple((np.int32(3), n + 4 - n, n, te.const(2)))) == "(3, 4, n, 2)"
    with pytest.raises(ArgumentError, match="n is not a constant"):
        utils.get_const_int(n)


@pytest.mark.parametrize("made, values", [(utils.const_vector, [1, 2, 5]), (utils.const_matrix, [[1, 2], [3, 4.5]])])
def test_constants_are_lists_too(made, values):
    result = made(values)
    out = np.zeros(np.shape(values), result.dtype)
    tedsl.build(te.create_schedule(result.op), [result])(out)
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("wrong, words", [
    (lambda: utils.nchw_pack_layout(3), "a layout is a string, not an int"),
    (lambda: utils.nchw_xc_layout(None), "a layout is a string"), (lambda: utils.unravel_index(3, 3), "a list of extents"),
    (lambda: utils.const_matrix([1, 2]), "two dimensions, not 1"), (lambda: utils.const_vector("abc"), "one dimension, not 0"),
    (lambda: topi.testing.upsampling_python(np.zeros((1, 1, 2, 2)), 2.5), "the factors of 2 spatial dimensions are 2.5")])
def test_arguments_of_a_wrong_kind(wrong, words):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=words):
        wrong()


def test_sizes_are_read_by_the_names_at_the_root():
    shape = topi.get_const_tuple(te.placeholder((3, 4)).shape)
    assert shape == (3, 4) and topi.get_const_int(tir.const(7)) == 7

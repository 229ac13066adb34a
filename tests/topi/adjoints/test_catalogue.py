"""Every operator of topi: its gradient by te.gradient against central differences in float64, or the reason why it has none.

Operators are called as in docs/operator_examples.py, and those that take matrices in three shapes. With the marker `whole` the
others, too, are called in three shapes: extents of their examples are replaced by others, equal ones by equal ones.
"""

import importlib.util
import inspect
import pathlib

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import TedslError
from tests.topi.adjoints.differences import differences, distinct, shape_of, values

PLACE = pathlib.Path(__file__).parents[3] / "docs" / "operator_examples.py"
SPEC = importlib.util.spec_from_file_location("operator_examples", PLACE)
examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(examples)

SHAPES = ((2, 3), (5, 7), (1, 9))
# Of the examples, in which these extents become others. The first two are taken that the operator accepts.
EXTENTS = ({2: 3, 3: 5, 4: 7}, {2: 5, 3: 2, 4: 6}, {4: 5}, {1: 3}, {4: 6}, {3: 7}, {4: 3}, {4: 3, 3: 2}, {3: 5}, {5: 7}, {6: 7},
           {6: 9}, {2: 4, 3: 6}, {2: 3}, {2: 4}, {3: 4}, {3: 2}, {4: 2}, {4: 3, 3: 1}, {4: 2, 2: 3}, {1: 2}, {2: 1})
MOST = 700  # elements of the operands together, each of which is moved twice
IMAGES, RESULT = (1, 7, 5, 5), (3, 3, 4, 6)  # in NHWC; RESULT is that of WIDE by windows of 3 x 3 by 2 in 3 times the channels
WIDE = (3, 5, 7, 2)


def where(*shape):
    return lambda new: topi.where(te.placeholder(shape, "bool", name="condition"), new(*shape), new(*shape))


# Of operators whose other arguments say extents, or whose operands depend on each other.
OTHERS = {
    "broadcast_to": (lambda new: topi.broadcast_to(new(5), (3, 5)), lambda new: topi.broadcast_to(new(7, 1), (2, 7, 3))),
    "reshape": (lambda new: topi.reshape(new(5, 3), (3, 5)), lambda new: topi.reshape(new(7), (1, 7, 1))),
    "where": (where(5, 7), where(3, 1, 9)),
    "nn.depth_to_space": (lambda new: topi.nn.depth_to_space(new(1, 4, 3, 5), 2),
                          lambda new: topi.nn.depth_to_space(new(3, 9, 1, 7), 3)),
    "nn.space_to_depth": (lambda new: topi.nn.space_to_depth(new(1, 3, 6, 10), 2),
                          lambda new: topi.nn.space_to_depth(new(3, 1, 3, 9), 3)),
    "nn.depthwise_conv2d_backward_input_nhwc": (
        lambda new: topi.nn.depthwise_conv2d_backward_input_nhwc(new(3, 3, 5, 1), new(*IMAGES), IMAGES, IMAGES, 1, 1),
        lambda new: topi.nn.depthwise_conv2d_backward_input_nhwc(new(3, 3, 2, 3), new(*RESULT), RESULT, WIDE, 2, 1)),
    "nn.depthwise_conv2d_backward_weight_nhwc": (
        lambda new: topi.nn.depthwise_conv2d_backward_weight_nhwc(new(*IMAGES), new(*IMAGES), IMAGES, (3, 3, 5, 1), 1, 1),
        lambda new: topi.nn.depthwise_conv2d_backward_weight_nhwc(new(*WIDE), new(*RESULT), RESULT, (3, 3, 2, 3), 2, 1)),
}
# Of the operands; the others have them between 0.15 and 0.85.
RANGES = {"acosh": (1.2, 2.0), "round": (0.51, 0.85), "nearbyint": (0.51, 0.85), "ceil_log2": (0.51, 0.85)}
OF_PLACES = "its result is places or sizes"
OF_TRUTH = "its result is truth values"
OF_WHOLE = "it takes whole numbers or truth values alone"
OF_BITS = "it looks at the bits of its operand"
OF_NOTHING = "it reads no elements of floats"
OF_STATEMENTS = "it is written as statements, which have no adjoint in operators"
WITHOUT_DERIVATIVE = {
    **dict.fromkeys(("argmax", "argmin", "argsort", "argwhere", "searchsorted", "ndarray_size", "shape"), OF_PLACES),
    **dict.fromkeys(("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "isfinite", "isinf", "isnan",
                     "broadcast_equal", "broadcast_not_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_less",
                     "broadcast_less_equal", "logical_xor", "broadcast_logical_xor"), OF_TRUTH),
    **dict.fromkeys(("all", "any", "logical_and", "logical_or", "logical_not", "broadcast_logical_and", "broadcast_logical_or",
                     "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "broadcast_bitwise_and", "broadcast_bitwise_or",
                     "broadcast_bitwise_xor", "left_shift", "right_shift", "broadcast_left_shift", "broadcast_right_shift",
                     "invert_permutation", "unravel_index", "unique", "one_hot", "fixed_point_multiply", "sparse_reshape",
                     "nn.bitpack", "nn.binary_dense", "nn.bitserial_dense", "nn.bitserial_conv2d_nchw",
                     "nn.bitserial_conv2d_nhwc", "nn.conv2d_NCHWc_int8"), OF_WHOLE),
    "nn.binarize_pack": OF_TRUTH,
    **dict.fromkeys(("scanop", "scatter_elements", "sparse_fill_empty_rows", "nn.sparse_add", "nn.sparse_conv2d",
                     "nn.sparse_dense", "nn.sparse_dense_sp_lhs", "nn.sparse_dense_sp_rhs",
                     "nn.sparse_transpose"), OF_STATEMENTS),
    "reinterpret": OF_BITS,
    **dict.fromkeys(("arange", "full", "full_like"), OF_NOTHING),
}


def operators():
    for prefix, room in (("", topi), ("nn.", topi.nn), ("image.", topi.image)):
        for name in room.__all__:
            if inspect.isfunction(getattr(room, name)):
                yield f"{prefix}{name}", getattr(room, name)


OPERATORS = dict(operators())


def calls_of(name, operator):
    """Functions of `new`, which makes a placeholder, that call the operator."""
    original = next((other for other in (name, name.removeprefix("broadcast_")) if other in examples.EXAMPLES), None)
    if original is not None:
        return [examples.EXAMPLES[original]]
    count = len([p for p in inspect.signature(operator).parameters.values() if p.default is p.empty])
    return [lambda new, shape=shape: operator(*[new(*shape) for _ in range(count)]) for shape in SHAPES]


def shapes_of(call):
    """The shapes of the operands of a call, in the order in which they are made; None where the operator refuses them."""
    made = []

    def new(*shape):
        made.append(shape)
        return te.placeholder(shape, "float64", name=f"x{len(made)}")

    try:
        call(new)
    except TedslError:
        return None
    return made


def with_extents(call, extents):
    """`call` with other extents of its operands, also of those of integers."""
    def changed(new):
        with pytest.MonkeyPatch.context() as patch:
            integers = examples.integers
            patch.setattr(examples, "integers", lambda *shape: integers(*[extents.get(n, n) for n in shape]))
            return call(lambda *shape: new(*[extents.get(n, n) for n in shape]))

    return changed


def in_other_shapes(name):
    """Two calls of the operator of an example, in shapes that differ from each other and from that of the example."""
    if name in OTHERS:
        return OTHERS[name]
    example, found = calls_of(name, OPERATORS[name])[0], []
    known = [shapes_of(example)]
    for extents in EXTENTS:
        call = with_extents(example, extents)
        shapes = shapes_of(call)
        if shapes is not None and shapes not in known and sum(int(np.prod(shape)) for shape in shapes) <= MOST:
            known.append(shapes)
            found.append(call)
    assert len(found) >= 2, f"{name} needs calls in OTHERS"
    return found[:2]


def called(call):
    """The first result of a call of an operator, and arrays for the placeholders that it reads."""
    count = iter(range(100))
    made = call(lambda *shape: te.placeholder(shape, "float64", name=f"x{next(count)}"))
    out = made[0] if isinstance(made, (list, tuple)) else made
    return out, sorted(placeholders(out.op), key=lambda tensor: tensor.name)


def placeholders(op):
    found, stack, seen = set(), [op], set()
    while stack:
        one = stack.pop()
        if one not in seen:
            seen.add(one)
            states = one.state_placeholder if isinstance(one, te.ScanOp) else ()  # which are no arguments
            stack += [tensor.op for tensor in one.input_tensors if tensor not in states]
            seen.update(state.op for state in states)
            found |= {one.output(0)} if isinstance(one, te.PlaceholderOp) else set()
    return found


def array_for(tensor, seed, low, high):
    shape = shape_of(tensor)
    if tensor.dtype.is_float:
        return distinct(shape, str(tensor.dtype), seed, low, high - seed * 2**0.5 / 100)  # nor do sums of two operands tie
    if tensor.dtype == "bool":
        return (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(bool)
    return np.random.default_rng(seed).integers(0, 2, shape).astype(str(tensor.dtype))


@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - WITHOUT_DERIVATIVE.keys()))
def test_gradients_are_those_of_central_differences(name):
    for call in calls_of(name, OPERATORS[name]):
        compare(name, call)


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name in sorted(OPERATORS.keys() - WITHOUT_DERIVATIVE.keys())
                                  if len(calls_of(name, OPERATORS[name])) == 1])
def test_gradients_are_those_of_central_differences_in_other_shapes(name):
    for call in in_other_shapes(name):
        compare(name, call)


def compare(name, call):
    """Holds the gradient of a call of operator `name` against central differences."""
    out, inputs = called(call)
    feeds = {tensor: array_for(tensor, seed, *RANGES.get(name, (0.15, 0.85))) for seed, tensor in enumerate(inputs)}
    wanted = [tensor for tensor in inputs if tensor.dtype == "float64"]
    assert out.dtype.is_float and wanted, f"{name} belongs into the table of those without a derivative"
    head = te.placeholder(out.shape, out.dtype, name="head")
    given = distinct(shape_of(out), str(out.dtype), seed=99)
    found = [topi.identity(tensor) if isinstance(tensor.op, te.PlaceholderOp) else tensor
             for tensor in te.gradient(out, wanted, head)]
    narrow = out.dtype != "float64" or any(tensor.dtype == "float32" for tensor in inputs)
    for tensor, made in zip(wanted, values(found, {**feeds, head: given})):
        expected = differences(out, feeds, tensor, given)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(made, expected, rtol=0, atol=(1e-2 if narrow else 1e-6) * scale, err_msg=tensor.name)


@pytest.mark.parametrize("name", sorted(WITHOUT_DERIVATIVE))
def test_what_has_no_derivative_says_so_or_takes_no_floats(name):
    try:
        out, inputs = called(calls_of(name, OPERATORS[name])[0])
    except TedslError:
        assert WITHOUT_DERIVATIVE[name] == OF_WHOLE
        return
    wanted = [tensor for tensor in inputs if tensor.dtype == "float64"]
    if WITHOUT_DERIVATIVE[name] == OF_NOTHING:
        assert not wanted
        return
    assert name == "argsort" or WITHOUT_DERIVATIVE[name] == OF_STATEMENTS or not out.dtype.is_float
    if wanted:
        with pytest.raises(TedslError):
            te.gradient(out, wanted, te.placeholder(out.shape, out.dtype, name="head"))


def test_the_table_names_operators_that_exist():
    assert WITHOUT_DERIVATIVE.keys() <= OPERATORS.keys()

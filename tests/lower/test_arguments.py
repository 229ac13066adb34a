"""The parameters of a function: what they may be, what must be among them, what is allocated instead."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, LoweringError
from tedsl.ir.buffer import decl_buffer
from tedsl.ir.evaluate import run
from tedsl.ir.stmt import BufferRealize
from tedsl.ir.walk.visitor import post_order
from tedsl.lower.lower import lower_schedule
from tedsl.schedule.handles import create_schedule
from tests.lower.programs import check, whole_numbers
from tests.one_stage import added, doubled, runs
from tests.refusing import refused

A = te.placeholder((10,), name="A")
B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
C = te.compute((10,), lambda i: B[i] * 2.0, name="C")


def schedule():
    return create_schedule(C.op)


def allocated(func):
    return sorted(node.buffer.name for node in post_order(func.body) if isinstance(node, BufferRealize))


def refuses(args, words, s=None, **more):
    refused(lambda: lower_schedule(s or schedule(), args, **more), *words, error=LoweringError)


@pytest.mark.parametrize("value", [np.zeros((30, 40), "float32"), tedsl.nd.empty((30, 40))], ids=["numpy", "nd"])
def test_an_array_among_the_parameters_is_told_by_its_shape(value):
    refuses([value, C], ["argument 1 of the function is an array of shape (30, 40) (", "when the built function is called"])


def test_an_input_that_is_not_an_argument_is_named():
    refuses([C], ["the program reads A, which is not among the arguments", "hint: pass it to lower or build too"])


def test_every_missing_input_is_named():
    other = te.placeholder((10,), name="D")
    out = te.compute((10,), lambda i: A[i] + other[i], name="E")
    refuses([out], ["reads A, D, which are not among"], create_schedule(out.op))


def test_an_argument_given_twice_is_refused():
    refuses([A, A, C], ["A is given twice in the arguments: A, A, C"])


@pytest.mark.parametrize("wrong", [3, "A", None, (10,)])
def test_what_is_no_argument_is_refused(wrong):
    refuses([A, wrong, C], ["argument 2 of the function is", "arguments are tensors, variables of te.var, and buffers"])


def test_an_inlined_stage_cannot_be_an_argument():
    s = schedule()
    s[B].compute_inline()
    refuses([A, B, C], ["B is an argument, and its stage is computed inline: nothing would write it", "s[B].compute_root()"], s)


@pytest.mark.parametrize("extent, formula", [(5, lambda i: B[i]), (5, lambda i: B[i * 2]), (9, lambda i: B[i] + B[i + 1]),
                                             (10, lambda i: te.if_then_else(i < 5, B[i], 0.0))])
def test_an_attached_stage_that_is_read_in_part_cannot_be_an_argument(extent, formula):
    out = te.compute((extent,), formula, name="D")
    s = create_schedule(out.op)
    s[B].compute_at(s[out], out.op.axis[0])
    refuses([A, B, out], ["B is an argument, and its stage is computed inside a loop of another one"], s)


def test_an_attached_reduction_in_a_parallel_loop_cannot_be_an_argument():
    """Two threads may compute one element: one would start it over while the other reads it."""
    k = te.reduce_axis((0, 10), name="k")
    total = te.compute((10,), lambda i: te.sum(A[k], axis=k), name="T")
    out = te.compute((10, 10), lambda i, j: total[i] * j, name="D")
    s = create_schedule(out.op)
    s[out].reorder(out.op.axis[1], out.op.axis[0])
    s[total].compute_at(s[out], out.op.axis[0])
    lower_schedule(s, [A, total, out])
    s[out].parallel(out.op.axis[1])
    refuses([A, total, out], ["T is an argument", "by one thread at a time"], s)


def test_a_variable_that_no_argument_binds_is_named():
    n = te.var("n")
    out = te.compute((10,), lambda i: A[i] + n.astype("float32"), name="E")
    refuses([A, out], ["the loops use n, and no argument gives it a value", "pass n as an argument"], create_schedule(out.op))


def test_a_variable_can_be_an_argument():
    n = te.var("n")
    out = te.compute((10,), lambda i: A[i] + n.astype("float32"), name="E")
    check(create_schedule(out.op), [n, A, out], {n: 5, A: whole_numbers((10,))}, {n: 5})


def test_a_root_stage_in_between_can_be_an_argument():
    func = lower_schedule(schedule(), [A, B, C])
    assert allocated(func) == []
    check(schedule(), [A, B, C], {A: whole_numbers((10,))})


def test_an_output_that_is_no_argument_is_allocated():
    assert allocated(lower_schedule(schedule(), [A])) == ["B", "C"]


def test_arguments_that_the_program_does_not_use_are_kept():
    other, n = te.placeholder((3,), name="U"), te.var("n")
    func = lower_schedule(schedule(), [other, A, C, n])
    assert [p.name for p in func.params] == ["U", "A", "C", "n"]


def test_symbolic_dimensions_have_symbolic_strides_and_constant_ones_are_compact():
    n = te.var("n")
    source = te.placeholder((n, 4), name="S")
    out = te.compute((n, 4), lambda i, j: source[i, j] + 1.0, name="O")
    func = lower_schedule(create_schedule(out.op), [source, out, A])
    assert [len(b.strides) for b in func.buffers] == [2, 2, 0]
    assert [b.buffer_type for b in func.buffers] == ["auto", "auto", ""]


def test_strided_arrays_are_read_through_their_strides():
    n = te.var("n")
    source = te.placeholder((n, n), name="S")
    out = te.compute((n, n), lambda i, j: source[j, i] + 1.0, name="O")
    a, b = whole_numbers((6, 6)).T, np.zeros((6, 6), "float32", order="F")
    run(lower_schedule(create_schedule(out.op), [source, out]), [a, b])
    np.testing.assert_array_equal(b, a.T + 1)


def test_binds_gives_a_tensor_a_buffer_of_the_caller():
    buffer = decl_buffer((10,), "float32", name="mine", strides=[te.var("s0")])
    s = schedule()
    func = lower_schedule(s, [A, C], binds={A: buffer})
    assert func.buffers[0] is buffer
    out = np.zeros(10, "float32")
    run(func, [whole_numbers((20,))[::2], out])
    np.testing.assert_array_equal(out, (whole_numbers((20,))[::2] + 1) * 2)


def test_a_buffer_can_be_the_argument_itself():
    buffer = decl_buffer((10,), "float32", name="mine")
    func = lower_schedule(schedule(), [buffer, C], binds={A: buffer})
    assert func.buffers[0] is buffer
    assert "mine[i]" in str(func)


def test_tensors_of_replaced_operations_are_still_the_arguments():
    s = schedule()
    s.cache_write(C, "local")
    s.cache_read(A, "local", [B])
    check(s, [A, C], {A: whole_numbers((10,))})


def test_two_outputs_of_one_operation():
    first, second = te.compute((10,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="T")
    check(create_schedule(first.op), [A, first, second], {A: whole_numbers((10,))})
    func = lower_schedule(create_schedule(first.op), [A, second])
    assert allocated(func) == ["T.v0"]


def test_several_operations_are_outputs():
    other = te.compute((10,), lambda i: B[i] - 3.0, name="D")
    s = create_schedule([C.op, other.op])
    check(s, [A, other, C], {A: whole_numbers((10,))})


def test_the_attributes_of_the_function():
    func = lower_schedule(schedule(), [A, C], "kernel")
    assert dict(func.attrs) == {"from_legacy_te_schedule": True, "global_symbol": "kernel", "tir.noalias": True}


@pytest.mark.parametrize("tensor", [A, C])
def test_arrays_begin_with_their_first_element(tensor):
    """The offset was added to addresses of memory that the caller had not passed."""
    buffer = decl_buffer((10,), "float32", name="mine", elem_offset=2)
    with pytest.raises(LoweringError, match=r"mine begins at element 2 \(elem_offset\)(.|\n)*pass a view"):
        lower_schedule(schedule(), [A, C], binds={tensor: buffer})
    n = te.var("n")
    buffer = decl_buffer((n,), "float32", name="mine", elem_offset=n)
    with pytest.raises(LoweringError, match="mine begins at element n"):
        lower_schedule(schedule(), [A, C], binds={tensor: buffer})


def test_each_argument_has_memory_of_its_own():
    """Of two arguments with one buffer one array was read for both."""
    buffer = decl_buffer((10,), "float32", name="mine")
    for other in (buffer, decl_buffer((10,), "float32", name="other", data=buffer.data)):
        with pytest.raises(LoweringError, match=r"are two arguments with one pointer \(mine\)"):
            lower_schedule(schedule(), [A, C], binds={A: buffer, C: other})


def test_a_tensor_is_computed_in_the_place_of_another():
    buffer, data = decl_buffer((10,), "float32", name="mine"), whole_numbers((10,))
    expected = (data + 1) * 2
    run(lower_schedule(schedule(), [buffer], binds={A: buffer, C: buffer}), [data])
    np.testing.assert_array_equal(data, expected)


def in_one_place(formula, prepare=lambda s, A, C: None, shape=(10,)):
    """Runs C, `formula` of A, in the memory of A."""
    A = te.placeholder(shape, name="A")
    C = formula(A)
    s = create_schedule(C.op)
    prepare(s, A, C)
    buffer, data = decl_buffer(shape, "float32", name="mine"), whole_numbers(shape)
    run(lower_schedule(s, [buffer], binds={A: buffer, C: buffer}), [data])
    return data


def test_elements_are_read_before_others_are_written_over_them():
    """C was computed of elements of its own where it should have been of those of A."""
    plain = whole_numbers((10,))

    def turned(A):
        return te.compute((10,), lambda i: A[9 - i] * 2.0, name="C")

    with pytest.raises(LoweringError, match=r"A and C are kept in one buffer, mine, and C reads A where C may have"):
        in_one_place(turned)
    np.testing.assert_array_equal(in_one_place(turned, lambda s, A, C: s.cache_read(A, "global", [C])), plain[::-1] * 2)

    def through(A):
        B = te.compute((10,), lambda i: A[9 - i] + 1.0, name="B")
        return te.compute((10,), lambda i: B[i] * 2.0, name="C")

    np.testing.assert_array_equal(in_one_place(through), (plain[::-1] + 1) * 2)
    with pytest.raises(LoweringError, match="and B reads A where C may have overwritten it"):
        in_one_place(through, lambda s, A, C: s.stages[1].compute_at(s[C], C.op.axis[0]))

    k = te.reduce_axis((0, 3), name="k")
    with pytest.raises(LoweringError, match="and C reads A where C may have overwritten it"):
        in_one_place(lambda A: te.compute((10,), lambda i: te.sum(A[i] * k, axis=k), name="C"))


def test_what_the_schedule_does_not_compute_is_no_argument():
    other = te.compute((10,), lambda i: A[i] * 5.0, name="other")
    with pytest.raises(LoweringError, match=r"other is an argument, and the schedule does not compute it: it is made for C"):
        lower_schedule(schedule(), [A, other, C])
    with pytest.raises(LoweringError, match="B is bound to the buffer mine, and neither is an argument"):
        lower_schedule(schedule(), [A, C], binds={B: decl_buffer((10,), "float32", name="mine")})
    with pytest.raises(LoweringError, match="hint: pass the tensor B or that buffer too"):  # often they have one name
        lower_schedule(schedule(), [A, C], binds={B: decl_buffer((10,), "float32", name="B")})


@pytest.mark.parametrize("shape, dtype", [((15,), "float32"), ((17,), "float32"), ((4, 4), "float32"), ((16,), "float64")])
def test_a_buffer_that_does_not_fit_its_tensor(shape, dtype):
    s, a, c = doubled()
    with pytest.raises(LoweringError, match=r"the buffer Ab has shape(.|\n)*A.shape"):
        tedsl.build(s, [a, c], binds={a: tir.decl_buffer(shape, dtype, name="Ab")})


@pytest.mark.parametrize("binds", [3, {"A": 3}, {3: None}])
def test_binds_maps_tensors_to_buffers(binds):
    s, a, c = doubled()
    with pytest.raises(LoweringError, match="binds is a dict from tensors to buffers"):
        tedsl.lower(s, [a, c], binds=binds)


def test_a_buffer_of_another_symbolic_size_is_checked_at_the_call():
    s, a, c = doubled()
    f = tedsl.build(s, [a, c], binds={a: tir.decl_buffer((te.var("m"),), name="Ab")})
    assert runs(f)
    out = np.zeros(16, "float32")
    with pytest.raises(ArgumentError, match="dimension 0 of Ab is m, that of A 16"):
        f(np.ones(4, "float32"), out)
    assert not out.any()


def test_arguments_are_counted_from_1_in_lower_as_in_calls():
    s, (A, _) = added()
    with pytest.raises(tedsl.TedslError, match="argument 2 of the function is 3"):
        tedsl.lower(s, [A, 3])

"""te.extern: what it returns, and what it refuses where it is written."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentTypeError, DTypeError, ExpressionError, ShapeError
from tedsl.ir import builder
from tedsl.ir.expr import Expr
from tedsl.ir.stmt import Evaluate, For

n, m = te.var("n"), te.var("m")


def doubled(ins, outs):
    ib = builder.create()
    a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, ins[0].shape[0], name="i") as i:
        b[i] = a[i] * 2
    return ib.get()


def test_one_output():
    A = te.placeholder((n,), name="A")
    B = te.extern((n,), [A], doubled, name="B", tag="double", attrs={"k": 1})
    assert isinstance(B, te.Tensor) and tuple(B.shape) == (n,) and B.dtype == "float32" and B.name == "B"
    op = B.op
    assert isinstance(op, te.ExternOp) and isinstance(op, te.tensor.ExternOp)
    assert op.tag == "double" and op.attrs["k"] == 1 and op.num_outputs == 1
    assert list(op.inputs) == [A] and op.input_tensors == [A]
    assert isinstance(op.body, For)
    assert [b.name for b in (*op.input_placeholders, *op.output_placeholders)] == ["A", "B"]
    assert repr(op) == "extern(B, inputs=[A])"


def test_an_expression_is_evaluated():
    A = te.placeholder((m,), name="A")
    seen = []

    def call(ins, outs):
        seen.append((ins[0], outs[0]))
        return tir.call_packed("myadd", ins[0].data, outs[0].data, m)

    B = te.extern((m,), [A], call)
    assert isinstance(B.op.body, Evaluate) and isinstance(B.op.body.value, Expr) and B.op.name == "extern"
    assert all(isinstance(buffer, tir.Buffer) for buffer in seen[0])


def test_several_outputs():
    A, B = te.placeholder((m,), name="A"), te.placeholder((m,), name="B")
    found = te.extern([A.shape, (m, 4)], [A, B], lambda ins, outs: tir.call_packed("f", outs[0].data, outs[1].data), name="C")
    assert isinstance(found, list) and [len(t.shape) for t in found] == [1, 2]
    assert found[0].op is found[1].op and [t.value_index for t in found] == [0, 1]
    assert [t.dtype for t in found] == ["float32", "float32"]


@pytest.mark.parametrize("shape, rank", [(4, 1), (n, 1), ((), 0), ((4, n), 2), ([4, n], 2), ([(4, n)], 2), (n + 1, 1)])
def test_forms_of_one_shape(shape, rank):
    B = te.extern(shape, [], lambda ins, outs: tir.call_packed("f"), dtype="int32")
    assert isinstance(B, te.Tensor) and len(B.shape) == rank and B.dtype == "int32"


def test_dtypes():
    A, B = te.placeholder((4,), "int8", name="A"), te.placeholder((4,), "float32", name="B")

    def nothing(ins, outs):
        return tir.call_packed("f")

    assert te.extern((4,), [A], nothing).dtype == "int8"
    assert [t.dtype for t in te.extern([(4,), (4,)], [A, B], nothing, dtype=["int64", "float16"])] == ["int64", "float16"]
    assert [t.dtype for t in te.extern([(4,), (4,)], [A, B], nothing, dtype="bool")] == ["bool", "bool"]
    with pytest.raises(DTypeError, match=r"extern C: the dtype of the output is not given, and the inputs have int8, float32"):
        te.extern((4,), [A, B], nothing, name="C")
    with pytest.raises(DTypeError, match=r"there are no inputs to take it from(.|\n)*dtype='float32'"):
        te.extern((4,), [], nothing)
    with pytest.raises(ArgumentTypeError, match=r"1 dtype for 2 outputs"):
        te.extern([(4,), (4,)], [A], nothing, dtype=["int8"])


def test_what_the_function_may_not_return():
    A = te.placeholder((4,), name="A")
    with pytest.raises(ExpressionError, match=r"extern B: the function returned None(.|\n)*return ib.get\(\)"):
        te.extern((4,), [A], lambda ins, outs: None, name="B")
    with pytest.raises(ExpressionError, match=r"hint: write `return ib.get\(\)`"):
        te.extern((4,), [A], lambda ins, outs: builder.create(), name="B")
    with pytest.raises(ExpressionError, match=r"returned 'x' \(str\), not a statement"):
        te.extern((4,), [A], lambda ins, outs: "x", name="B")
    with pytest.raises(ArgumentTypeError, match=r"fcompute is 3, not a function"):
        te.extern((4,), [A], 3)


def test_inputs_are_tensors():
    with pytest.raises(ArgumentTypeError, match=r"the inputs are \[3\], not a list of tensors"):
        te.extern((4,), [3], doubled)
    A = te.placeholder((4,), name="A")
    assert list(te.extern((4,), A, doubled).op.inputs) == [A]


def test_buffers_of_the_caller():
    A = te.placeholder((n, m), name="A")
    steps = [te.var("s0"), te.var("s1")]
    mine = tir.decl_buffer((n, m), "float32", "mine", strides=steps, elem_offset=te.var("at"))
    out = tir.decl_buffer((n, m), "float32", "out")
    given = []

    def body(ins, outs):
        given.append((ins, outs))
        return tir.call_packed("f")

    te.extern((n, m), [A], body, in_buffers=[mine], out_buffers=out)
    assert given == [([mine], [out])]
    with pytest.raises(ArgumentTypeError, match=r"2 in_buffers for 1 input\n"):
        te.extern((n, m), [A], body, in_buffers=[mine, mine])
    with pytest.raises(ArgumentTypeError, match=r"out_buffers is \[3\], not a list of buffers"):
        te.extern((n, m), [A], body, out_buffers=[3])
    with pytest.raises(ShapeError, match=r"buffer mine of in_buffers has the shape \[n, m\], the tensor B has \[4\]"):
        te.extern((4,), [te.placeholder((4,), name="B")], body, in_buffers=mine)
    with pytest.raises(ShapeError, match=r"has the shape \[5\], the tensor extern has \[4\]"):
        te.extern((4,), [], body, out_buffers=tir.decl_buffer((5,)), dtype="float32")
    with pytest.raises(DTypeError, match=r"holds float32, the tensor extern int8"):
        te.extern((4,), [], body, out_buffers=tir.decl_buffer((4,)), dtype="int8")


def test_a_tag_scope_holds_for_externs():
    A = te.placeholder((4,), name="A")
    with te.tag_scope("mine"):
        assert te.extern((4,), [A], doubled).op.tag == "mine"


def test_inputs_that_are_stored_to():
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        ib.buffer_ptr(ins[1])[0] = ib.buffer_ptr(ins[0])[0]
        return ib.get()

    assert te.extern((4,), [A, B], body).op.stored_inputs == [B]


def test_memory_that_begins_anywhere():
    """The buffers of te.extern take the offset that `binds` gives an array, in accesses, and in arrays for functions."""
    seen = []
    A = te.placeholder((4,), name="A")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i:
            target[i] = source[i] * 2.0
        ib.emit(tir.call_packed("extern.seen", ins[0], outs[0]))
        return ib.get()

    B = te.extern((4,), [A], body, name="B", dtype="float32")
    binds = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1) for t in (A, B)}
    tedsl.register_func("extern.seen", lambda *arrays: seen.extend(array.numpy().tolist() for array in arrays), override=True)
    kernel = tedsl.build(te.create_schedule(B.op), [A, B], binds=binds)
    a, b = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    kernel(a[4:], b)
    assert b.tolist() == [8, 10, 12, 14] and seen == [[4, 5, 6, 7], [8, 10, 12, 14]]

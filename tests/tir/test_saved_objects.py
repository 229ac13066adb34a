"""What `ir.save_json` writes besides loops: tensors with their operations, schedules, arrays, containers."""

import json

import numpy as np
import pytest

import tedsl
from tedsl import ir, te, tir
from tedsl.errors import ArgumentError


def again(value):
    return ir.load_json(ir.save_json(value))


def row_sums():
    n = te.size_var("n")
    rows = te.placeholder((n, 3), name="rows")
    k = te.reduce_axis((0, 3), "k")
    return rows, te.compute((n,), lambda i: te.sum(rows[i, k], axis=k), name="sums", attrs={"level": 2, "list": [7, 8]})


def test_a_tensor_computes_what_it_computed():
    rows, sums = row_sums()
    copy = again(sums)
    assert isinstance(copy, te.tensor.Tensor)
    assert str(copy) == str(sums)
    assert copy.op.attrs["list"][1].value == 8
    (read,) = copy.op.input_tensors
    values, found = np.arange(6, dtype="float32").reshape(2, 3), np.zeros(2, "float32")
    tedsl.build(te.create_schedule(copy.op), [read, copy])(values, found)
    np.testing.assert_array_equal(found, values.sum(1))


def test_scans_and_statements_of_a_program_are_saved():
    state, x = te.placeholder((5, 4), name="state"), te.placeholder((5, 4), name="x")
    scan = te.scan(te.compute((1, 4), lambda _, i: x[0, i]), te.compute((5, 4), lambda t, i: state[t - 1, i] + x[t, i]), state)
    assert isinstance(again(scan.op), te.ScanOp)
    two = tir.const(2.0, "float32x4")
    twice = te.extern((4,), [te.placeholder((4,), name="a")],
                      lambda ins, outs: outs[0].vstore(0, ins[0].vload(0, "float32x4") * two), name="twice")
    copy = again(twice)
    found = np.zeros(4, "float32")
    tedsl.build(te.create_schedule(copy.op), [copy.op.inputs[0], copy])(np.ones(4, "float32"), found)
    np.testing.assert_array_equal(found, np.full(4, 2, "float32"))


def test_a_schedule_has_its_directives_again():
    _, sums = row_sums()
    s = te.create_schedule(sums.op)
    cached = s.cache_write(sums, "global")
    outer, _ = s[sums].split(sums.op.axis[0], 4)
    s[cached].compute_at(s[sums], outer)
    copy = again(s)
    assert str(copy.journal) == str(s.journal)
    texts = [str(tedsl.lower(one, [find(one), one.outputs[0].output(0)], simple_mode=True)) for one in (s, copy)]
    assert texts[0] == texts[1]


def find(schedule):
    """The placeholder of a schedule."""
    return next(stage.origin_op.output(0) for stage in schedule.stages if isinstance(stage.origin_op, te.PlaceholderOp))


def test_arrays_and_containers():
    array = tedsl.nd.array(np.arange(6, dtype="int16").reshape(2, 3))
    copy = again({"first": array, "list": [array, 1]})
    np.testing.assert_array_equal(copy["first"].numpy(), array.numpy())
    assert copy["list"][0] is copy["first"]
    assert ir.structural_equal(copy["first"], array)
    assert not ir.structural_equal(tedsl.nd.array(np.zeros((3, 2), "int16")), array)


@pytest.mark.parametrize(("old", "new"), [("ComputeOp", "Schedule"), ("PlaceholderOp", "Operation"),
                                          ('"float32"', '"float3"')])
def test_damaged_text_is_refused(old, new):
    text = ir.save_json(row_sums()[1])
    with pytest.raises(ArgumentError, match="not data of a program"):
        ir.load_json(text.replace(old, new))


def test_arrays_whose_bytes_do_not_fill_their_shape_are_refused():
    data = json.loads(ir.save_json(tedsl.nd.array(np.zeros(4, "float32"))))
    data["nodes"][0][2] = ["t", 5]
    with pytest.raises(ArgumentError, match="not data of a program"):
        ir.load_json(json.dumps(data))

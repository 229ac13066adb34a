"""The functions test.op.InferTensorizeRegion and MatchTensorizeBody, by which tests of TVM look into tensorization."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError

INFER, MATCH = (tedsl.get_global_func(f"test.op.{name}") for name in ("InferTensorizeRegion", "MatchTensorizeBody"))


def sums(rows, terms):
    """An intrinsic that adds up rows."""
    a, k = te.placeholder((rows, terms), name="a"), te.reduce_axis((0, terms), "k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="b")

    def statements(ins, outs):
        return tir.call_packed("sums", ins[0], outs[0]), None, tir.call_packed("more", ins[0], outs[0])

    return te.decl_tensor_intrin(b.op, statements, name="sums", default_buffer_params={"offset_factor": 1})


def tensorized(intrin):
    """Sums of A[4 yi + ..., x, k] along k, for blocks of four rows and eight terms."""
    A, k = te.placeholder((16, 3, 32), name="A"), te.reduce_axis((0, 32), "k")
    B = te.compute((3, 16), lambda x, y: te.sum(A[y, x, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    yo, yi = s[B].split(B.op.axis[1], 4)
    ko, ki = s[B].split(k, 8)
    s[B].reorder(B.op.axis[0], yo, ko, yi, ki)
    s[B].tensorize(yi, intrin)
    return s, A, B, (B.op.axis[0], yo, ko), k


def same(given, low, extent):
    return tir.analysis.expr_deep_equal(given.min, low) and given.extent.value == extent


def test_ranges_of_one_iteration_of_the_loops_around():
    intrin = sums(4, 8)
    s, A, B, (x, yo, ko), k = tensorized(intrin)
    out, inputs = INFER(s[B], te.schedule.InferBound(s))
    assert same(out[x], x.var, 1) and same(out[B.op.axis[1]], yo * 4, 4) and same(out[k], ko * 8, 8)
    ((tensor, region),) = inputs.items()
    assert tensor == A and inputs.items()[0][1] is region
    assert [same(*part) for part in zip(region, (yo * 4, x.var, ko * 8), (4, 1, 8))] == [True] * 3
    assert MATCH(s[B], out, inputs, intrin)[0] is intrin.op.body[0]


def test_what_does_not_fit_is_refused():
    s, A, B, _, _ = tensorized(sums(4, 8))
    bounds = te.schedule.InferBound(s)
    with pytest.raises(LoweringError, match=r"the intrinsic has \(4,\), the loops cover \(8,\)"):
        MATCH(s[B], {}, {}, sums(4, 4))
    with pytest.raises(ArgumentTypeError, match="takes an intrinsic, not 3"):
        MATCH(s[B], {}, {}, 3)
    with pytest.raises(ArgumentError, match="no loop of A is tensorized"):
        INFER(s[A], bounds)
    with pytest.raises(ArgumentTypeError, match="a stage is needed"):
        INFER(B, bounds)

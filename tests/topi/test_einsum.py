"""einsum against numpy."""

import numpy as np
import pytest

import topi
from tedsl import te
from tedsl.errors import ArgumentError, ShapeError
from tests.topi.checking import check, tensor
from topi.kinds import EinsumOp

n, m = te.size_var("n"), te.size_var("m")


@pytest.mark.parametrize("subscripts, shapes", [
    ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij,jk", [(3, 4), (4, 1)]), ("ii", [(4, 4)]), ("ii->i", [(4, 4)]), ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]), ("i,j->ij", [(2,), (3,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("i,i", [(5,), (5,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("...i->...", [(2, 3, 4)]),
    ("ij...,jk...->ik...", [(3, 4, 2), (4, 5, 1)]), ("ba", [(2, 3)]), (" i j , j -> i ", [(2, 3), (3,)]),
    ("ij,j->i", [(2, 3), (1,)]),
    ("a...a->...", [(3, 2, 3)]), ("i->i", [(0,)]), ("ij,jk->ik", [((n, 3), (m, 4)), ((m, 4), 2)]), ("...,...", [(), (3,)]),
])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_einsum(subscripts, shapes, dtype):
    pairs = [tensor(shape, dtype, name=f"a{k}") for k, shape in enumerate(shapes)]
    made = topi.einsum(subscripts, *[a for a, _ in pairs])
    assert (made.name, made.op.tag, made.op.info.subscripts) == ("T_einsum", "einsum", subscripts)
    check(made, dict(pairs), np.einsum(subscripts, *[x for _, x in pairs]), rtol=1e-5)


def test_narrow_floats_are_summed_in_float32():
    (a, x), (b, y) = tensor((2, 3000), "float16"), tensor((3000,), "float16", "b")
    x, y = np.full_like(x, 0.1), np.full_like(y, 1)
    made = topi.einsum("ij,j->i", a, b)
    assert made.dtype == "float16" and isinstance(made.op.input_tensors[0].op.info, EinsumOp)
    check(made, {a: x, b: y}, (x.astype("float32") @ y.astype("float32")).astype("float16"), rtol=1e-3)


@pytest.mark.parametrize("subscripts, shapes, error, words", [
    ("ij,jk->ik", [(2, 3)], ArgumentError, "2 operands are written and 1 given"),
    ("ij,jk->il", [(2, 3), (3, 4)], ArgumentError, "the result names l"),
    ("ij->ii", [(2, 3)], ArgumentError, "the result names i, i"),
    ("i1->i", [(2, 3)], ArgumentError, "'i1' has characters that are not letters"),
    ("ijk->i", [(2, 3)], ShapeError, r"'ijk' has 3 letters and a0 the shape \(2, 3\)"),
    ("i->i", [(2, 3)], ShapeError, r"'i' has 1 letters and a0"),
    ("ij,jk->ik", [(2, 3), (4, 5)], ShapeError, r"'j' is 3 and in a1 of the shape \(4, 5\) it is 4"),
])
def test_what_is_refused(subscripts, shapes, error, words):
    with pytest.raises(error, match=words):
        topi.einsum(subscripts, *[te.placeholder(shape, name=f"a{k}") for k, shape in enumerate(shapes)])

"""Adjoints of products of matrices against central differences."""

import itertools

import pytest

import topi
from tedsl import te
from tests.topi.adjoints.differences import check_record, distinct
from topi import nn

BOTH = list(itertools.product((False, True), repeat=2))


def operand(name, shape, turned):
    shape = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
    return te.placeholder(shape, "float64", name=name), distinct(shape, seed=len(name))


@pytest.mark.parametrize("transpose_a, transpose_b", BOTH)
@pytest.mark.parametrize("m, k, n", [(3, 5, 7), (1, 4, 2), (17, 3, 19)])
def test_matmul(m, k, n, transpose_a, transpose_b):
    feeds = dict([operand("a", (m, k), transpose_a), operand("bb", (k, n), transpose_b)])
    check_record(nn.matmul(*feeds, transpose_a=transpose_a, transpose_b=transpose_b), feeds)


@pytest.mark.parametrize("transpose_a, transpose_b", BOTH)
@pytest.mark.parametrize("of_a, of_b", [(3, 3), (1, 3), (3, 1)])
def test_batch_matmul(of_a, of_b, transpose_a, transpose_b):
    feeds = dict([operand("a", (of_a, 4, 5), transpose_a), operand("bb", (of_b, 5, 2), transpose_b)])
    check_record(nn.batch_matmul(*feeds, transpose_a=transpose_a, transpose_b=transpose_b), feeds)


def test_a_matrix_times_itself():
    a = te.placeholder((4, 4), "float64", name="a")
    check_record(nn.matmul(a, a), {a: distinct((4, 4))})


def test_dense_and_narrow_operands():
    data, weight = te.placeholder((2, 3), "float16", name="data"), te.placeholder((4, 3), "float16", name="weight")
    wide = nn.dense(data, weight, out_dtype="float32")
    found = wide.op.info.adjoint(wide.op, te.placeholder(wide.shape, "float32", name="head"), [data, weight])
    assert [str(found[tensor].dtype) for tensor in (data, weight)] == ["float16", "float16"]


@pytest.mark.parametrize("subscripts, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]), ("ij->j", [(3, 4)]), ("ij->ji", [(3, 4)]),
    ("ij,ij", [(3, 4), (3, 4)]), ("ij,kl->il", [(3, 4), (2, 5)]), ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]), ("abc,cd,de->abe", [(2, 3, 4), (4, 2), (2, 3)]),
])
def test_einsum(subscripts, shapes):
    feeds = {te.placeholder(shape, "float64", name=f"x{n}"): distinct(shape, seed=n) for n, shape in enumerate(shapes)}
    check_record(topi.einsum(subscripts, *feeds), feeds)


def test_einsum_of_one_tensor_twice_and_of_a_diagonal():
    a = te.placeholder((3, 3), "float64", name="a")
    check_record(topi.einsum("ij,kj->ik", a, a), {a: distinct((3, 3))})
    diagonal = topi.einsum("ii->i", a)
    assert diagonal.op.info.adjoint(diagonal.op, te.placeholder(diagonal.shape, "float64", name="head"), [a]) is None

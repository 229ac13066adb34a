"""Equality by structure and the hash that goes with it."""

import subprocess
import sys

import pytest

from tedsl.ir import build
from tedsl.ir.expr import Add, Let, Var
from tedsl.ir.func import IRModule
from tedsl.ir.stmt import Evaluate, ForKind
from tedsl.ir.walk.equal import assert_structural_equal, structural_equal, structural_hash
from tedsl.ir.walk.substitute import fresh_copy
from tests.ir.programs import loop, row_sum

x, y = Var("x"), Var("y")


def test_programs_that_differ_in_names_only_are_equal():
    a, b = row_sum(), row_sum()
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert structural_equal(a.body, fresh_copy(a.body)) and structural_hash(a.body) == structural_hash(fresh_copy(a.body))
    assert structural_equal(IRModule({"f": a}), IRModule({"f": b}))
    assert not structural_equal(IRModule({"f": a}), IRModule({"g": b}))
    assert structural_hash(IRModule({"f": a})) == structural_hash(IRModule({"f": b}))


def test_free_variables_stand_for_themselves_unless_mapped():
    assert structural_equal(build.add(x, 1), build.add(x, 1))
    assert not structural_equal(build.add(x, 1), build.add(y, 1))
    assert structural_equal(build.add(x, 1), build.add(y, 1), map_free_vars=True)
    assert not structural_equal(Add(x, x), Add(x, y), map_free_vars=True)
    assert not structural_equal(Add(x, y), Add(x, x), map_free_vars=True)
    assert structural_equal(Let(x, build.const(1), Add(x, x)), Let(y, build.const(1), Add(y, y)))


@pytest.mark.parametrize("a, b", [
    (build.const(1), build.const(2)), (build.const(1), build.const(1, "int64")), (build.const(0.0), build.const(-0.0)),
    (build.add(x, 1), build.sub(x, 1)), (loop(x, 3, Evaluate(x)), loop(x, 3, Evaluate(x), ForKind.PARALLEL)),
    (build.call("tir.exp", Var("v", "float32")), build.call("tir.log", Var("v", "float32"))),
], ids=str)
def test_programs_that_are_not_equal(a, b):
    assert not structural_equal(a, b, map_free_vars=True)
    assert structural_hash(a) != structural_hash(b)


def test_nan_equals_itself():
    assert structural_equal(build.const(float("nan")), build.const(float("nan")))


def test_the_first_difference_is_named():
    a, b = loop(x, 3, Evaluate(build.add(x, 1))), loop(y, 3, Evaluate(build.add(y, 2)))
    with pytest.raises(AssertionError, match=r"differ at body\.value\.b\.value:\n  1\nis not\n  2"):
        assert_structural_equal(a, b)
    assert_structural_equal(a, fresh_copy(a))


def test_shared_and_copied_subtrees_are_equal():
    def tower(share):
        e = x
        for _ in range(12):
            e = Add(e, e) if share else Add(e, fresh(e))
        return e

    def fresh(e):
        return e if isinstance(e, Var) else Add(fresh(e.a), fresh(e.b))

    assert structural_equal(tower(True), tower(False)) and structural_hash(tower(True)) == structural_hash(tower(False))


def test_deep_expressions():
    def deep():
        e = x
        for _ in range(10_000):
            e = build.add(build.mul(e, 3), 1)
        return e

    assert structural_equal(deep(), deep()) and structural_hash(deep()) == structural_hash(deep())


def test_the_hash_is_that_of_every_process():
    code = ("from tests.ir.programs import row_sum; from tedsl.ir.walk.equal import structural_hash\n"
            "print(structural_hash(row_sum()))")
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ".", "TEDSL_CACHE_DIR": "off"}).stdout
             for seed in ("1", "2")}
    assert found == {f"{structural_hash(row_sum())}\n"}

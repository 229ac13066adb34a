"""What `tedsl.testing` gives to tests: run in a pytest of its own, and looked at from outside."""

import subprocess
import sys

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import ArgumentError

SUITE = '''
import tedsl, tedsl.testing
size = tedsl.testing.parameter(3, 5, ids=["three", "five"])
dtype = tedsl.testing.parameter(by_dict={"whole": "int32"})
rows, columns = tedsl.testing.parameters((1, 10), (2, 20))
calls = []

@tedsl.testing.fixture(cache_return_value=True)
def data(size):
    calls.append(size)
    return [size]

@tedsl.testing.fixture
def fresh():
    return []

def test_size(size, dtype, fresh): assert size in (3, 5) and dtype == "int32" and fresh == []
def test_together(columns, rows): assert columns == 10 * rows
def test_alone(rows): assert rows in (1, 2)

def test_copies(data, size): data.append(0); assert data == [size, 0]
def test_cached(data, size): assert data == [size] and sorted(calls) in ([3], [5], [3, 5])

class TestInside:
    low, high = tedsl.testing.parameters((1, 2), (3, 4))
    one = tedsl.testing.parameter(1)
    def test_inside(self, low, high, one, rows): assert high == low + one

@tedsl.testing.parametrize_targets
def test_all(target, dev): assert tedsl.target.Target(target).kind.name == "llvm" and dev == tedsl.cpu(0)

@tedsl.testing.parametrize_targets("llvm", "cuda")
def test_named(target): assert target == "llvm"

@tedsl.testing.requires_llvm
def test_llvm(): pass

@tedsl.testing.requires_llvm()
def test_llvm_called(): pass

@tedsl.testing.requires_gpu
def test_gpu(): assert False
'''


def test_parameters_fixtures_and_targets_in_pytest(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", tmp_path, "-c",
               "/dev/null", tmp_path / "test_suite.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "18 passed, 2 skipped" in done.stdout, done.stdout + done.stderr
    for name in ("test_size[three-whole]", "test_size[five-whole]", "test_named[llvm] PASSED", "test_named[cuda] SKIPPED",
                 "test_all[llvm]"):
        assert name in done.stdout


def test_parameters_that_do_not_fit():
    with pytest.raises(ArgumentError, match="all are of one length"):
        tedsl.testing.parameters((1, 2), (3,))
    with pytest.raises(ArgumentError, match="by_dict has the values"):
        tedsl.testing.parameter(1, by_dict={"a": 1})


def test_targets():
    assert tedsl.testing.enabled_targets() == [("llvm", tedsl.cpu(0))]
    assert tedsl.testing.device_enabled("llvm") and not tedsl.testing.device_enabled("cuda")


def test_expressions_that_are_equal_for_all_values():
    n, m = te.var("n"), te.var("m")
    tedsl.testing.assert_prim_expr_equal((n + m) * 2, n * 2 + 2 * m)
    tedsl.testing.assert_prim_expr_equal(tir.const(4), 4)
    for other in (n, n * 2, m):
        with pytest.raises(AssertionError, match="not known to be equal"):
            tedsl.testing.assert_prim_expr_equal(n + 1, other)


def test_derivatives_against_differences():
    x, y = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([0.5, 2.0])

    def value(x, y):
        return float((x * x).sum() + (x @ y).sum())

    right = [2 * x + y, x.sum(axis=0)]
    tedsl.testing.check_numerical_grads(value, [x, y], right)
    tedsl.testing.check_numerical_grads(value, {"y": y, "x": tedsl.nd.array(x)}, {"x": right[0], "y": right[1]})
    for wrong, match in (([2 * x, right[1]], "by input 0 are at a distance"), ([right[0], right[1] + 3], "by input 1 are at"),
                         ([right[0], np.array([1.0])], r"input 1 has shape \(2,\)")):
        with pytest.raises(AssertionError, match=match):
            tedsl.testing.check_numerical_grads(value, [x, y], wrong)
    with pytest.raises(ArgumentError, match="one array of derivatives for each"):
        tedsl.testing.check_numerical_grads(value, [x, y], right[:1])


def test_a_condition_is_tried_for_all_values():
    x, y = te.var("x"), te.var("y")
    ranges = {x: te.Range(0, 10), y: te.Range(-3, 4)}
    check = tedsl.testing.check_bool_expr_is_true
    check(x + y >= -3, ranges)
    check(x > y, ranges, cond=x > 2 * tir.abs(y) + 1)
    with pytest.raises(AssertionError, match=r"does not hold for x = 0, y = 0"):
        check(x > y, ranges, cond=y >= 0)
    with pytest.raises(ArgumentError, match="uses y, and vranges has no range of it"):
        check(x > y, {x: te.Range(0, 2)})
    with pytest.raises(ArgumentError, match="not of constants"):
        check(x > y, {x: te.Range(0, y)})


def test_gpus_and_main(tmp_path):
    file = tmp_path / "test_devices.py"
    file.write_text("import tedsl.testing\n"
                    "@tedsl.testing.requires_cuda\ndef test_cuda(): assert False\n"
                    "@tedsl.testing.requires_vulkan()\ndef test_vulkan(): assert False\n"
                    "@tedsl.testing.uses_gpu\ndef test_any(): pass\n"
                    "def test_wrong(): assert False\n"
                    "if __name__ == '__main__': tedsl.testing.main()\n")
    for options, counts, code in [([], "1 failed, 1 passed, 2 skipped", 1), (["-k", "any"], "1 passed, 3 deselected", 0)]:
        done = subprocess.run([sys.executable, str(file), "-p", "no:cacheprovider", *options], capture_output=True, text=True,
                              check=False, cwd=tmp_path)
        assert counts in done.stdout and done.returncode == code, done.stdout

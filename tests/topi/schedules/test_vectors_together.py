"""Element-wise functions: several vectors in a step where chains of operations would wait, also where chunks leave a rest."""

import pytest

import tedsl
import topi
from tedsl import te

AVX2 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"
AVX512 = "llvm -mtriple=x86_64-linux-gnu -mcpu=znver4"


def lanes(function, size, target):
    x = te.placeholder(size if isinstance(size, tuple) else (size,), name="x")
    y = function(x)
    with tedsl.target.Target(target):
        schedule = topi.x86.schedule_injective(y)
    (vector,) = [r for r in schedule[y].relations if getattr(r, "inner", None) is schedule[y].leaf_iter_vars[-1]]
    return vector.factor


@pytest.mark.parametrize("function, size, target, expected", [
    (topi.exp, 100_000, AVX2, 32),
    (topi.tanh, 1000 * 16, AVX2, 32),
    (topi.exp, 101 * 16, AVX2, 32),
    (topi.exp, 100_003, AVX2, 32),
    (topi.exp, 256, AVX2, 32),
    (topi.exp, (100, 1003), AVX2, 32),
    (topi.exp, (1003, 100), AVX2, 32),
    (topi.exp, (1003, 51), AVX2, 32),
    (topi.exp, (1003, 51), AVX512, 64),
    (topi.exp, (1003, 130), AVX512, 64),
    (lambda x: topi.add(x, 1.0), 100_000, AVX2, 8),
    (topi.exp, 100_000, AVX512, 64),
    (topi.exp, 1 << 20, AVX512, 64),
])
def test_vectors_of_a_step(function, size, target, expected):
    assert int(lanes(function, size, target)) == expected


@pytest.mark.parametrize("columns, target, expected", [(1446, AVX2, 32), (100, AVX2, 32), (1446, AVX512, 64)])
def test_exponentials_of_a_softmax(columns, target, expected):
    out = topi.nn.softmax(te.placeholder((40, columns), name="x"))
    with tedsl.target.Target(target):
        schedule = topi.schedules.schedule([out])
    (exponentials,) = [stage for stage in schedule.stages if stage.op.name == "T_softmax_exp"]
    (vector,) = [r for r in exponentials.relations if getattr(r, "inner", None) is exponentials.leaf_iter_vars[-1]]
    assert int(vector.factor) == expected

"""Implementations that a program registers for operators and schedules of topi, as programs of TVM 0.6 do."""

import pickle

import numpy as np
import pytest

import tedsl
import topi
from tedsl import te
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.target.generic import with_implementations


def test_the_target_chooses_an_operator():
    called = []

    @topi.nn.dense.register(["test_board"])
    def dense_of_a_program(data, weight, bias=None, out_dtype=None):
        called.append(topi.nn.dense.get_packed_func())
        return topi.nn.relu(topi.nn.dense(data, weight, bias, out_dtype))  # the operator itself, and no endless call

    a, b = te.placeholder((2, 3), name="a"), te.placeholder((4, 3), name="b")
    topi.nn.dense(a, b)
    with tedsl.target.Target("cuda"):
        topi.nn.dense(a, b)
    assert called == []
    with tedsl.target.Target("llvm -keys=test_board,cpu"):
        out = topi.nn.dense(a, b)
        s = topi.generic.schedule_dense([out])
    assert called == [dense_of_a_program] and topi.nn.dense.get_packed_func() is not dense_of_a_program
    given = np.random.default_rng(1).standard_normal((6, 3)).astype("float32")
    result = np.empty((2, 4), "float32")
    tedsl.build(s, [a, b, out])(given[:2], given[2:], result)
    np.testing.assert_allclose(result, np.maximum(given[:2] @ given[2:].T, 0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"dense has an implementation for 'test_board' already\n.*allow_override"):
        topi.nn.dense.register(dense_of_a_program, "test_board")
    with pytest.raises(ArgumentTypeError, match="keys of targets are strings"):
        topi.nn.dense.register(dense_of_a_program, 3)


def test_the_target_chooses_a_schedule():
    @topi.generic.schedule_lrn.register(["test_board"])
    def schedule_of_a_program(outs):
        s = topi.generic.schedule_lrn(outs)
        s[outs[0]].parallel(s[outs[0]].op.axis[0])
        return s

    a = te.placeholder((2, 4, 3, 3), name="a")
    out = topi.nn.lrn(a, 3)
    assert "parallel" not in str(tedsl.lower(topi.generic.schedule_lrn([out]), [a, out]))
    with tedsl.target.Target("llvm -keys=test_board,cpu"):
        assert "parallel" in str(tedsl.lower(topi.generic.schedule_lrn([out]), [a, out]))
        assert "parallel" not in str(tedsl.lower(topi.generic.schedule_dense([out]), [a, out]))


def test_a_default_is_replaced_and_asked_for():
    def own(text):
        return text

    generic = with_implementations(own, "own", __name__)
    with pytest.raises(ArgumentError, match="set_default: own has a default already"):
        generic.set_default(len)
    assert generic("four") == "four"
    generic.set_default(len, allow_override=True)
    assert generic("four") == 4 and generic.get_packed_func() is len


def test_every_operator_of_networks_and_every_schedule_takes_implementations():
    rooms = {topi.nn: topi.nn.__all__, topi.vision: topi.vision.__all__, topi: ["argsort", "sort", "topk"],
             topi.generic: [name for name in dir(topi.generic) if name.startswith("schedule_")]}
    for room, names in rooms.items():
        for name in names:
            found = getattr(room, name)
            if callable(found):
                assert callable(found.register) and pickle.loads(pickle.dumps(found)) is found, name
    assert topi.generic.schedule_dense.__name__ == "schedule_dense"

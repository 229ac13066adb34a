"""Operators of programs, and rules of programs for operators."""

import numpy as np
import pytest

import tedsl
from tedsl import ir, te, tir
from tedsl.errors import ArgumentError, ArgumentTypeError, LoweringError, OptionError
from tedsl.ir import ops
from tedsl.ir.calls import registered, signatures


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    for owner, name in ((registered, "_ATTRIBUTES"), (registered, "_OWN"), (ops, "OPS"), (signatures, "SIGNATURES")):
        monkeypatch.setattr(owner, name, type(getattr(owner, name))(getattr(owner, name)))
    monkeypatch.setattr(registered, "OPS", ops.OPS)
    monkeypatch.setattr(registered, "SIGNATURES", signatures.SIGNATURES)


def logarithm(x):
    return tir.call_intrin(x.dtype, "tir.mylog", x)


def program(formula, dtype="float32"):
    n = te.var("n")
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: formula(A[i]), name="B")
    return te.create_schedule(B.op), A, B


def result(s, A, B, target="llvm"):
    x, y = np.linspace(0.5, 2, 11).astype(str(A.dtype)), np.zeros(11, str(B.dtype))
    tedsl.build(s, [A, B], target)(x, y)
    return x, y


@pytest.mark.parametrize("target", ["llvm", "default"])
def test_an_operator_of_the_program(target):
    ir.register_op_attr("tir.mylog", "TCallEffectKind", tir.CallEffectKind.Pure)
    s, A, B = program(logarithm)
    assert "@tir.mylog(" in str(tedsl.lower(s, [A, B])) and ir.Op.get("tir.mylog").is_pure
    with pytest.raises(LoweringError, match=r"no rule for tir\.mylog on llvm(.|\n)*register_intrin_lowering"):
        tedsl.build(s, [A, B])

    @ir.register_intrin_lowering("tir.mylog", target)
    def rule(call):
        assert isinstance(call, tir.Call)
        return tir.call_pure_extern("float32", "logf", call.args[0])

    s[B].vectorize(s[B].split(B.op.axis[0], 4)[1])
    x, y = result(s, A, B)
    np.testing.assert_allclose(y, np.log(x), rtol=1e-6)
    assert ir.Op.get("tir.mylog").get_attr(f"{target}.FLowerIntrinsic") is rule


def test_the_rule_of_the_highest_level_for_the_target():
    s, A, B = program(te.exp)
    for target, level, value in (("llvm", 10, 1.0), ("llvm", 20, 2.0), ("llvm", 15, 3.0), ("cuda", 99, 4.0),
                                 ("default", 99, 5.0)):
        tedsl.target.register_intrin_lowering("tir.exp", target, f=lambda call, value=value: call.args[0] * value, level=level)
    x, y = result(s, A, B)
    np.testing.assert_array_equal(y, x * 2)
    ir.Op.get("tir.exp").reset_attr("llvm.FLowerIntrinsic")
    x, y = result(s, A, B)
    np.testing.assert_array_equal(y, x * 5)
    with pytest.raises(OptionError, match="has no attribute"):
        ir.Op.get("tir.exp").reset_attr("llvm.FLowerIntrinsic")


def test_rules_that_keep_calls_and_rules_of_rules():
    ir.register_op_attr("tir.outer", "TCallEffectKind", tir.CallEffectKind.Pure)
    ir.Op.get("tir.outer").set_attr("llvm.FLowerIntrinsic", lambda call: te.sqrt(call.args[0]) + 1.0)
    ir.register_intrin_lowering(
        "tir.sqrt", "llvm", f=lambda call: call.args[0] * call.args[0] if call.dtype == "float64" else None)
    for dtype, want in (("float32", lambda x: np.sqrt(x) + 1), ("float64", lambda x: x * x + 1)):
        x, y = result(*program(lambda v: tir.call_intrin(v.dtype, "tir.outer", v), dtype))
        np.testing.assert_allclose(y, want(x), rtol=1e-6)


def test_what_is_refused():
    s, A, B = program(te.tanh)
    ir.register_intrin_lowering("tir.tanh", "llvm", f=lambda call: te.tanh(call.args[0] + 1.0))
    with pytest.raises(ArgumentError, match="again and again"):
        tedsl.build(s, [A, B])
    ir.register_intrin_lowering("tir.tanh", "llvm", f=lambda call: call.args[0].astype("float64"))
    with pytest.raises(ArgumentTypeError, match=r"returned float64\(A\[.*for a call of dtype float32"):
        tedsl.build(s, [A, B])
    for call in (lambda: ir.register_op_attr("", "TCallEffectKind", 1), lambda: ir.register_op_attr("tir.x", 3, 4),
                 lambda: ir.register_op_attr("tir.x", "TCallEffectKind", 9),
                 lambda: ir.register_op_attr("tir.x", "llvm.FLowerIntrinsic", 9),
                 lambda: ir.register_intrin_lowering("tir.x", 3)):
        with pytest.raises(ArgumentTypeError, match="register_"):
            call()

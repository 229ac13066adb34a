"""The last look before machine code: LLVM takes a store of another width, and what lies beside the array is overwritten."""

import pytest

from tedsl.codegen.backend import backend_for
from tedsl.errors import InternalError, LoweringError
from tedsl.ir import build
from tedsl.ir.expr import Call, Load, Var
from tedsl.ir.stmt import Store
from tedsl.passes.config import PassConfig
from tedsl.target.current import host_target
from tests.ir.programs import function, loop, vector_buffer

i = Var("i")
A = vector_buffer("A", 8)
LOAD = Load("float32", A.data, i)
BROKEN = {
    "likely of float32 is bool": Store(A.data, build.cast("float32", Call("bool", "tir.likely", (LOAD,))), i),
    "isnan of float32 is float32": Store(A.data, Call("float32", "tir.isnan", (LOAD,)), i),
    "shift_right of int32, int32 is int64":
        Store(A.data, LOAD, build.cast("int32", Call("int64", "tir.shift_right", (i, i)))),
    "an access of float64 to A, which holds float32": Store(A.data, build.const(1.0, "float64"), i),
    "an access of int64 to A, which holds float32": Store(A.data, build.cast("float32", Load("int64", A.data, i)), i),
}


def compiled(stmt):
    target = host_target()
    return backend_for(target).compile([function(loop(i, 8, stmt), A)], target, PassConfig())


@pytest.mark.parametrize("words", BROKEN, ids=lambda w: w.replace(" ", "-"))
def test_what_does_not_fit_never_becomes_machine_code(words):
    with pytest.raises(LoweringError, match=words) as caught:
        compiled(BROKEN[words])
    assert not isinstance(caught.value, InternalError)


def test_what_fits_does():
    compiled(Store(A.data, build.call("tir.exp", LOAD), i))

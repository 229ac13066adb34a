"""Functions that kernels call, and sums of more bits than a register has."""

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
import topi
from tedsl import te
from tedsl.errors import DeviceError
from tests.simulate.kernels import kernel, launch

FUNCTIONS = """
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
;
.func (.param .align 8 .b8 func_retval0[8]) both(.param .b32 both_param_0, .param .b32 both_param_1)
{
    .reg .b32 %r<9>;
    .reg .pred %p<3>;
    ld.param.b32 %r1, [both_param_0];
    ld.param.b32 %r2, [both_param_1];
    setp.lt.u32 %p1, %r1, 10;
    @%p1 bra $L1;
    st.param.b32 [func_retval0], %r1;
    st.param.b32 [func_retval0+4], %r2;
    ret;
$L1:
    { .param .b32 param0; .param .b32 retval0;
    st.param.b32 [param0], %r1;
    call.uni (retval0), twice, (param0);
    ld.param.b32 %r3, [retval0]; }
    st.param.v2.b32 [func_retval0], {%r3, %r2};
    ret;
}
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [twice_param_0];
    add.s32 %r2, %r1, %r1;
    st.param.b32 [func_retval0], %r2;
    ret;
}
.func loops()
{
    call.uni loops;
    ret;
}
"""
CALL = """{ .param .b32 param0; .param .b32 param1; .param .align 8 .b8 retval0[8];
    mul.lo.u32 %r5, %r0, 3;
    st.param.b32 [param0], %r0; st.param.b32 [param1], %r5;
    call.uni (retval0), both, (param0, param1);
    ld.param.b32 %r6, [retval0]; ld.param.b32 %r7, [retval0+4]; }"""


def test_functions_stand_in_the_place_of_their_calls():
    """Twice, so that each call has labels of its own; the threads of a warp return from two places and meet behind the call."""
    body = f"{CALL} mov.u32 %r8, %r6; {CALL} shfl.sync.idx.b32 %r9, %r6, 31, 31, -1; add.u32 %r8, %r8, %r7; " \
        "mad.wide.u32 %rd9, %r0, 4, %rd0; st.global.b32 [%rd9], %r8;"
    out = np.zeros(32, np.uint32)
    assert launch(kernel(body, ("A",), before=FUNCTIONS), out).findings == ()
    assert out.tolist() == [(2 * t if t < 10 else t) + 3 * t for t in range(32)]


@pytest.mark.parametrize("name", ["loops", "absent"])
def test_recursion_and_calls_of_what_is_not_there_are_refused(name):
    with pytest.raises(DeviceError, match="does not know the call"):
        launch(kernel(f"call.uni {name};", ("A",), before=FUNCTIONS), np.zeros(1, np.uint32))


@pytest.mark.parametrize("name, function", [("add", lambda x, y: x + y), ("sub", lambda x, y: x - y)])
def test_sums_of_96_bits(name, function):
    """Three registers each, joined by carries."""
    words = np.random.default_rng(0).integers(0, 1 << 32, (32, 9), dtype=np.uint64).astype(np.uint32)
    words[::4, 3:6] = words[::4, 0:3]
    words[1::4, 0:2] = 0xFFFFFFFF
    loads = " ".join(f"ld.global.b32 %r{10 + word}, [%rd9+{4 * word}];" for word in range(6))
    body = f"mad.wide.u32 %rd9, %r0, 36, %rd0; {loads} {name}.cc.u32 %r20, %r10, %r13; {name}c.cc.u32 %r21, %r11, %r14; " \
        f"{name}c.u32 %r22, %r12, %r15; st.global.b32 [%rd9+24], %r20; st.global.b32 [%rd9+28], %r21; " \
        "st.global.b32 [%rd9+32], %r22;"
    given = words.copy()
    assert launch(kernel(body, ("A",)), words).findings == ()
    for row, made in zip(given.tolist(), words.tolist()):
        x, y, z = (sum(word << 32 * place for place, word in enumerate(part)) for part in (row[:3], row[3:6], made[6:]))
        assert z == function(x, y) % (1 << 96)


def test_the_sine_of_large_numbers(monkeypatch):
    monkeypatch.setenv("TEDSL_CUDA", "sim")
    A = te.placeholder((64,), name="A")
    B = topi.sin(A)
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    function = tedsl.build(s, [A, B], "cuda")
    values = (np.random.default_rng(0).random(64) * 10.0 ** np.linspace(-3, 30, 64)).astype(np.float32)
    arrays = [tedsl.nd.array(values, tedsl.cuda(0)), tedsl.nd.empty((64,), "float32", tedsl.cuda(0))]
    with simulate.mode("checked"):
        function(*arrays)
    np.testing.assert_allclose(arrays[1].numpy(), np.sin(values.astype(np.float64)), atol=2e-7)

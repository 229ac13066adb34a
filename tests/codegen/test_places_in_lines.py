"""Where arrays begin within a line of memory, as programs see it: `tir.elements_past_line`."""

import numpy as np
import pytest

import tedsl
from tedsl import te, tir
from tedsl.ir.evaluate import run
from tedsl.ir.expr import Call
from tedsl.ir.ops import ELEMENTS_PAST_LINE
from tedsl.ir.walk.visitor import post_order
from tests.codegen.c.compilers import needs_compiler, strict_target

KINDS = [("int32", 16, 4), ("int64", 4, 4), ("int32", 8, 8), ("int32", 64, 1), ("int32", 1, 4)]  # dtype, elements, bytes


def places(kinds=KINDS, threads=False):
    """B[k] = the place of A in a line, as kinds[k] measures it."""
    A = te.placeholder((40,), name="A")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        if threads:
            thread = te.thread_axis("threadIdx.x")
            ib.scope_attr(thread, "thread_extent", 1)
        for at, (dtype, line, size) in enumerate(kinds):
            out[at] = tir.call_intrin(dtype, "tir.elements_past_line", ins[0].data, line, size).astype("int32")
        return ib.get()

    B = te.extern((len(kinds),), [A], body, dtype="int32", name="B")
    return te.create_schedule(B.op), [A, B]


def check(call):
    room = np.zeros(80, "float32")
    for behind in range(17):
        a, out = room[behind:behind + 40], np.full(len(KINDS), 77, "int32")
        call(a, out)
        assert out.tolist() == [a.ctypes.data // size % line for _, line, size in KINDS]


def test_the_place_is_what_the_address_says():
    s, args = places()
    check(tedsl.build(s, args))
    lowered = tedsl.lower(s, args)["main"]
    check(lambda *given: run(lowered, given))


@needs_compiler
@pytest.mark.parametrize("options", ["", "-vectors=gcc"])
def test_in_c(options):
    s, args = places()
    check(tedsl.build(s, args, strict_target(options)))


def test_kernels_of_devices_see_no_address():
    s, args = places(threads=True)
    device = tedsl.sim(0)
    a, out = tedsl.nd.array(np.zeros(40, "float32"), device), tedsl.nd.array(np.full(len(KINDS), 77, "int32"), device)
    tedsl.build(s, args, "nvptx")(a, out)
    assert out.numpy().tolist() == [0] * len(KINDS)
    for target in ("cuda", "opencl"):
        assert "uintptr_t" not in tedsl.build(s, args, target).imported_modules[0].get_source()


def test_its_range_is_known():
    s, args = places()
    (call, *_) = [node for node in post_order(tedsl.lower(s, args)["main"].body)
                  if isinstance(node, Call) and node.op is ELEMENTS_PAST_LINE]
    analyzer = tedsl.arith.Analyzer()
    assert analyzer.const_int_bound(call).min_value == 0 and analyzer.const_int_bound(call).max_value == 15
    assert analyzer.can_prove(te.max(0, call) == call)


@pytest.mark.parametrize("kind", [("int32", 12, 4), ("int32", 16, 0), ("float32", 16, 4), ("int16", 16, 4),
                                  ("int32", te.var("n"), 4)])
def test_wrong_arguments_are_refused(kind):
    with pytest.raises(tedsl.TedslError, match="two constant powers of two"):
        places([kind])

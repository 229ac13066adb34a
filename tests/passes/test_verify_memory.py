"""Functions for a GPU leave their arguments to its threads."""

import pytest

import tedsl
from tedsl import te, tir
from tedsl.errors import TedslError


def doubled(bound, target):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    for tensor in bound.split():
        stage = s[{"B": B, "C": C}[tensor]]
        outer, inner = stage.split(stage.op.axis[0], 8)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))
    module = tedsl.lower(s, [A, C], name="f")
    return module if target is None else tedsl.IRModule({"f": module["f"].with_attr("target", target)})


@pytest.mark.parametrize("target", ["cuda", tedsl.Target("cuda"), "nvptx", "rocm", "opencl", "vulkan", "metal"])
@pytest.mark.parametrize("bound, accessed", [("", "A, C"), ("B", "C"), ("C", "A")])
def test_the_host_does_not_touch_the_memory_of_a_device(target, bound, accessed):
    module = doubled(bound, target)
    kind = getattr(target, "kind", target)
    with pytest.raises(TedslError, match=rf"^f is for {kind}.* and {accessed} (is|are) accessed(.|\n)*bind"):
        tir.transform.VerifyMemory()(module)
    assert not tir.analysis.verify_memory(module["f"])


@pytest.mark.parametrize("bound, target", [("B C", "cuda"), ("B C", "rocm"), ("", "llvm"), ("", None), ("", "hexagon")])
def test_what_threads_or_the_host_may_do_is_left_alone(bound, target):
    module = doubled(bound, target)
    assert tir.transform.VerifyMemory()(module)["f"] is module["f"]
    assert tir.analysis.verify_memory(module["f"])

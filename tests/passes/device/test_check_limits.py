"""Kernels that no block of the device can hold are refused when they are built, with the directive to change."""

import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError
from tedsl.passes.config import PassConfig
from tedsl.passes.default import device_pipeline
from tedsl.passes.device.check_limits import check_limits
from tedsl.passes.device.split_kernels import split_kernels


def tiled(x, y, shared):
    A = te.placeholder((4096, 4096), name="A")
    B = te.compute((4096, 4096), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4096, 4096), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    i, j, ii, jj = s[C].tile(*C.op.axis, y, x)
    s[C].bind(i, te.thread_axis("blockIdx.y"))
    s[C].bind(j, te.thread_axis("blockIdx.x"))
    s[C].bind(ii, te.thread_axis("threadIdx.y"))
    s[C].bind(jj, te.thread_axis("threadIdx.x"))
    if shared:
        s[B].compute_at(s[C], j)
        s[B].set_scope("shared")
        s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.y"))
        s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    else:
        s[B].compute_inline()
    return s, [A, C]


def checked(x, y, target, shared=False):
    target = tedsl.Target(target)
    kernel = split_kernels(device_pipeline(target, PassConfig())(tedsl.lower(*tiled(x, y, shared))["main"]), target).kernels[0]
    assert check_limits(kernel, target) is kernel


@pytest.mark.parametrize("x, y, target", [
    (32, 32, "cuda"), (1024, 1, "nvptx"), (16, 16, "opencl"), (64, 16, "opencl -max_num_threads=1024"),
])
def test_what_fits(x, y, target):
    checked(x, y, target)


@pytest.mark.parametrize("x, y, target, words", [
    (64, 32, "cuda", r"main_kernel0 has 2048 threads in a block \(32 of threadIdx.y x 64 of threadIdx.x\), and cuda at most"),
    (2048, 1, "cuda", "has 2048 threads of threadIdx.x in a block, and cuda at most 1024(.|\n)*split the loop that is bound"),
    (32, 16, "opencl -max_num_threads=256", "512 threads in a block .* opencl at most 256(.|\n)*max_num_threads"),
])
def test_more_threads_than_a_block_has(x, y, target, words):
    with pytest.raises(LoweringError, match=words):
        checked(x, y, target)


def test_devices_of_one_kind_that_differ_decide_at_the_launch():
    with pytest.warns(UserWarning, match=r"512 threads in a block .* opencl at most 256 where nothing is said(.|\n)*=512"):
        checked(32, 16, "opencl")


def test_more_shared_memory_than_a_block_has():
    checked(32, 32, "cuda", shared=True)
    with pytest.raises(LoweringError, match=r"needs 4096 bytes of shared memory in a block \(B 4096\), and cuda has 4000(.|\n)*"
                                            r"s\[B\].compute_at"):
        checked(32, 32, "cuda -max_shared_memory_per_block=4000", shared=True)


def test_build_refuses_and_names_the_directive():
    s, args = tiled(64, 32, shared=False)
    with pytest.raises(LoweringError, match=r"2048 threads(.|\n)*bind"):
        tedsl.build(s, args, target="cuda")

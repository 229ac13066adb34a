"""What accesses cost: conflicts of banks, sectors of global memory, divergence."""

import numpy as np
import pytest

from tedsl.simulate.memory.traffic import bank_passes, distinct
from tests.simulate.kernels import kernel, launch

SHARED = ".shared .align 16 .b8 s[16384];"


def strided(stride, form="b32", width=4):
    """Each thread stores to shared memory, `stride` elements from its neighbour."""
    register = {4: "%r0", 8: "%rd9"}[width]
    return kernel(f"{SHARED} mov.u64 %rd8, s; cvt.u64.u32 %rd9, %r0; mad.wide.u32 %rd8, %r0, {stride * width}, %rd8; "
                  f"st.shared.{form} [%rd8], {register};", ("A",))


@pytest.mark.parametrize("stride, degree", [(1, 1), (2, 2), (3, 1), (4, 4), (16, 16), (32, 32), (33, 1), (0, 1)])
def test_conflicts_of_banks(stride, degree):
    report = launch(strided(stride), np.zeros(1, np.float32))
    traffic = report.traffic("shared")
    assert (traffic.conflict, traffic.passes, traffic.ideal, traffic.requests) == (degree, degree, 1, 1)


@pytest.mark.parametrize("stride, passes", [(1, 2), (16, 32), (17, 2), (2, 4)])
def test_conflicts_of_eight_bytes_are_those_of_half_a_warp(stride, passes):
    assert launch(strided(stride, "b64", 8), np.zeros(1, np.float32)).traffic("shared").passes == passes


def test_conflicts_of_sixteen_bytes_are_those_of_a_quarter():
    rows = np.arange(32)[None, :] * 16
    assert bank_passes(rows, 16) == (4, 1, 4)
    assert bank_passes(rows * 2, 16) == (8, 2, 4)


def test_threads_that_take_no_part_have_no_conflict():
    text = kernel(f"{SHARED} setp.gt.u32 %p1, %r0, 3; @%p1 ret; mov.u64 %rd8, s; mad.wide.u32 %rd8, %r0, 128, %rd8; "
                  "st.shared.b32 [%rd8], %r0;", ("A",))
    assert launch(text, np.zeros(1, np.float32)).traffic("shared").conflict == 4


def loads(stride, offset=0, form="f32", width=4):
    register = {"f32": "%f1", "f64": "%d1", "u8": "%h1"}[form]
    return kernel(f"mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %r0; mad.lo.u32 %r1, %r1, {stride}, {offset}; "
                  f"mad.wide.u32 %rd8, %r1, {width}, %rd0; ld.global.{form} {register}, [%rd8];", ("A",))


@pytest.mark.parametrize("stride, offset, sectors", [(1, 0, 4), (1, 1, 5), (2, 0, 8), (8, 0, 32), (64, 0, 32), (0, 0, 1)])
def test_sectors_of_floats(stride, offset, sectors):
    traffic = launch(loads(stride, offset), np.zeros(4100, np.float32)).traffic("global", "load")
    assert (traffic.moved, traffic.asked) == (32 * sectors, 128)
    assert traffic.efficiency == 128 / (32 * sectors)


def test_sectors_of_doubles_and_bytes():
    assert launch(loads(1, 0, "f64", 8), np.zeros(64)).traffic("global").moved == 256
    assert launch(loads(1, 0, "u8", 1), np.zeros(64, np.uint8)).traffic("global").moved == 32


def test_each_warp_counts_for_itself():
    text = loads(1)
    assert launch(text, np.zeros(256, np.float32), grid=(8, 1, 1)).traffic("global").moved == 8 * 128
    backwards = np.arange(64).reshape(2, 32)[:, ::-1] * 4 >> 5
    assert distinct(backwards) == 8


def test_loads_of_four_floats_move_whole_sectors():
    text = kernel("mad.wide.u32 %rd8, %r0, 16, %rd0; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd8];", ("A",))
    traffic = launch(text, np.zeros(128, np.float32)).traffic("global")
    assert (traffic.moved, traffic.asked, traffic.requests) == (512, 512, 1)


def test_divergent_branches_are_counted_by_warps():
    text = kernel("setp.lt.u32 %p1, %r0, {}; @%p1 bra YES; mov.u32 %r1, 1; bra END; YES: mov.u32 %r1, 2; "
                  "END: mov.u32 %r2, %r1;", ("A",))
    split, whole = (launch(text.replace("{}", limit), np.zeros(1, np.float32), block=(64, 1, 1)) for limit in ("8", "32"))
    assert (split.branches, split.divergent) == (2, 1)
    assert (whole.branches, whole.divergent) == (2, 0)
    assert split.activity < whole.activity == 1.0


def test_instructions_are_counted_by_class_and_warp():
    text = kernel("ld.global.f32 %f1, [%rd0]; add.f32 %f2, %f1, %f1; fma.rn.f32 %f2, %f1, %f1, %f2; add.f64 %d1, %d1, %d1; "
                  "ex2.approx.f32 %f3, %f1; bar.sync 0;", ("A",))
    report = launch(text, np.zeros(1, np.float32), block=(64, 1, 1), grid=(3, 1, 1))
    counts = report.instructions
    assert counts["float32"] == 12 and counts["float64"] == 6 and counts["special"] == 6 and counts["global load"] == 6
    assert report.barriers == 6 and report.duration.seconds > 0

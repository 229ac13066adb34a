"""What the simulator finds: races, uninitialised memory, accesses outside, barriers that not all meet."""

import numpy as np
import pytest

import tedsl.simulate as simulate
from tedsl.errors import DeviceError
from tests.simulate.kernels import kernel, launch

SHARED = ".shared .align 16 .b8 s[512];"
MINE = f"{SHARED} mov.u64 %rd8, s; mad.wide.u32 %rd8, %r0, 4, %rd8; mad.wide.u32 %rd9, %r0, 4, %rd0;"
ZEROS = np.zeros(128, np.float32)


def kinds(text, *arrays, **options):
    return {finding.kind for finding in launch(text, *arrays, **options).findings}


@pytest.mark.parametrize("barrier, found", [("bar.sync 0;", set()), ("", {"race"}), ("bar.warp.sync -1;", {"race"})])
def test_reading_what_another_thread_wrote(barrier, found):
    text = kernel(f"{MINE} st.shared.b32 [%rd8], %r0; {barrier} mov.u64 %rd10, s; xor.b32 %r1, %r0, 63; "
                  "mad.wide.u32 %rd10, %r1, 4, %rd10; ld.shared.b32 %r2, [%rd10]; st.global.b32 [%rd9], %r2;", ("A",))
    out = np.zeros(64, np.uint32)
    report = launch(text, out, block=(64, 1, 1))
    assert {finding.kind for finding in report.findings} == found
    if not found:
        np.testing.assert_array_equal(out, 63 - np.arange(64))


@pytest.mark.parametrize("barrier, found", [("bar.warp.sync -1;", set()), ("", {"race"})])
def test_barriers_of_warps_order_the_threads_of_a_warp(barrier, found):
    text = kernel(f"{MINE} st.shared.b32 [%rd8], %r0; {barrier} mov.u64 %rd10, s; xor.b32 %r1, %r0, 31; "
                  "mad.wide.u32 %rd10, %r1, 4, %rd10; ld.shared.b32 %r2, [%rd10];", ("A",))
    assert kinds(text, ZEROS, block=(64, 1, 1)) == found


def test_writing_what_another_thread_has_read():
    text = kernel(f"{MINE} st.shared.b32 [%rd8], %r0; bar.sync 0; mov.u64 %rd10, s; xor.b32 %r1, %r0, 63; "
                  "mad.wide.u32 %rd10, %r1, 4, %rd10; ld.shared.b32 %r2, [%rd10]; %% st.shared.b32 [%rd8], %r2;", ("A",))
    assert kinds(text.replace("%%", "bar.sync 0;"), ZEROS, block=(64, 1, 1)) == set()
    assert kinds(text.replace("%%", ""), ZEROS, block=(64, 1, 1)) == {"race"}


def test_a_thread_may_read_and_write_its_own():
    text = kernel(f"{MINE} st.shared.b32 [%rd8], %r0; ld.shared.b32 %r1, [%rd8]; add.s32 %r1, %r1, 1; "
                  "st.shared.b32 [%rd8], %r1; ld.global.f32 %f1, [%rd9]; add.f32 %f1, %f1, %f1; "
                  "st.global.f32 [%rd9], %f1;", ("A",))
    assert kinds(text, ZEROS, block=(64, 1, 1)) == set()


def test_branches_on_two_sides_may_race_too():
    """The reader runs first, and nothing is stored behind its load."""
    text = kernel(f"{MINE} st.shared.b32 [%rd8], %r0; bar.sync 0; mov.u64 %rd10, s; setp.lt.u32 %p1, %r0, 32; @!%p1 bra W; "
                  "ld.shared.b32 %r2, [%rd8+128]; bra E; W: mov.u32 %r3, 7; st.shared.b32 [%rd8], %r3; E: bar.sync 0;", ("A",))
    assert kinds(text, ZEROS, block=(64, 1, 1)) == {"race"}


def test_two_threads_write_one_place():
    different = kernel(f"{SHARED} st.shared.b32 [s], %r0;", ("A",))
    assert kinds(different, ZEROS) == {"race"}
    equal = kernel(f"{SHARED} mov.u32 %r1, 5; st.shared.b32 [s], %r1;", ("A",))
    assert kinds(equal, ZEROS, grid=(4, 1, 1)) == set()  # they write the same


def test_blocks_race_in_global_memory():
    write = kernel("mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd9, %r0, 4, %rd0; st.global.b32 [%rd9], %r1;", ("A",))
    assert kinds(write, ZEROS, grid=(1, 1, 1)) == set()
    assert kinds(write, ZEROS, grid=(2, 1, 1)) == {"race"}
    assert kinds(write, ZEROS, grid=(1000, 1, 1)) == {"race"}  # of blocks that do not run side by side, too
    read = kernel("mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd9, %rd0; setp.eq.u32 %p1, %r0, 0; "
                  "@%p1 st.global.b32 [%rd9], %r1; bar.sync 0; ld.global.b32 %r2, [%rd0];", ("A",))
    assert kinds(read, ZEROS, grid=(1, 1, 1)) == set()
    assert kinds(read, ZEROS, grid=(3, 1, 1)) == {"race"}


def test_a_barrier_orders_global_memory_in_a_block():
    text = kernel("mad.wide.u32 %rd9, %r0, 4, %rd0; st.global.b32 [%rd9], %r0; %% xor.b32 %r1, %r0, 63; "
                  "mad.wide.u32 %rd10, %r1, 4, %rd0; ld.global.b32 %r2, [%rd10];", ("A",))
    assert kinds(text.replace("%%", "bar.sync 0;"), ZEROS, block=(64, 1, 1)) == set()
    assert kinds(text.replace("%%", ""), ZEROS, block=(64, 1, 1)) == {"race"}


def test_parts_of_words_are_told_apart():
    text = kernel(f"{SHARED} cvt.u16.u32 %h1, %r0; mov.u64 %rd8, s; cvt.u64.u32 %rd9, %r0; add.s64 %rd8, %rd8, %rd9; "
                  "st.shared.u8 [%rd8], %h1; ld.shared.u8 %h2, [%rd8];", ("A",))
    assert kinds(text, ZEROS) == set()


def test_uninitialised_memory():
    text = kernel(f"{MINE} setp.lt.u32 %p1, %r0, 16; @%p1 st.shared.b32 [%rd8], %r0; bar.sync 0; "
                  "ld.shared.b32 %r1, [%rd8];", ("A",))
    finding, = launch(text, ZEROS).findings
    assert finding.kind == "uninitialised read" and finding.count == 16
    assert "thread (16, 0, 0) of block (0, 0, 0) reads s + 64, which nothing has written" in finding.example
    local = kernel(".local .align 4 .b8 d[16]; ld.local.b32 %r1, [d+4];", ("A",))
    assert kinds(local, ZEROS) == {"uninitialised read"}


def test_accesses_outside():
    text = kernel("mad.wide.u32 %rd9, %r0, 4, %rd0; ld.global.f32 %f1, [%rd9];", ("A",))
    finding, = launch(text, np.zeros(20, np.float32)).findings
    assert finding.kind == "access outside" and finding.count == 12
    assert "+ 80; it has 80 bytes" in finding.example
    shared = kernel(f"{MINE} st.shared.b32 [%rd8+-4], %r0;", ("A",))
    assert kinds(shared, ZEROS) == {"access outside"}
    assert kinds(kernel("mov.u64 %rd9, 16; ld.global.f32 %f1, [%rd9];", ("A",)), ZEROS) == {"access outside"}


def test_what_lies_outside_of_a_variable_is_not_another():
    text = kernel(".shared .align 4 .b8 s[64]; .shared .align 4 .b8 t[64]; mov.u64 %rd8, s; mad.wide.u32 %rd8, %r0, 4, %rd8; "
                  "st.shared.b32 [%rd8], %r0;", ("A",))
    assert kinds(text, ZEROS) == {"access outside"}


def test_misaligned_accesses():
    assert kinds(kernel("ld.global.f32 %f1, [%rd0+2];", ("A",)), ZEROS) == {"misaligned access"}
    assert kinds(kernel("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd0+8];", ("A",)), ZEROS) == {"misaligned access"}


@pytest.mark.parametrize("body, found", [
    ("setp.lt.u32 %p1, %r0, 40; @%p1 bar.sync 0;", None),
    ("setp.lt.u32 %p1, %r0, 40; @!%p1 bra E; bar.sync 0; E: mov.u32 %r1, 0;", "40 of 64 threads"),
    ("setp.lt.u32 %p1, %r0, 40; @!%p1 ret; bar.sync 0;", "the others have ended"),
    ("setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; bra E; A: bar.sync 0; E: mov.u32 %r1, 0;", "wait at another barrier")])
def test_barriers_that_not_all_threads_meet(body, found):
    if found is None:
        with pytest.raises(DeviceError, match="no barrier with a predicate"):
            launch(kernel(body, ("A",)), ZEROS, block=(64, 1, 1))
        return
    finding = launch(kernel(body, ("A",)), ZEROS, block=(64, 1, 1)).findings[0]
    assert finding.kind == "barrier divergence" and found in finding.example


def test_checked_mode_raises():
    text = kernel("ld.global.f32 %f1, [%rd0+4096];", ("A",))
    with simulate.mode("checked"), pytest.raises(DeviceError, match=r"kernel k: access outside: thread \(0, 0, 0\)"):
        launch(text, ZEROS)
    with simulate.mode("fast"):
        assert launch(text, ZEROS).mode == "fast"


def test_a_mode_that_is_not_there():
    with pytest.raises(DeviceError.__mro__[1], match="there is no mode 'quick'"), simulate.mode("quick"):
        pass


def test_traps_end_the_kernel():
    with pytest.raises(DeviceError, match="a trap ended it"):
        launch(kernel("trap;", ("A",)), ZEROS)


def test_findings_count_and_show_themselves():
    report = launch(kernel("ld.global.f32 %f1, [%rd0+4096];", ("A",)), ZEROS)
    assert "access outside: thread (0, 0, 0) of block (0, 0, 0)" in str(report)
    assert "kernel k, grid (1, 1, 1) x block (32, 1, 1), on sim(0)" in str(report)
    assert "<table" in report._repr_html_()

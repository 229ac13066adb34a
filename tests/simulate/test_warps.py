"""Warps: shuffles, votes, reductions, atomics, asynchronous copies, and where threads meet again."""

import numpy as np
import pytest

import tedsl
from tedsl import simulate, te
from tests.simulate.kernels import kernel, launch

OUT = "mad.wide.u32 %rd9, %r0, 4, %rd0; st.global.b32 [%rd9], %r2;"


def out_of(body, block=64, kind=np.uint32, **options):
    array = np.zeros(block, kind)
    report = launch(kernel(f"{body} {OUT}", ("A",)), array, block=(block, 1, 1), **options)
    return array, [finding.kind for finding in report.findings]


@pytest.mark.parametrize("text, source", [
    ("down.b32 %r2, %r1, 4, 31, -1", lambda t: t + 4 if t % 32 < 28 else t),
    ("up.b32 %r2, %r1, 1, 0, -1", lambda t: max(t // 32 * 32, t - 1)),
    ("bfly.b32 %r2, %r1, 16, 31, -1", lambda t: t ^ 16), ("idx.b32 %r2, %r1, 3, 31, -1", lambda t: t // 32 * 32 + 3),
    ("down.b32 %r2, %r1, 4, 6175, -1", lambda t: t + 4 if t % 8 < 4 else t),  # segments of 8 threads
    ("idx.b32 %r2, %r1, 9, 6175, -1", lambda t: t // 8 * 8 + 1)])
def test_shuffles(text, source):
    got, found = out_of(f"mul.lo.u32 %r1, %r0, 3; shfl.sync.{text};")
    assert got.tolist() == [3 * source(t) for t in range(64)] and found == []


def test_the_predicate_of_a_shuffle():
    got, _ = out_of("shfl.sync.down.b32 %r1|%p1, %r0, 8, 31, -1; selp.b32 %r2, 1, 0, %p1;")
    assert got.tolist() == [int(t % 32 < 24) for t in range(64)]


def test_shuffles_in_a_branch_and_from_threads_that_are_not_there():
    body = "mov.u32 %r2, 0; and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @!%p1 bra E; " \
        "shfl.sync.idx.b32 %r2, %r0, {}, 31, {}; E:"
    got, found = out_of(body.format(2, 0x55555555))
    assert found == [] and got[:4].tolist() == [2, 0, 2, 0]
    assert "shuffle from an absent thread" in out_of(body.format(3, 0x55555555))[1]
    assert "shuffle from an absent thread" in out_of(body.format(2, -1))[1]
    assert "shuffle from an absent thread" in out_of("shfl.sync.down.b32 %r2, %r0, 16, 31, -1;", block=20)[1]


def test_votes():
    body = "setp.lt.u32 %p1, %r0, 40; vote.sync.{} %p2, %p1, -1; selp.b32 %r2, 1, 0, %p2;"
    for name, expected in (("all.pred", [1, 0]), ("any.pred", [1, 1]), ("uni.pred", [1, 0])):
        assert out_of(body.format(name))[0][::32].tolist() == expected
    got, _ = out_of("setp.lt.u32 %p1, %r0, 40; vote.sync.ballot.b32 %r2, %p1, -1;")
    assert got[::32].tolist() == [0xFFFFFFFF, 0xFF]
    got, _ = out_of("setp.lt.u32 %p1, %r0, 5; mov.u32 %r2, 0; @%p1 activemask.b32 %r2;")
    assert got[:6].tolist() == [31] * 5 + [0]


def test_reductions_of_warps():
    assert out_of("redux.sync.add.u32 %r2, %r0, -1;")[0][::32].tolist() == [496, 1520]
    assert out_of("redux.sync.max.s32 %r2, %r0, -1;")[0][::32].tolist() == [31, 63]


def test_special_registers():
    for name, expected in (("%laneid", [t % 32 for t in range(64)]), ("%warpid", [t // 32 for t in range(64)]),
                           ("%ntid.x", [64] * 64), ("%lanemask_lt", [(1 << t % 32) - 1 for t in range(64)])):
        assert out_of(f"mov.u32 %r2, {name};")[0].tolist() == expected


def test_threads_of_three_dimensions():
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mad.lo.u32 %r3, %r2, 4, %r1; mad.lo.u32 %r3, %r3, 8, %r0;
        mov.u32 %r4, %ctaid.y; mad.lo.u32 %r3, %r4, 64, %r3; mad.wide.u32 %rd9, %r3, 4, %rd0; st.global.b32 [%rd9], %r3;"""
    array = np.zeros(128, np.uint32)
    assert launch(kernel(body, ("A",)), array, block=(8, 4, 2), grid=(1, 2, 1)).findings == ()
    assert array.tolist() == list(range(128))


def test_threads_meet_again_behind_branches_and_loops():
    """Each thread goes round as often as its number says; then all are together, or the shuffle would say so."""
    body = """mov.u32 %r2, 0; mov.u32 %r3, 0; L: setp.ge.u32 %p1, %r3, %r0; @%p1 bra E; and.b32 %r4, %r3, 1;
        setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN; add.u32 %r2, %r2, 10; bra NEXT; EVEN: add.u32 %r2, %r2, 1;
        NEXT: add.u32 %r3, %r3, 1; bra L;
        E: shfl.sync.idx.b32 %r5, %r2, 31, 31, -1; add.u32 %r2, %r2, %r5;"""
    got, found = out_of(body)
    rounds = [sum(10 if i % 2 else 1 for i in range(t)) for t in range(64)]
    assert got.tolist() == [rounds[t] + rounds[t // 32 * 32 + 31] for t in range(64)] and found == []


def atomics(text, initial, kind=np.uint32, count=100, scalars=()):
    array = np.full(4, initial, kind)
    report = launch(kernel(text, ("A",)), array, block=(count, 1, 1), grid=(2, 1, 1))
    assert report.findings == ()
    return array[0]


def test_atomics():
    assert atomics("atom.global.add.u32 %r1, [%rd0], %r0;", 5) == 5 + 2 * 4950
    assert atomics("red.global.max.u32 [%rd0], %r0;", 5) == 99
    assert atomics("atom.global.inc.u32 %r1, [%rd0], 6;", 0) == 200 % 7
    assert atomics("cvt.rn.f32.u32 %f1, %r0; red.global.add.f32 [%rd0], %f1;", 0.5, np.float32) == 9900.5
    assert atomics("atom.global.or.b32 %r1, [%rd0], %r0;", 0) == 127
    assert atomics("cvt.u64.u32 %rd5, %r0; red.relaxed.gpu.global.add.u64 [%rd0], %rd5;", 1, np.uint64) == 9901


def test_atomics_return_what_was_there():
    got, found = out_of(".shared .align 4 .b8 c[4]; setp.eq.u32 %p1, %r0, 0; mov.u32 %r1, 0; @%p1 st.shared.b32 [c], %r1; "
                        "bar.sync 0; atom.shared.add.u32 %r2, [c], 2;")
    assert sorted(got.tolist()) == list(range(0, 128, 2)) and found == []
    cas, _ = out_of(".shared .align 4 .b8 c[4]; setp.eq.u32 %p1, %r0, 0; mov.u32 %r1, 0; @%p1 st.shared.b32 [c], %r1; "
                    "bar.sync 0; add.u32 %r3, %r0, 1; atom.shared.cas.b32 %r2, [c], 0, %r3;")
    assert cas.tolist() == [0] + [1] * 63


def test_an_atomic_and_a_plain_access_race():
    text = kernel("atom.global.add.u32 %r1, [%rd0], %r0; ld.global.u32 %r2, [%rd0];", ("A",))
    assert {f.kind for f in launch(text, np.zeros(4, np.uint32)).findings} == {"race"}


COPY = """.shared .align 16 .b8 s[1024]; mov.u64 %rd8, s; cvt.u32.u64 %r8, %rd8; mad.lo.u32 %r8, %r0, 16, %r8;
    mad.wide.u32 %rd10, %r0, 16, %rd1; cp.async.cg.shared.global [%r8], [%rd10], 16; cp.async.commit_group; %%
    xor.b32 %r1, %r0, 63; mad.wide.u32 %rd11, %r1, 16, %rd8; ld.shared.b32 %r2, [%rd11];"""


@pytest.mark.parametrize("waits, clean", [("cp.async.wait_group 0; bar.sync 0;", True),
                                          ("cp.async.wait_all; bar.sync 0;", True),
                                          ("bar.sync 0;", False), ("cp.async.wait_group 1; bar.sync 0;", False),
                                          ("cp.async.wait_group 0;", False)])
def test_asynchronous_copies_arrive_where_threads_wait(waits, clean):
    out, source = np.zeros(64, np.uint32), np.arange(256, dtype=np.uint32)
    report = launch(kernel(COPY.replace("%%", waits) + OUT), out, source, block=(64, 1, 1))
    assert (report.findings == ()) == clean
    if clean:
        assert out.tolist() == [4 * (63 - t) for t in range(64)]


def test_generic_addresses_and_local_memory():
    body = """.shared .align 4 .b8 s[256]; .local .align 4 .b8 d[8]; mov.u64 %rd8, s; cvta.shared.u64 %rd8, %rd8;
        mad.wide.u32 %rd8, %r0, 4, %rd8; st.b32 [%rd8], %r0; mov.u64 %rd7, d; cvta.local.u64 %rd7, %rd7; mul.lo.u32 %r1, %r0, 2;
        st.b32 [%rd7+4], %r1; and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; add.s64 %rd7, %rd7, 4;
        selp.b64 %rd6, %rd7, %rd8, %p1; ld.b32 %r2, [%rd6];"""
    got, found = out_of(body)
    assert got.tolist() == [t if t % 2 else 2 * t for t in range(64)] and found == []


def test_dynamic_shared_memory_and_constants():
    before = ".extern .shared .align 16 .b8 dyn[];\n.global .align 4 .b32 table[4] = {10, 20, 30, 40};\n"
    body = """mov.u64 %rd8, dyn; mad.wide.u32 %rd8, %r0, 4, %rd8; st.shared.b32 [%rd8], %r0; and.b32 %r1, %r0, 3;
        mov.u64 %rd7, table; mad.wide.u32 %rd7, %r1, 4, %rd7; ld.global.b32 %r2, [%rd7];"""
    array = np.zeros(64, np.uint32)
    text = kernel(f"{body} {OUT}", ("A",), before=before)
    assert launch(text, array, block=(64, 1, 1), shared=256).findings == ()
    assert array.tolist() == [10 * (t % 4 + 1) for t in range(64)]
    assert {f.kind for f in launch(text, array, block=(64, 1, 1), shared=128).findings} == {"access outside"}


def test_packing_and_scalar_parameters():
    body = """ld.param.f32 %f1, [x]; mov.b32 %r3, %f1; mov.b32 {%h1, %h2}, %r3; mov.b32 %r2, {%h2, %h1};
        mov.b64 %rd5, {%r2, %r3}; mov.b64 {%r4, %r5}, %rd5; add.u32 %r2, %r4, 0;"""
    array = np.zeros(64, np.uint32)
    launch(kernel(f"{body} {OUT}", ("A",), scalars=", .param .f32 x"), array, block=(64, 1, 1), scalars=(1.5,))
    bits = int(np.float32(1.5).view(np.uint32))
    assert array[0] == (bits >> 16 | bits << 16) & 0xFFFFFFFF


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 31, 32, 33, 37, 40, 48, 63, 65, 100, 256, 1000])
def test_reductions_over_any_number_of_threads_have_no_findings(threads):
    """No thread takes a value of a lane that the last warp of the block does not have."""
    A, r = te.placeholder((threads,), name="A"), te.reduce_axis((0, threads), "r")
    B = te.compute((1,), lambda i: te.sum(A[r], axis=r), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    a = tedsl.nd.array(np.arange(threads, dtype="float32"), tedsl.sim(0))
    b = tedsl.nd.empty((1,), "float32", tedsl.sim(0))
    with simulate.mode("checked"):
        tedsl.build(s, [A, B], "cuda")(a, b)
    assert b.numpy()[0] == threads * (threads - 1) // 2

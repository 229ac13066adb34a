"""Tensor cores in the simulator: what they compute, what a report says of them, and what a device would not forgive."""

import numpy as np
import pytest

import tedsl
import tedsl.simulate as simulate
from tedsl.errors import DeviceError
from tests.devices.matrices import inputs, product
from tests.simulate.kernels import kernel, launch
from tests.simulate.mutants import with_smaller_buffers, without_barriers

SIZE = (32, 32, 64)


def registers(first, count):
    return "{" + ", ".join(f"%r{first + k}" for k in range(count)) + "}"


LOADS = (f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {registers(1, 8)}, [%rd0], 16; "
         f"wmma.load.b.sync.aligned.col.m16n16k16.f16 {registers(9, 8)}, [%rd1];")
PRODUCT = (f"mov.b32 %r17, 0; wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {registers(20, 8)}, {registers(1, 8)}, "
           f"{registers(9, 8)}, {{%r17, %r17, %r17, %r17, %r17, %r17, %r17, %r17}}; ")
STORE = f"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd2], {registers(20, 8)}, 16;"


def arrays():
    rng = np.random.default_rng(0)
    return [*(rng.integers(-4, 5, (16, 16)).astype("float16") for _ in range(2)), np.zeros((16, 16), "float32")]


def test_a_product():
    a, b, c = arrays()
    report = launch(kernel(LOADS + PRODUCT + STORE, "ABC"), a, b, c)
    assert not report.findings
    np.testing.assert_array_equal(c.T, a.astype("float32") @ b.T.astype("float32"))
    assert report.instructions["tensor"] == 1
    assert report.traffic("global", "load").asked == report.traffic("global", "store").asked == 1024


@pytest.mark.parametrize("where, body", [
    ("shuffle from an absent thread", f"setp.lt.u32 %p1, %r0, 16; @!%p1 bra L; {LOADS} L:"),
    ("different arguments in a warp", f"and.b32 %r40, %r0, 1; mad.wide.u32 %rd0, %r40, 32, %rd0; {LOADS}"),
    ("misaligned access", f"add.s64 %rd0, %rd0, 8; {LOADS}"),
    ("access outside", f"add.s64 %rd0, %rd0, 32; {LOADS}"),
    ("uninitialised read", ".shared .align 32 .b8 s[512]; "
                           f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {registers(1, 8)}, [s], 16;")])
def test_findings(where, body):
    report = launch(kernel(body, "ABC"), *arrays())
    assert where in {finding.kind for finding in report.findings}


def test_a_block_without_whole_warps():
    report = launch(kernel(LOADS, "ABC"), *arrays(), block=(16, 1, 1))
    assert "shuffle from an absent thread" in {finding.kind for finding in report.findings}


def test_stores_of_two_warps_race():
    body = LOADS + PRODUCT + "cvt.rn.f32.u32 %f1, %r0; mov.b32 %r20, %f1;" + STORE
    report = launch(kernel(body, "ABC"), *arrays(), block=(64, 1, 1))
    assert "race" in {finding.kind for finding in report.findings}


@pytest.mark.parametrize("instruction", [
    f"wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {registers(1, 4)}, [%rd0], 16;",
    f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {registers(1, 3)}, [%rd0], 16;"])
def test_what_is_not_known_is_refused(instruction):
    with pytest.raises(DeviceError, match="does not know the instruction wmma"):
        launch(kernel(instruction, "ABC"), *arrays())


# --- of schedules -------------------------------------------------------------------------------------------------------

def build(**options):
    return tedsl.build(*product(SIZE, **options), target="cuda -arch=sm_80")


def launched(f):
    """The report of a launch, and whether its result is right."""
    given, out, expected = inputs(SIZE)
    device = tedsl.sim(0)
    values = [tedsl.nd.array(value, device) for value in (*given, out)]
    f(*values)
    return simulate.last_report(), np.array_equal(values[-1].numpy(), expected)


def test_a_report():
    report, right = launched(build(warps=(2, 2)))
    assert right and not report.findings
    assert report.instructions["tensor"] == 4 * 4  # warps, steps
    loads, stores = report.traffic("shared", "load"), report.traffic("global", "store", "C")
    assert loads.asked == 4 * 4 * 2 * 512 and stores.asked == 32 * 32 * 4 and stores.efficiency == 1.0
    assert "tensor 16" in str(report)


def test_mistakes_are_found(monkeypatch):
    """Without one of its barriers, or with less shared memory, no launch is clean."""
    made = []
    mutants = without_barriers(lambda: made.append(build(warps=(2, 2))), monkeypatch)
    assert len(mutants) == 2
    (function,) = made[0].imported_modules[0].code.functions
    text = made[0].imported_modules[0].get_source()
    mutants += with_smaller_buffers(text, 64)
    assert len(mutants) == 4
    given, out, _ = inputs(SIZE)
    for what, changed in mutants:
        report = launch(changed, *given, out.copy(), block=(32, 2, 2), name=function.name)
        assert report.findings, what
    assert not launch(text, *given, out, block=(32, 2, 2), name=function.name).findings

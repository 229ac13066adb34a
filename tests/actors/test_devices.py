"""Registers on devices: copies there, back and between two of them, kernels as tasks, what is refused."""

import threading

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.actors import Pipeline, Runtime, Spec, memory_of, parse
from tedsl.actors.machine.actor import devices_to_wait_for
from tedsl.errors import ActorError, DeviceError, PlanError
from tedsl.runtime.devices.opencl.opened import devices, partition
from tests.devices.opencl_device import needs_opencl

KINDS = [pytest.param("opencl", marks=needs_opencl), "sim"]
SIZE = 100


def doubled(kind, size=SIZE):
    """A kernel for a kind of device: twice an array."""
    a = te.placeholder((size,), name="a")
    b = te.compute((size,), lambda i: a[i] * 2, name="b")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    return tedsl.build(s, [a, b], "cuda" if kind == "sim" else kind)


def numbers(number, out):
    out[...] = np.arange(out.size) + 10 * number


def results(plan, batches=5):
    """What the sink of a plan gets."""
    got = []
    Runtime(plan).run(batches, feed=numbers, fetch=lambda n, value: got.append(value.copy()))
    return got


def there_and_back(kind, thread=""):
    p = Pipeline("there_and_back")
    there = p.copy("there", p.source("a", None, Spec((SIZE,))), kind, thread=thread)
    twice = p.task("twice", doubled(kind), there, Spec((SIZE,)), device=kind, thread=thread)
    again = p.task("again", doubled(kind), twice, Spec((SIZE,)), device=kind, thread=thread)
    p.sink("end", None, [p.copy("back", again, "cpu")])
    return p.plan()


@pytest.mark.parametrize("thread", ["", "device"])
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_on_a_device_between_copies(kind, thread):
    """On one thread the kernels share a stream, and nobody waits between them."""
    plan = there_and_back(kind, thread)
    assert str(parse(str(plan), plan.functions)) == str(plan)
    assert devices_to_wait_for(plan, plan.tasks["twice"]) == (() if thread else (tedsl.device(kind),))
    assert memory_of(plan).chunks == {"cpu": 2 * 448 + 2 * 448, kind: 3 * 2 * 512}
    for n, value in enumerate(results(plan)):
        np.testing.assert_array_equal(value, 4 * (np.arange(SIZE) + 10 * n))


@pytest.mark.parametrize(("one", "other"), [pytest.param("opencl", "sim", marks=needs_opencl),
                                            pytest.param("sim", "opencl", marks=needs_opencl), ("sim", "sim"), ("sim", "sim:1"),
                                            pytest.param("opencl", "opencl", marks=needs_opencl)])
def test_copies_between_devices(one, other):
    if other == "sim:1" and not tedsl.device("sim", 1).exist:
        pytest.skip("there is one simulated device")
    p = Pipeline("between")
    here = p.copy("here", p.source("a", None, Spec((SIZE,), "int64")), one)
    p.sink("end", None, [p.copy("back", p.copy("there", here, other), "cpu")])
    for n, value in enumerate(results(p.plan())):
        np.testing.assert_array_equal(value, np.arange(SIZE) + 10 * n)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_on_a_device(kind):
    """Batches of 2 x 128 numbers in two pieces, in the memory of the batch; each piece through a kernel, then packed."""
    p = Pipeline("pieces")
    there = p.copy("there", p.source("a", None, Spec((256,))), kind)
    twice = p.task("twice", doubled(kind, 128), p.unpack("halves", there, 2), Spec((128,)), device=kind)
    p.sink("end", None, [p.copy("back", p.repeat("same", p.pack("whole", twice, 2), 2), "cpu")])
    got = results(p.plan(), 3)
    assert len(got) == 6
    for n, value in enumerate(got):
        np.testing.assert_array_equal(value, 2 * (np.arange(256) + 10 * (n // 2)))


def test_a_kernel_for_the_processor_refuses_arrays_of_a_device():
    p = Pipeline("wrong")
    there = p.copy("there", p.source("a", None, Spec((SIZE,))), "sim")
    p.sink("end", None, [p.task("t", lambda x, out: np.copyto(out, x + 1), there, Spec((SIZE,)))])
    with pytest.raises(ActorError, match=r"plan wrong: t failed in its act 0 .*has no operators"):
        results(p.plan())


def accumulates(p, there):
    p.sink("end", None, [p.acc("total", there, 2)])


def passes_on(p, there):
    p.of_kind("same", "repeat", there, Spec((4,)), steps=2)


def leaves(p, there):
    p.sink("end", None, [there])
    p.at("one", "end")


REFUSED = {"acc": (accumulates, "total: sums are made in the memory of the processor, and there lies on sim"),
           "repeat": (passes_on, "same: a repeat passes arrays on, and its registers lie on cpu, sim"),
           "worker": (leaves, "register there lies on sim and is read in another process")}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_on_devices_is_refused(name):
    make, words = REFUSED[name]
    p = Pipeline("p")
    make(p, p.copy("there", p.source("a", None, Spec((4,))), "sim"))
    with pytest.raises(PlanError, match=words):
        p.plan()


def test_devices_that_are_not_there():
    for device in ("magic", "opencl:x"):
        p = Pipeline("p")
        p.sink("end", None, [p.source("a", lambda out: None, Spec((4,)), device=device)])
        with pytest.raises(PlanError, match=f"register a lies on '{device}'"):
            p.plan()
    p = Pipeline("p")
    p.sink("end", None, [p.source("a", lambda out: None, Spec((4,)), device="opencl:99")])
    with pytest.raises(DeviceError, match=r"there is no device opencl\(99\) here"):
        Runtime(p.plan())


@needs_opencl
def test_parts_of_a_device_are_devices():
    whole = tedsl.opencl(0)
    units = whole.driver.properties(0).processors
    before = len(devices())
    numbers = partition(0, max(units // 2, 1))
    assert numbers[0] == before and all(whole.driver.properties(at).processors == max(units // 2, 1) for at in numbers)
    p = Pipeline("between")
    here = p.copy("here", p.source("a", None, Spec((SIZE,))), f"opencl:{numbers[0]}")
    p.sink("end", None, [p.copy("back", p.copy("there", here, f"opencl:{numbers[-1]}"), "cpu")])
    for n, value in enumerate(results(p.plan())):
        np.testing.assert_array_equal(value, np.arange(SIZE) + 10 * n)
    for number, size, words in [(0, 9999, "not split into groups of 9999"), (0, -1, "not split into groups of -1"),
                                (99, 1, r"there is no opencl\(99\)")]:
        with pytest.raises(DeviceError, match=words):
            partition(number, size)


def test_threads_that_share_a_simulated_device_take_turns():
    """Each launches kernels over memory of its own while the others allocate, copy and launch."""
    function, failures = doubled("sim", 64), []

    def work(seed):
        try:
            for n in range(12):
                given = np.full(64 * (1 + (seed + n) % 3), seed + n, "float32")[:64]
                a, b = tedsl.nd.array(given, tedsl.sim(0)), tedsl.nd.empty((64,), device=tedsl.sim(0))
                function(a, b)
                np.testing.assert_array_equal(b.numpy(), 2 * given)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures

"""Runs on threads: values, order, memory, failures, what is reported."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import tedsl
from tedsl import actors, te
from tedsl.actors import Pipeline, Runtime, Spec, simulate
from tedsl.actors.running import part, thread
from tedsl.errors import ActorError, ArgumentError, ArgumentTypeError, PlanError
from tests.actors.random_plans import random_plan


def counting(number, out):
    out[...] = np.arange(out.size).reshape(out.shape) + 10 * number


def collected(plan, batches, **kwargs):
    """What the sinks get, in order."""
    got = {name: [] for name, task in plan.tasks.items() if task.kind == "sink"}
    fetch = {name: lambda number, value, into=into: into.append(value.copy()) for name, into in got.items()}
    Runtime(plan).run(batches, fetch=fetch, **kwargs)
    return got


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("short_acts, nanoseconds", [(16, 20_000), (0, 10**12), (2, 5_000)], ids=["", "lent", "lent at times"])
def test_random_plans_compute_what_their_formulas_say(seed, short_acts, nanoseconds, monkeypatch):
    monkeypatch.setattr(thread, "_SHORT_ACTS", short_acts)
    monkeypatch.setattr(thread, "_SHORT", nanoseconds)
    if nanoseconds != 20_000:
        monkeypatch.setattr(part, "waits_for_nobody", lambda function: True)
    rng = np.random.default_rng(100 + seed)
    for _ in range(5):
        plan, sinks = random_plan(rng)
        if plan is None:
            continue
        batches = 8
        values = [np.arange(8, dtype="float32") + 10 * n for n in range(batches)]
        sources = [name for name, task in plan.tasks.items() if task.kind == "source"]
        feed = {name: lambda number, out, at=at, values=values: np.copyto(out, values[number] + at)
                for at, name in enumerate(sources)}
        got = collected(plan, batches, feed=feed)
        assert got.keys() == sinks.keys()
        for name, reference in sinks.items():
            np.testing.assert_array_equal(got[name], reference(values), err_msg=f"{plan}: {name}")


def test_a_plan_runs_again_and_any_number_of_batches():
    p = Pipeline()
    p.sink("end", None, [p.task("twice", lambda a, b: np.multiply(a, 2, out=b), p.source("a", None, Spec((3,))), Spec((3,)))])
    runtime = Runtime(p.plan())
    for batches in (0, 1, 7):
        got = []
        report = runtime.run(batches, feed=counting, fetch=lambda n, value, got=got: got.append(value[0]))
        assert got == [20 * n for n in range(batches)] and report.shares["twice"].acts == batches


def test_a_source_ends_a_run():
    def three(number, out):
        counting(number, out)
        return number < 3

    def stops(number, out):
        if number == 2:
            raise StopIteration

    p = Pipeline()
    p.sink("end", None, [p.source("a", None, Spec((2,)))])
    runtime = Runtime(p.plan())
    assert runtime.run(feed=three).shares["end"].acts == 3
    assert runtime.run(feed=stops).shares["end"].acts == 2
    assert threading.active_count() == 1 or not [one for one in threading.enumerate() if one.name in ("a", "end")]


def test_control_registers_order_tasks_without_data():
    order = []
    p = Pipeline()
    a = p.source("a", None, Spec((1,)), count=4)
    p.sink("first", lambda value: order.append("first"), [a])
    p.sink("second", lambda value: order.append("second"), [a])
    p.after("second", "first")
    Runtime(p.plan()).run(5, feed=counting)
    for at in range(5):
        assert order.index("first") < order.index("second")
        assert [one for one in order if one == "first"][:at + 1]
    firsts = [at for at, one in enumerate(order) if one == "first"]
    seconds = [at for at, one in enumerate(order) if one == "second"]
    assert all(a < b for a, b in zip(firsts, seconds))


def test_a_change_in_place_takes_no_memory_and_keeps_its_input():
    p = Pipeline()
    a = p.source("a", None, Spec((100,)), count=2)

    def add_one(value):
        value += 1

    p.sink("end", None, [p.task("add", add_one, a, Spec((100,)), in_place=True)])
    runtime = Runtime(p.plan())
    assert list(runtime.memory.blocks) == ["a"] and runtime.memory.chunks == {"cpu": 2 * 448}
    got = []
    runtime.run(6, feed=counting, fetch=lambda n, value: got.append(value[0]))
    assert got == [10 * n + 1 for n in range(6)]


def test_changes_in_place_that_others_would_see_are_refused():
    def plan(make):
        p = Pipeline("p")
        stream = make(p, p.source("a", None, Spec((4,))))
        p.sink("end", None, [p.task("change", lambda value: None, stream, Spec(stream.specs[0].shape), in_place=True)])
        return p

    def also_read(p, a):
        p.sink("other", None, [a])
        return a

    assert plan(lambda p, a: p.unpack("pieces", a, 2)).plan().registers["change"].in_place == "pieces"
    with pytest.raises(PlanError, match="change changes a in place, and other reads it too"):
        plan(also_read).plan()
    with pytest.raises(PlanError, match="change changes pieces in place, and other reads a too"):
        plan(lambda p, a: p.unpack("pieces", also_read(p, a), 2)).plan()
    with pytest.raises(PlanError, match="change changes again in place, which is the same batch 2 times"):
        plan(lambda p, a: p.repeat("again", a, 2)).plan()


def test_arrays_lie_at_fixed_addresses():
    seen = set()
    p = Pipeline()
    p.sink("end", lambda value: seen.add(value.ctypes.data), [p.source("a", None, Spec((5,)), count=3)])
    runtime = Runtime(p.plan())
    runtime.run(50, feed=counting)
    runtime.run(50, feed=counting)
    assert len(seen) == 3 and all(address % 64 == 0 for address in seen)


@pytest.mark.parametrize("where", ["source", "task", "sink"])
def test_a_failure_names_actor_and_act_and_ends_all_threads(where):
    def fails(*arrays):
        fails.calls += 1
        if fails.calls == 4:
            raise ValueError("no such picture")
    fails.calls = 0
    p = Pipeline("broken")
    a = p.source("source", fails if where == "source" else lambda out: None, Spec((2,)))
    b = p.task("task", fails if where == "task" else lambda a, b: None, a, Spec((2,)))
    p.sink("sink", fails if where == "sink" else None, [b])
    before = threading.active_count()
    with pytest.raises(ActorError, match=rf"plan broken: {where} failed in its act 3 .*ValueError: no such picture") as caught:
        Runtime(p.plan()).run(100)
    assert isinstance(caught.value.__cause__, ValueError)
    assert threading.active_count() == before


def test_an_interrupt_leaves_no_thread():
    p = Pipeline()
    p.sink("end", lambda value: time.sleep(0.01), [p.source("a", lambda out: None, Spec((2,)))])
    runtime = Runtime(p.plan())
    before = threading.active_count()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore the signal
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            runtime.run(2000)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    assert threading.active_count() == before


def test_a_group_that_is_not_whole_is_told():
    p = Pipeline()
    p.sink("end", None, [p.acc("total", p.source("a", None, Spec((2,))), 4)])
    runtime = Runtime(p.plan())
    with pytest.raises(ArgumentError, match=r"6 batches make 3/2 of total(.|\n)*a multiple of 4"):
        runtime.run(6, feed=counting)
    with pytest.raises(ActorError, match=r"ended when total had 2 of 4 steps"):
        runtime.run(feed=lambda number, out: number < 6)
    assert runtime.run(8, feed=counting).shares["end"].acts == 2


def test_gradients_summed_over_pieces_are_those_of_the_whole_batch():
    rng = np.random.default_rng(0)
    inputs, targets, weight = rng.standard_normal((4, 8, 5)), rng.standard_normal((4, 8, 2)), rng.standard_normal((5, 2))

    def gradient(x, y, w, out):
        out[...] = 2 * x.T @ (x @ w - y) / 8

    p = Pipeline("accumulate")
    x, y = [p.unpack(f"{name}_pieces", p.source(name, None, Spec((8, size), "float64")), 4) for name,
            size in (("x", 5), ("y", 2))]
    w = p.repeat("same", p.source("w", None, Spec((5, 2), "float64")), 4)
    p.sink("end", None, [p.acc("total", p.task("gradient", gradient, [x, y, w], Spec((5, 2), "float64")), 4)])
    got = []
    Runtime(p.plan()).run(4, feed={"x": lambda n, out: np.copyto(out, inputs[n]),
                                   "y": lambda n, out: np.copyto(out, targets[n]),
                                   "w": lambda n, out: np.copyto(out, weight)}, fetch=lambda n, value: got.append(value.copy()))
    for at in range(4):
        np.testing.assert_allclose(got[at], 2 * inputs[at].T @ (inputs[at] @ weight - targets[at]) / 8, rtol=1e-12)


def test_the_report_names_the_bottleneck_and_the_register_that_helps():
    def sleeps(seconds):
        return lambda *arrays: time.sleep(seconds)

    p = Pipeline()
    a = p.source("a", sleeps(0.02), Spec((1,)), count=1)
    p.sink("end", sleeps(0.02), [p.task("b", sleeps(0.03), a, Spec((1,)), count=1)])
    plan = p.plan()
    report = Runtime(plan).run(20)
    assert report.bottleneck == "b" and "the bottleneck is b" in str(report)
    modelled = simulate(plan, {"a": 0.02, "b": 0.03, "end": 0.02}, 20).end
    assert modelled == pytest.approx(20 * 0.05, rel=0.1)
    assert set(report.more_registers()) <= {"a", "b"} and report.shares["end"].for_input > 0.1
    assert [span.number for span in report.spans() if span.actor == "b"] == list(range(20))


MISTAKES = {
    "batches": (lambda r: r.run(-1), ArgumentError, "batches is -1"),
    "feed": (lambda r: r.run(1, feed=3), ArgumentTypeError, "feed is an int"),
    "feed of a task": (lambda r: r.run(1, feed={"b": counting}), ArgumentError,
                       "feed names 'b', which is no source; there are: a"),
    "no function": (lambda r: r.run(1), ArgumentError, "a has no function that fills its outputs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_words(name):
    wrong, kind, words = MISTAKES[name]
    p = Pipeline()
    p.sink("end", None, [p.task("b", lambda a, b: None, p.source("a", None, Spec((2,))), Spec((2,)))])
    with pytest.raises(kind, match=words):
        wrong(Runtime(p.plan()))


P = Pipeline("p")
A = P.source("a", None, Spec((3,)))
PLANS = {
    "name": (lambda: P.source("a", None, Spec((3,))), PlanError, "there is a task a"),
    "identifier": (lambda: P.source("a b", None, Spec((3,))), PlanError, "'a b' cannot be the name"),
    "input": (lambda: P.task("t", None, [3], Spec((3,))), ArgumentTypeError, "task t: an input is an int"),
    "twice": (lambda: P.task("t", None, [A, A], Spec((3,))), PlanError, "an input is given twice"),
    "stranger": (lambda: Pipeline("q").sink("t", None, [A]), PlanError, "belongs to the pipeline p"),
    "spec": (lambda: P.source("s", None, (3,)), ArgumentTypeError, "an output is an int"),
    "count": (lambda: P.source("s", None, Spec((3,)), count=0), ArgumentError, "count is 0"),
    "function": (lambda: P.task("t", "relu", [A], Spec((3,))), ArgumentTypeError, "its function is a str"),
    "pieces": (lambda: P.unpack("u", A, 2), PlanError, "no first dimension of which 2 equal pieces"),
    "kind": (lambda: P.of_kind("u", "magic", A, Spec((3,))), ArgumentError, "no kind of actor 'magic'"),
    "kind of a user": (lambda: actors.register_kind("mine"), ArgumentTypeError, "a kind is a Kind, not a str"),
    "chunks": (lambda: actors.shared_chunks([3]), ArgumentTypeError, r"takes a list of MemoryPlans, not \[3\]"),
    "after": (lambda: P.after("a", "z"), PlanError, "there is no task 'z'; tasks: a"),
    "device": (lambda: P.source("s", None, Spec((3,)), device=3), ArgumentTypeError, "source s: device is an int"),
    "thread": (lambda: P.sink("s", None, A, thread=b"s"), ArgumentTypeError, "sink s: thread is a bytes"),
    "nothing": (lambda: Pipeline("q").plan(), PlanError, "plan q has no task"),
}


@pytest.mark.parametrize("name", PLANS)
def test_mistakes_in_plans_are_refused_in_words(name):
    wrong, kind, words = PLANS[name]
    with pytest.raises(kind, match=words):
        wrong()


def test_a_model_is_changed_before_the_next_batch_sees_it():
    """One step of descent a batch, its gradient summed over four pieces: the same numbers as one after the other."""
    rng = np.random.default_rng(0)
    inputs, targets, weight = rng.standard_normal((6, 8, 5)), rng.standard_normal((6, 8)), np.zeros(5)

    def gradient(x, y, out):
        out[...] = 2 * x.T @ (x @ weight - y) / 8

    def step(total):
        weight[...] -= 0.1 * total

    p = Pipeline()
    x, y = [p.unpack(f"{name}_pieces", p.source(name, None, Spec(shape, "float64")), 4) for name,
            shape in (("x", (8, 5)), ("y", (8,)))]
    p.sink("step", step, [p.acc("total", p.task("learn", gradient, [x, y], Spec((5,), "float64")), 4)])
    p.after("learn", "step", previous=True, steps=4)
    plan = p.plan()
    assert str(actors.parse(str(plan), plan.functions)) == str(plan)
    Runtime(plan).run(6, feed={"x": lambda n, out: np.copyto(out, inputs[n]), "y": lambda n, out: np.copyto(out, targets[n])})
    expected = np.zeros(5)
    for a, b in zip(inputs, targets):
        expected -= 0.1 * 2 * a.T @ (a @ expected - b) / 8
    np.testing.assert_allclose(weight, expected, rtol=1e-12)


def threads_of_acts(**places):
    """By actor, the threads on which its function was called in 300 short acts."""
    seen = {name: set() for name in ("a", "b", "c")}

    def noted(name):
        return lambda *arrays: seen[name].add(threading.current_thread().name)

    p = Pipeline()
    stream = p.source("a", noted("a"), Spec((1,)), thread=places.get("a", ""))
    p.sink("c", noted("c"), p.task("b", noted("b"), stream, Spec((1,)), thread=places.get("b", "")))
    Runtime(p.plan()).run(300)
    return seen


def test_short_acts_are_done_by_whoever_has_nothing_else_to_do(monkeypatch):
    monkeypatch.setattr(thread, "_SHORT", 10**12)
    assert threads_of_acts() == {"a": {"a"}, "b": {"b"}, "c": {"c"}}, "functions of Python have threads of their own"
    monkeypatch.setattr(part, "waits_for_nobody", lambda function: True)
    assert any(names - {actor} for actor, names in threads_of_acts().items())
    held = threads_of_acts(a="mine", b="mine")
    assert held["a"] == held["b"] == {"mine"}, "a thread with a name of its own is for what was asked to be there"


def test_whoever_acts_for_others_does_a_little_at_a_time(monkeypatch):
    """A thread that never runs: 16 messages and acts each time, none after a long act, and the rest waits for the next one."""
    monkeypatch.setattr(part, "waits_for_nobody", lambda function: True)
    monkeypatch.setattr(thread, "_SHORT_ACTS", 0)
    p = Pipeline()
    p.sink("end", None, p.source("a", None, Spec((1,)), count=100))
    plan = p.plan()
    arrays = {"a": [[np.zeros(1, "float32")] for _ in range(100)]}
    whole = part.Part(plan, "", arrays, {"a": lambda out: None, "end": None}, {}, 50)
    source = next(one for one in whole.threads if one.name == "a")
    source._begin()
    for acts in (16, 32):
        source.act_for()
        assert whole.actors["a"].acts == acts and whole.bus._lent.count(source) >= 1
    monkeypatch.setattr(thread, "_SHORT", 0)
    source._to_show = 0
    source._shown = 16
    source.act_for()
    assert whole.actors["a"].acts == 33 and not source.is_lent


def test_kernels_wait_for_nobody():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2, name="B")
    kernel = tedsl.build(te.create_schedule(B.op), [A, B])
    assert all(map(part.waits_for_nobody, (kernel, kernel["default_function"], None)))
    assert not any(map(part.waits_for_nobody, (time.sleep, print, lambda: None)))


def test_a_message_does_not_wait_for_the_next_act_of_its_sender(monkeypatch):
    """After acts that count as short the source waits until the sink has seen what it sent before."""
    monkeypatch.setattr(thread, "_SHORT", 10**12)
    monkeypatch.setattr(part, "waits_for_nobody", lambda function: True)
    seen, answers = [], []

    def feed(number, out):
        time.sleep(0.001)  # the sink is asleep
        end = time.monotonic() + 60
        while number == 30 and 29 not in seen and time.monotonic() < end:
            time.sleep(0.001)
        answers.append(number < 30 or 29 in seen)

    p = Pipeline()
    p.sink("end", None, [p.source("a", lambda out: None, Spec((1,)), count=40)])
    Runtime(p.plan()).run(31, feed=feed, fetch=lambda number, value: seen.append(number))
    assert all(answers) and seen == list(range(31))


def test_functions_that_were_short_may_wait_for_each_other():
    """The source in act 20 and later, and the sink three acts behind, go on when both are in an act."""
    both = threading.Barrier(2, timeout=60)

    def meet(number, *arrays):
        if 20 <= number < 32:
            both.wait()

    p = Pipeline()
    p.sink("end", None, p.repeat("b", p.source("a", None, Spec((1,)), count=4), 1, count=4))
    assert Runtime(p.plan()).run(40, feed=meet, fetch=lambda number, x: meet(number + 3)).shares["end"].acts == 40


@pytest.mark.whole
def test_long_runs_take_no_more_memory():
    import tracemalloc

    p = Pipeline()
    p.sink("end", lambda value: None, [p.task("t", lambda a, b: None, p.source("a", lambda out: None, Spec((2,)), thread="one"),
                                              Spec((2,)), thread="one")], thread="one")
    runtime = Runtime(p.plan())
    peaks = []
    for batches in (6000, 20_000):
        tracemalloc.start()
        runtime.run(batches)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_a_second_run_in_the_same_registers_is_refused():
    p = Pipeline("p")
    p.sink("end", lambda value: runtime.run(1, feed=counting), [p.source("a", None, Spec((2,)))])
    runtime = Runtime(p.plan())
    with pytest.raises(ActorError, match="a run of this Runtime is under way"):
        runtime.run(1, feed=counting)
    assert runtime.run(0, feed=counting).shares["end"].acts == 0


def test_inputs_are_read_only_and_returned_arrays_are_refused():
    def spoils(x, out):
        x.fill(99)

    for function, words in [(spoils, "read-only"), (lambda x, out: x * 2, "the function of b returned an array of its own")]:
        p = Pipeline()
        a = p.source("a", None, Spec((2,)))
        p.sink("end", None, [p.task("b", function, a, Spec((2,)))])
        with pytest.raises(ActorError, match=words):
            Runtime(p.plan()).run(2, feed=counting)


def test_feeds_are_functions():
    p = Pipeline()
    p.sink("end", None, [p.source("a", None, Spec((2,)))])
    with pytest.raises(ArgumentTypeError, match="feed of a is an int"):
        Runtime(p.plan()).run(1, feed={"a": 3})


def test_a_function_that_is_interrupted_ends_the_run():
    def interrupted(*arrays):
        raise KeyboardInterrupt

    p = Pipeline("stopped")
    p.sink("end", interrupted, [p.source("a", lambda out: None, Spec((4,)))])
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        Runtime(p.plan()).run(batches=3)
    assert threading.active_count() == before


def test_memory_for_devices_that_a_plan_does_not_use_is_refused():
    p = Pipeline("small")
    p.sink("end", None, [p.source("a", lambda out: None, Spec((4,)))])
    with pytest.raises(ArgumentError, match=r"uses no memory on 'gpu', for which a chunk is given(.|\n)*on cpu"):
        Runtime(p.plan(), chunks={"gpu": np.empty(4096, "uint8")})


def test_threads_run_on_the_processors_that_they_are_held_to():
    seen = {}
    mine = os.sched_getaffinity(0)
    one = min(mine)
    p = Pipeline("held")
    p.sink("end", lambda value: seen.update(end=os.sched_getaffinity(0)), [
        p.source("a", lambda out: seen.update(a=os.sched_getaffinity(0)), Spec((4,)), thread="first")])
    Runtime(p.plan(), cores={"first": [one]}).run(1)
    assert seen == {"a": {one}, "end": mine} and os.sched_getaffinity(0) == mine
    for cores, kind, words in [({"a": [one]}, ArgumentError, r"names .a., which is no thread of plan held; .*: end, first"),
                               ({"first": []}, ArgumentError, r"cores of first are \[\]; those that"),
                               ({"first": [one, 9999]}, ArgumentError, "cores of first are"),
                               ({"first": 1}, ArgumentError, "cores of first are 1"),
                               (3, ArgumentTypeError, "cores is an int")]:
        with pytest.raises(kind, match=words):
            Runtime(p.plan(), cores=cores)


def test_two_replicas_learn_as_one_large_batch():
    """Data-parallel: each replica has half of a batch, an input-wise task sums their gradients as they come."""
    rng = np.random.default_rng(1)
    inputs, targets, weight = rng.standard_normal((5, 8, 3)), rng.standard_normal((5, 8)), np.zeros(3)

    def gradient(x, y, out):
        out[...] = 2 * x.T @ (x @ weight - y) / 8

    def step(total):
        weight[...] -= 0.1 * total

    spec = Spec((3,), "float64")
    p = Pipeline("replicas")
    learned = []
    for half in (slice(0, 4), slice(4, 8)):
        at = half.start // 4
        data = p.source(f"data{at}", None, [Spec((4, 3), "float64"), Spec((4,), "float64")])
        learned.append(p.task(f"learn{at}", gradient, data, spec))
    p.sink("step", step, [p.inputwise("total", learned)])
    for at in range(2):
        p.after(f"learn{at}", "step", previous=True)

    def feed(half):
        def function(n, x, y):
            x[...], y[...] = inputs[n, half], targets[n, half]

        return function

    Runtime(p.plan()).run(5, feed={"data0": feed(slice(0, 4)), "data1": feed(slice(4, 8))})
    expected = np.zeros(3)
    for x, y in zip(inputs, targets):
        expected -= 0.1 * 2 * x.T @ (x @ expected - y) / 8
    np.testing.assert_allclose(weight, expected, rtol=1e-12)

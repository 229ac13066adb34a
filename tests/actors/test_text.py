"""Plans as text and JSON, their memory, and their pictures."""

import json
import textwrap
from itertools import pairwise

import numpy as np
import pytest

from tedsl import actors
from tedsl.actors import Pipeline, Runtime, Spec, memory_of, shared_chunks, simulate
from tedsl.errors import PlanError
from tests.actors.random_plans import random_plan


def sample():
    p = Pipeline("train")
    images = p.source("load", lambda out: None, Spec((8, 3), "uint8"), count=3)
    clean = p.task("prepare", lambda a, b: None, [images], Spec((8, 3)), thread="cpu")
    p.sink("end", lambda total: None, [p.acc("total", p.unpack("pieces", clean, 2), 2)])
    p.after("end", "load")
    return p


TEXT = textwrap.dedent("""\
    plan("train")
    task("load", "source", (), ("load", "load_before_end"), function="load", thread="load")
    task("prepare", "normal", ("load",), ("prepare",), function="prepare", thread="cpu")
    task("pieces", "unpack", ("prepare",), ("pieces",), thread="pieces", steps=2)
    task("total", "acc", ("pieces",), ("total",), thread="total", steps=2)
    task("end", "sink", ("total", "load_before_end"), (), function="end", thread="end")
    register("load", "load", ("prepare",), ("uint8[8, 3]",), count=3)
    register("prepare", "prepare", ("pieces",), ("float32[8, 3]",))
    register("pieces", "pieces", ("total",), ("float32[4, 3]",))
    register("total", "total", ("end",), ("float32[4, 3]",))
    register("load_before_end", "load", ("end",), (), count=1)""")


def test_a_plan_is_text_and_json_that_read_back():
    plan = sample().plan()
    assert str(plan) == TEXT
    for again in (actors.parse(str(plan), plan.functions), actors.from_json(actors.as_json(plan), plan.functions)):
        assert str(again) == str(plan) and again.functions == plan.functions


@pytest.mark.parametrize("seed", range(20))
def test_random_plans_read_back(seed):
    plan, _ = random_plan(np.random.default_rng(seed))
    if plan is not None:
        assert str(actors.parse(str(plan))) == str(plan) == str(actors.from_json(actors.as_json(plan)))


REFUSED = {
    "syntax": ("plan(", "line 1: "),
    "line": ("plan('a')\nprint(1)", r"line 2: print\(1\) is no line of a plan"),
    "field": ('task("a", "source", (), (), color=3)', "line 1: task: it has no field 'color'"),
    "missing": ('task("a")', "line 1: task: its kind, inputs, outputs is missing"),
    "code": ('task("a", open("b"), (), ())', "fields are numbers, strings and tuples"),
    "type": ('task("a", "source", "b", ())', "line 1: task: inputs is 'b'"),
    "spec": ('register("a", "b", (), ("float32",))', "line 1: 'float32' is no shape and dtype"),
    "producer": ('register("a", "b", (), ("float32[1]",))', "goes to or comes from 'b', which is no task"),
    "kind": ('task("a", "magic", (), ())', "no kind of actor 'magic'"),
    "unlisted": ('task("a", "source", (), ("r",))', "task a names the register 'r', which is not there"),
    "circle": ('task("a", "normal", ("s",), ("r",))\ntask("b", "normal", ("r",), ("s",))\n'
               'register("r", "a", ("b",), ())\nregister("s", "b", ("a",), ())', "wait for each other in a circle: a, b"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_texts_that_are_no_plan_are_refused(name):
    source, words = REFUSED[name]
    with pytest.raises((PlanError, actors.plan.check.PlanError, ValueError), match=words):
        actors.parse(source)


@pytest.mark.parametrize("source", ["", "[]",
                                    '{"tasks": 3, "registers": []}', '{"tasks": [3], "registers": []}', '{"tasks": []}'])
def test_json_that_is_no_plan_is_refused(source):
    with pytest.raises(PlanError):
        actors.from_json(source)


def test_exclusive_jobs_share_a_chunk():
    def job(name, size):
        p = Pipeline(name)
        p.sink("end", None, [p.source("a", lambda out: None, Spec((size,)), count=2)])
        return p.plan()

    train, evaluate = job("train", 1000), job("evaluate", 100)
    chunks = shared_chunks([memory_of(train), memory_of(evaluate)])
    assert chunks == memory_of(train).chunks  # an evaluation adds nothing
    memory = {"cpu": np.empty(chunks["cpu"], "uint8")}
    for plan in (train, evaluate):
        assert Runtime(plan, chunks=memory).run(3).shares["end"].acts == 3


def test_pictures_and_traces():
    p = Pipeline("p")
    p.sink("end", lambda value: None, [p.source("a", lambda out: None, Spec((2,)))])
    plan = p.plan()
    report = Runtime(plan).run(5)
    events = json.loads(report.timeline())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == ["a", "end"]
    assert sorted(e["args"]["act"] for e in events if e["ph"] == "X" and e["name"] == "a") == list(range(5))
    for shown in (report, plan, simulate(plan, {"a": 1, "end": 2}, 5)):
        assert "<svg" in shown._repr_html_() and ">end<" in shown._repr_html_()


def steps(number, count=1, thread="one", share=True):
    """A path of tasks, each of which adds its number; source and sink have threads of their own."""
    p = Pipeline("path")
    stream = p.source("a", None, Spec((64,)))
    for at in range(number):
        stream = p.task(f"t{at}", lambda x, out, at=at: np.add(x, at, out=out), [stream], Spec((64,)), count=count,
                        thread=thread)
    p.sink("end", None, [p.task("last", lambda x, out: np.copyto(out, x), stream, Spec((64,)), count=2, thread=thread)])
    return p.plan(share_memory=share)


def test_registers_of_a_path_share_memory_in_time():
    apart, shared = memory_of(steps(6, share=False)), memory_of(steps(6))
    assert apart.chunks == {"cpu": (2 + 6 + 2) * 256} and shared.chunks == {"cpu": (2 + 2 + 2) * 256}
    got = []
    for plan in (steps(6), actors.parse(str(steps(6)), steps(6).functions)):
        got.clear()
        Runtime(plan).run(40, feed=lambda n, out: out.fill(n), fetch=lambda n, value: got.append(value.copy()))
        np.testing.assert_array_equal(got, np.arange(40)[:, None] + np.full((1, 64), 15.0))
    assert memory_of(steps(6, count=2)).chunks == memory_of(steps(6, count=2, share=False)).chunks
    assert memory_of(steps(6, thread="")).chunks == apart.chunks


def test_blocks_that_two_tasks_may_use_at_once_are_refused():
    source = str(steps(3))
    assert 'primed=True' in source and 'block="t0_to_last"' in source
    for old, new, words in [("count=1, primed=True", "count=2, primed=True", "may begin the next batch before last is done"),
                            ('("float32[64]",), count=1, block', '("float32[64]",), count=2, block',
                             "such registers have the count 1"),
                            ('function="t1", thread="one"', 'function="t1", thread="two"', "run on different threads")]:
        assert old in source
        with pytest.raises(PlanError, match=words):
            actors.parse(source.replace(old, new))


def test_lifetimes_of_registers():
    """By hand: the source takes 1, the reader 2; pieces lend the batch out until the last of them is read."""
    p = Pipeline("p")
    pieces = p.unpack("pieces", p.source("a", None, Spec((4,)), count=2), 2)
    p.sink("end", None, [pieces])
    plan = p.plan()
    run = simulate(plan, {"a": 1, "end": 2}, 2)
    found = [(one.register, one.number, one.batch, one.begin, one.end) for one in actors.lifetimes(plan, run.spans)]
    assert found == [("a", 0, 0, 0, 5), ("a", 1, 1, 1, 9)]
    assert "cpu+64 a[1] 64 B" in actors.memory_over_time(plan, run.spans)
    assert actors.lifetimes(plan, run.spans[:1]) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_register_holds_one_batch_at_a_time(seed):
    plan, _ = random_plan(np.random.default_rng(seed))
    if plan is None:
        return
    found = actors.lifetimes(plan, simulate(plan, {name: 1 + at % 3 for at, name in enumerate(plan.tasks)}, 8).spans)
    by_register = {}
    for one in found:
        by_register.setdefault((one.register, one.number), []).append(one)
    for ones in by_register.values():
        assert all(before.end <= after.begin for before, after in pairwise(ones))

"""Scans in schedules: what belongs to the steps, which directives are refused and why."""

import pytest

from tedsl import te
from tedsl.errors import ScheduleError
from tedsl.schedule.scan.stages import scans_of


class Cell:
    """update(t) = double(state(t-1)) + ready(t), ready = X + 1 of the inputs."""

    def __init__(self, m=6, n=5):
        self.X = X = te.placeholder((m, n), name="X")
        self.W = W = te.placeholder((n,), name="W")
        self.state = te.placeholder((m, n), name="state")
        self.source = te.compute((1, n), lambda _, i: X[0, i] * 2, name="source")
        self.init = te.compute((1, n), lambda _, i: self.source[0, i], name="init")
        self.weight = te.compute((n,), lambda i: W[i] * 3, name="weight")
        self.ready = te.compute((m, n), lambda t, i: X[t, i] + 1, name="ready")
        self.double = te.compute((m, n), lambda t, i: self.state[t - 1, i] * self.weight[i], name="double")
        self.update = te.compute((m, n), lambda t, i: self.double[t, i] + self.ready[t, i], name="update")
        self.scan = te.scan(self.init, self.update, self.state, inputs=[X], name="scan")
        self.C = te.compute((m, n), lambda t, i: self.scan[t, i] + 1, name="C")
        self.s = te.create_schedule(self.C.op)


def names(stages):
    return {stage.name for stage in stages}


def test_what_belongs_to_the_steps():
    p = Cell()
    scans = scans_of(p.s.state)
    assert names(scans.steps) == {"update", "double", "ready"} and names(scans.stateful) == {"update", "double"}
    assert names(scans.updates) == {"update"} and names(scans.states) == {"state"} and names(scans.inits) == {"init"}
    p.s.cache_read(p.state, "local", [p.double])
    p.s.cache_write(p.update, "local")
    assert names(scans_of(p.s.state).steps) == {"update", "update.local", "double", "ready", "state.local"}
    without = te.scan(p.init, p.update, p.state)
    assert names(scans_of(te.create_schedule(without.op).state).steps) == {"update", "double"}  # ready is ready before


def test_stages_and_loops():
    p = Cell()
    assert [stage.op.name for stage in p.s.stages].index("update") < [stage.op.name for stage in p.s.stages].index("scan")
    assert list(p.s[p.scan].leaf_iter_vars) == [p.scan.op.scan_axis]
    assert repr(p.s[p.scan]).startswith("stage(scan, scan(scan")
    assert str(p.s[p.state]) == "state: state of scan [6, 5] float32"
    assert str(p.s[p.scan]) == "scan: computed at the root\n  for scan.idx in 0..5"
    assert str(p.s[p.update]) == "update: computed in each step of scan\n  for t\n    for i"


def test_the_steps_run_one_after_the_other():
    p = Cell()
    step = p.scan.op.scan_axis
    threads = te.thread_axis("threadIdx.x")
    for directive in (p.s[p.scan].parallel, p.s[p.scan].vectorize, lambda axis: p.s[p.scan].bind(axis, threads)):
        with pytest.raises(ScheduleError, match=r"scan.idx is the loop over the steps of scan(.|\n)*of s\[update\]"):
            directive(step)
    outer, inner = p.s[p.scan].split(step, factor=2)
    with pytest.raises(ScheduleError, match=r"the steps of scan would run in another order"):
        p.s[p.scan].reorder(inner, outer)
    p.s[p.scan].reorder(outer, inner)
    p.s[p.scan].unroll(inner)


def test_dimensions_of_states_are_no_loops():
    p = Cell()
    with pytest.raises(ScheduleError, match=r"scan.out0.i1 is a dimension of a state(.|\n)*s\[update\].op.axis"):
        p.s[p.scan].split(p.scan.op.spatial_axis_[0], factor=2)


def test_a_state_is_no_stage_with_loops():
    p = Cell()
    state, axis = p.s[p.state], p.update.op.axis[1]
    for directive in (lambda: state.compute_at(p.s[p.update], axis), state.compute_inline, lambda: state.split(axis, factor=2)):
        with pytest.raises(ScheduleError, match=r"state is a state of scan: it stands for the rows(.|\n)*s\[update\]"):
            directive()


def test_places_of_the_steps():
    p = Cell()
    p.s[p.double].compute_at(p.s[p.scan], p.scan.op.scan_axis)
    p.s[p.ready].compute_at(p.s[p.update], p.update.op.axis[1])
    p.s[p.weight].compute_at(p.s[p.scan], p.scan.op.scan_axis)
    p.s[p.double].compute_root()
    with pytest.raises(ScheduleError, match=r"double is computed in the steps of scan, C outside of them"):
        p.s[p.double].compute_at(p.s[p.C], p.C.op.axis[0])
    with pytest.raises(ScheduleError, match=r"update is computed in the steps of scan, C outside"):
        p.s[p.update].compute_at(p.s[p.C], p.C.op.axis[0])
    with pytest.raises(ScheduleError, match=r"source is needed for the first rows of scan, before its loops"):
        p.s[p.source].compute_at(p.s[p.scan], p.scan.op.scan_axis)
    with pytest.raises(ScheduleError, match=r"init is needed for the first rows"):
        p.s[p.init].compute_at(p.s[p.scan], p.scan.op.scan_axis)
    p = Cell()
    outer, inner = p.s[p.scan].split(p.scan.op.scan_axis, factor=2)
    with pytest.raises(ScheduleError, match=r"double depends on the state, and would be computed steps ahead"):
        p.s[p.double].compute_at(p.s[p.scan], outer)
    p.s[p.double].compute_at(p.s[p.scan], inner)
    p.s[p.ready].compute_at(p.s[p.scan], outer)


def test_an_update_that_another_reads_stays_in_the_steps():
    a, b = te.placeholder((4, 3), name="a"), te.placeholder((4, 3), name="b")
    zero = [te.compute((1, 3), lambda _, i: 0.0, name=name) for name in ("a0", "b0")]
    u = te.compute((4, 3), lambda t, i: a[t - 1, i] + 1, name="u")
    v = te.compute((4, 3), lambda t, i: b[t - 1, i] + u[t, i], name="v")
    A, _ = te.scan(zero, [u, v], [a, b], name="ab")
    s = te.create_schedule(A.op)
    with pytest.raises(ScheduleError, match=r"u is an update: its row is part of the result of the scan|ab uses u too"):
        s[u].compute_at(s[v], v.op.axis[0])


def test_what_has_no_formula_to_write_elsewhere():
    p = Cell()
    for one, problem in ((p.scan, "scan is not made by te.compute"), (p.init, "it reads init in memory"),
                         (p.update, "scan is not made by te.compute: it reads update")):
        with pytest.raises(ScheduleError, match=problem):
            p.s[one].compute_inline()
    with pytest.raises(ScheduleError, match=r"scan is not made by"):
        p.s.cache_write(p.scan, "local")
    with pytest.raises(ScheduleError, match=r"scan is not a reduction"):
        p.s.rfactor(p.scan, p.scan.op.scan_axis)


def test_states_and_updates_outside_of_the_steps():
    p = Cell()
    for tensor, problem in ((p.update, r"D reads update, which is the update of scan and exists in its steps only"),
                            (p.state, r"D reads state, which is a state of scan(.|\n)*use the result of te.scan, scan"),
                            (p.double, r"D reads double, which is a part of the steps of scan")):
        D = te.compute((6, 5), lambda t, i, tensor=tensor: tensor[t, i] + p.scan[t, i], name="D")
        with pytest.raises(ScheduleError, match=problem):
            te.create_schedule(D.op)
    with pytest.raises(ScheduleError, match=r"update is to be an output, which is the update of scan"):
        te.create_schedule([p.scan.op, p.update.op])
    te.create_schedule(p.update.op)  # without the scan, state is a placeholder like others


def test_a_state_of_two_scans():
    p = Cell()
    again = te.scan(p.init, te.compute((6, 5), lambda t, i: p.state[t - 1, i], name="again"), p.state, name="other")
    D = te.compute((6, 5), lambda t, i: again[t, i] + p.scan[t, i], name="D")
    with pytest.raises(ScheduleError, match=r"state belongs to (scan and to other|other and to scan)"):
        te.create_schedule(D.op)


def test_the_journal_rebuilds_the_schedule():
    p = Cell()
    outer, inner = p.s[p.scan].split(p.scan.op.scan_axis, factor=2)
    p.s[p.double].compute_at(p.s[p.scan], inner)
    again = te.create_schedule(p.C.op)
    exec(str(p.s.journal), {"te": te, "s": again, **{t.op.name: t for t in (p.scan, p.double, p.update, p.C)}})
    assert str(again) == str(p.s)
    replayed = te.create_schedule(p.C.op)
    replayed.replay(p.s.journal)
    assert str(replayed) == str(p.s)


class TwoStages:
    """update(t) = last(t)*2, last(t) = inner(t) + 1, inner(t) = state(t-1) + ready(t), ready = X*3 of the inputs."""

    def __init__(self, m=7, n=9):
        self.X = X = te.placeholder((m, n), name="X")
        self.state = te.placeholder((m, n), name="state")
        self.init = te.compute((1, n), lambda t, i: X[t, i], name="init")
        self.ready = te.compute((m, n), lambda t, i: X[t, i] * 3, name="ready")
        self.inner = te.compute((n, m), lambda i, t: self.state[t - 1, i] + self.ready[t, i], name="inner")
        self.last = te.compute((m, n), lambda t, i: self.inner[i, t] + 1, name="last")
        self.update = te.compute((m, n), lambda t, i: self.last[t, i] * 2, name="update")
        self.scan = te.scan(self.init, self.update, self.state, inputs=[X], name="scan")
        self.s = te.create_schedule(self.scan.op)


@pytest.mark.parametrize("sizes", [(7, 9), (te.size_var("m"), te.size_var("n"))], ids=["constant", "symbolic"])
@pytest.mark.parametrize("stage, axes, mixed", [
    ("inner", "it", lambda i, t: [t // 4, i, t % 4]), ("inner", "it", lambda i, t: [i, t // 2, t % 2]),
    ("last", "ti", lambda t, i: [i // 4, t // 4, i % 4, t % 4]), ("ready", "ti", lambda t, i: [t // 4, i, t % 4])])
def test_a_layout_of_a_stage_in_the_steps_leaves_the_steps_alone(sizes, stage, axes, mixed):
    p = TwoStages(*sizes)
    with pytest.raises(ScheduleError, match=rf"transform_layout\(...\) on stage {stage}: t counts the steps of scan(.|\n)*"
                                            r"leave t alone, at any place: \[..., t, ...\]; or copy the result, scan"):
        p.s[getattr(p, stage)].transform_layout(mixed)
    assert not p.s.journal and [loop.name for loop in p.s[getattr(p, stage)].leaf_iter_vars] == list(axes)


def test_the_dimension_of_the_steps_is_known_after_a_layout_and_behind_copies():
    p = TwoStages()
    p.s[p.last].transform_layout(lambda t, i: [i // 4, t, i % 4])
    with pytest.raises(ScheduleError, match="t counts the steps of scan"):
        p.s[p.last].transform_layout(lambda a, t, b: [a, t // 2, t % 2, b])
    copy = p.s.cache_write(p.last, "local")
    with pytest.raises(ScheduleError, match=r"on stage last.local: t.c counts the steps of scan"):
        p.s[copy].transform_layout(lambda a, t, b: [a, t*4 + b])


@pytest.mark.parametrize("stage, change", [("update", lambda p: p.s[p.ready].compute_at(p.s[p.init], p.init.op.axis[1])),
                                           ("init", lambda p: p.s[p.ready].compute_at(p.s[p.update], p.update.op.axis[0]))])
def test_who_reads_a_stage_besides_is_named(stage, change):
    p = TwoStages()
    X = p.X
    p.ready = te.compute((7, 9), lambda t, i: X[t, i] * 3, name="ready")
    p.init = te.compute((1, 9), lambda t, i: p.ready[t, i], name="init")
    p.update = te.compute((7, 9), lambda t, i: p.state[t - 1, i] + p.ready[t, i], name="update")
    p.s = te.create_schedule(te.scan(p.init, p.update, p.state, name="scan").op)
    with pytest.raises(ScheduleError, match=rf"{stage} uses ready too and is not computed inside (.|\n)*"
                                            "leave ready at the root: scan needs it for its first rows, before its loops"):
        change(p)

"""Random recurrences under random directives: refused with words, or the same rows as computed one after the other."""

import contextlib
import random

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import InternalError, LoweringError, ScheduleError
from tedsl.ir.evaluate import evaluate
from tedsl.lang.graph import producers_first
from tedsl.lang.scan.operation import ScanOp
from tedsl.schedule.attach import legal_places
from tests.lower.programs import execute


class Recurrence:
    """One or two states, operations between them, and a reader of the result; sizes small, constant or symbolic."""

    def __init__(self, rng):
        self.rows, self.width = rng.choice([1, 2, 3, 5, 7]), rng.choice([1, 2, 3, 4, 5, 8, 9])
        m, n = self.shape = (te.var("m"), te.var("n")) if rng.random() < 0.4 else (self.rows, self.width)
        self.sizes = {m: self.rows, n: self.width} if m is not self.rows else {}
        self.first = rng.choice([1, 1, 2]) if self.rows > 1 else 1
        self.X, self.W = te.placeholder((m, n), "int32", name="X"), te.placeholder((n, n), "int32", name="W")
        self.ready = te.compute((m, n), lambda t, i: self.X[t, i] * 2 + 1, name="ready")
        self.weight = te.compute((n, n), lambda i, j: self.W[j, i] + 1, name="weight")
        self.states = [te.placeholder((m, n), "int32", name=f"state{q}") for q in range(rng.choice([1, 2]))]
        self.inits = [te.compute((self.first, n), lambda t, i, q=q: t + i * (q + 1), name=f"init{q}")
                      for q in range(len(self.states))]
        self.between = []
        for number in range(rng.randint(0, 3)):
            self.between.append(self.operation(rng, f"p{number}"))
        self.updates = []
        for q in range(len(self.states)):
            self.updates.append(self.update(rng, f"update{q}"))
        scan = te.scan(self.inits, self.updates, self.states, inputs=rng.choice([None, [self.X]]), name="scan")
        self.results = scan if isinstance(scan, list) else [scan]
        self.C = te.compute((m, n), lambda t, i: sum((r[t, i] for r in self.results), self.results[0][m - 1 - t, i]), name="C")

    def operation(self, rng, name):
        state, back, n = rng.choice(self.states), rng.randint(1, self.first), self.shape[1]
        kind = rng.choice(["plain", "stencil", "product", "chain"])
        if kind == "chain" and self.between:
            source = rng.choice(self.between)
            return te.compute(self.shape, lambda t, i: source[t, n - 1 - i] + self.ready[t, i], name=name)
        if kind == "stencil":
            return te.compute(self.shape, lambda t, i: te.if_then_else(i > 0, state[t - back, i - 1], self.X[t, i]), name=name)
        if kind == "product":
            k = te.reduce_axis((0, n), name="k")
            return te.compute(self.shape, lambda t, i: te.sum(state[t - back, k] * self.weight[k, i], axis=k), name=name)
        return te.compute(self.shape, lambda t, i: state[t - back, i] + self.X[t, i], name=name)

    def update(self, rng, name):
        state, back, n = rng.choice(self.states), rng.randint(1, self.first), self.shape[1]
        terms = rng.sample(self.between, min(len(self.between), rng.randint(0, 2)))
        others = self.updates[:] if rng.random() < 0.5 else []
        return te.compute(self.shape, lambda t, i: sum([p[t, i] for p in terms] + [u[t, n - 1 - i] for u in others],
                                                       state[t - back, i] + self.ready[t, i]) % 13, name=name)

    def expected(self, x, w):
        """Row by row, each element by its formula."""
        values = {self.X: x, self.W: w, **{s: np.zeros((self.rows, self.width), "int32") for s in self.states}}

        def fill(tensor, row=None):
            shape = [int(evaluate(dim, self.sizes)) for dim in tensor.shape]
            array = values.setdefault(tensor, np.zeros(shape, "int32"))
            known = {**self.sizes, **{t: values[t] for t in tensor.op.input_tensors}}
            for place in np.ndindex(*shape):
                if row is None or place[0] == row:
                    array[place] = evaluate(tensor.op.body[0], {**known, **{a.var: at for a, at in zip(tensor.op.axis, place)}})

        for tensor in (self.weight, self.ready, *self.inits):
            fill(tensor)
        for state, init in zip(self.states, self.inits):
            values[state][:self.first] = values[init]
        inside = {tensor.op for tensor in (*self.between, *self.updates)}
        order = [op.output(0) for op in producers_first([u.op for u in self.updates]) if op in inside]
        for row in range(self.first, self.rows):
            for tensor in order:
                fill(tensor, row)
            for state, update in zip(self.states, self.updates):
                values[state][row] = values[update][row]
        rows = [values[state] for state in self.states]
        return sum(rows) + rows[0][::-1]


def direct(rng, s):
    """One random directive."""
    stage = rng.choice(s.stages)
    loops = list(stage.leaf_iter_vars) or [None]
    match rng.choice(["split", "tail", "fuse", "reorder", "at", "at", "inline", "read", "write", "rfactor", "say", "root"]):
        case "split":
            stage.split(rng.choice(loops), factor=rng.choice([1, 2, 3, 4]))
        case "tail":
            stage.split(rng.choice(loops), factor=rng.choice([2, 3]), tail=rng.choice(["mask", "partition", "shift_inwards"]))
        case "fuse":
            stage.fuse(*loops[:2])
        case "reorder":
            rng.shuffle(loops)
            stage.reorder(*loops)
        case "at":
            places = legal_places(stage.state) if not stage.state.is_placeholder and not stage.is_output else []
            if places:
                host, loop = rng.choice(places)
                stage.compute_at(s.handle(host), loop)
        case "inline":
            stage.compute_inline()
        case "read":
            readers = s.state.consumers()[stage.state]
            s.cache_read(stage.op.output(0), "local", [reader.op for reader in readers])
        case "write":
            s.cache_write(stage.op.output(0), "local")
        case "rfactor":
            s.rfactor(stage.op.output(0), rng.choice(loops))
        case "say":
            getattr(stage, rng.choice(["parallel", "vectorize", "unroll"]))(rng.choice(loops))
        case "root":
            stage.compute_root()


def launch(rng, s):
    """The rows of the scan inside a launch, and most stages on its threads."""
    count = rng.choice([1, 2, 3, 4])
    thread = te.thread_axis((0, count), "threadIdx.x")
    for stage in s.stages:
        elements = [loop for loop in stage.leaf_iter_vars if not loop.is_reduction]
        if isinstance(stage.op, ScanOp) or not elements or rng.random() < 0.1:
            continue
        how = rng.choice(["nparts", "factor"])
        outer, inner = stage.split(elements[-1], **{how: count})
        stage.bind(outer if how == "nparts" else inner, thread)
        if stage.op.name[0] in "pu" and rng.random() < 0.4:  # what is computed inside of the scan
            stage.set_scope("shared")
    next(stage for stage in s.stages if isinstance(stage.op, ScanOp)).env_threads([thread])


def check(p, s, seed):
    """Refused by lowering, or the interpreter and the machine code, checked or not, give the rows one after the other."""
    x = np.random.default_rng(seed).integers(-3, 4, (p.rows, p.width)).astype("int32")
    w = np.random.default_rng(seed + 1).integers(-2, 3, (p.width, p.width)).astype("int32")
    expected = p.expected(x, w)
    args = [p.X, p.W, p.C]
    try:
        found = execute(s, args, {p.X: x, p.W: w}, p.sizes)[p.C]
        kernels = {checked: tedsl.build(s, args, checked=checked) for checked in (False, True)}
    except InternalError:
        raise
    except LoweringError:
        return "refused"  # for example an unrolled loop of symbolic extent
    np.testing.assert_array_equal(found, expected, err_msg=str(s.journal))
    for checked, kernel in kernels.items():
        result = np.full((p.rows, p.width), -7, "int32")
        kernel(x, w, result)
        np.testing.assert_array_equal(result, expected, err_msg=f"{s.journal}\nchecked={checked}")
    return "same"


@pytest.mark.parametrize("seed", range(40))
def test_random_recurrences(seed):
    rng = random.Random(seed)
    p = Recurrence(rng)
    s = te.create_schedule(p.C.op)
    for _ in range(rng.randint(0, 8)):
        with contextlib.suppress(ScheduleError):  # refused: the schedule is as it was
            direct(rng, s)
    check(p, s, seed)


@pytest.mark.parametrize("part", range(4))
def test_random_recurrences_on_threads(part):
    outcomes = []
    for seed in range(1000 + 10 * part, 1010 + 10 * part):
        rng = random.Random(seed)
        p = Recurrence(rng)
        s = te.create_schedule(p.C.op)
        launch(rng, s)
        for _ in range(rng.randint(0, 4)):
            with contextlib.suppress(ScheduleError):
                direct(rng, s)
        outcomes.append(check(p, s, seed))
    assert outcomes.count("same") >= 2, "hardly any schedule was accepted: the directives are drawn badly"

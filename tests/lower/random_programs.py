"""Random programs and random schedules for them: every legal combination must mean what the formulas say."""

import random

from tedsl import te
from tedsl.errors import LoweringError, ScheduleError
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.attach import misplaced
from tedsl.schedule.handles import create_schedule
from tests.lower.programs import check, whole_numbers

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12)


ARGMAX = te.comm_reducer(  # the first of equal ones: the same answer in any order
    lambda x, y: (te.if_then_else(te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0])), x[0], y[0]),
                  te.if_then_else(x[1] > y[1], x[1], y[1])),
    lambda i, v: (te.const(2**30, i), te.min_value(v)), name="argmax")


class Program:
    """A random DAG of formulas over one or two inputs."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.sizes, self.values = {}, {}
        self.tensors = []
        self.count = 0
        self.symbolic = self.r.random() < 0.35
        for name in ("A", "B")[: self.r.randint(1, 2)]:
            self.input(name)
        for _ in range(self.r.randint(1, 4)):
            self.stage()

    def dim(self):
        size = 0 if self.r.random() < 0.03 else self.r.choice(SIZES)
        if self.symbolic and self.r.random() < 0.6:
            var = te.var(f"n{len(self.sizes)}")
            self.sizes[var] = size
            return var
        return size

    def input(self, name):
        rank = self.r.randint(1, 2)
        t = te.placeholder([self.dim() for _ in range(rank)], name=name)
        shape = [self.sizes.get(d, None) if d in self.sizes else int(d) for d in t.shape]
        self.values[t] = whole_numbers(shape, seed=self.r.randint(0, 99))
        self.tensors.append(t)

    def name(self):
        self.count += 1
        return f"T{self.count}"

    def size(self, d):
        from tedsl.ir.evaluate import evaluate

        return int(evaluate(d, self.sizes))

    def stage(self):
        r = self.r
        kinds = [self.elementwise, self.stencil, self.padded, self.reduction, self.transposed, self.two, self.flat,
                 self.strided, self.outer, self.tuple_, self.windowed, self.gather, self.total, self.argmax, self.started]
        while True:
            t = r.choice([u for u in self.tensors if u.ndim][-3:])
            made = r.choice(kinds)(t)
            if made is not None:
                made = made if isinstance(made, (list, tuple)) else [made]
                self.tensors.extend(made)
                return

    def elementwise(self, t):
        c = self.r.randint(1, 3)
        return te.compute(t.shape, lambda *i: t(*i) * c + 1, name=self.name())

    def stencil(self, t):
        d = self.r.randrange(t.ndim)
        w = self.r.randint(1, 2)
        if self.size(t.shape[d]) <= w:
            return None
        shape = [s - w if at == d else s for at, s in enumerate(t.shape)]
        shift = lambda i, k: [x + k if at == d else x for at, x in enumerate(i)]
        return te.compute(shape, lambda *i: t(*i) + t(*shift(i, w)) * 2, name=self.name())

    def padded(self, t):
        d = self.r.randrange(t.ndim)
        n = t.shape[d]
        shape = [s + 2 if at == d else s for at, s in enumerate(t.shape)]
        shift = lambda i: [x - 1 if at == d else x for at, x in enumerate(i)]
        inside = lambda i: te.all(i[d] >= 1, i[d] - 1 < n)
        return te.compute(shape, lambda *i: te.if_then_else(inside(i), t(*shift(i)), -1.0), name=self.name())

    def reduction(self, t):
        d = self.r.randrange(t.ndim)
        k = te.reduce_axis((0, t.shape[d]), name="k")
        shape = [s for at, s in enumerate(t.shape) if at != d]
        if not shape:
            return None
        where = (k.var % 2 == 0) if self.r.random() < 0.2 else None
        fn = self.r.choice([te.sum, te.max])
        insert = lambda i: [*i[:d], k, *i[d:]]
        return te.compute(shape, lambda *i: fn(t(*insert(i)), axis=k, where=where), name=self.name())

    def total(self, t):
        if t.ndim == 0:
            return None
        ks = [te.reduce_axis((0, s), name=f"k{at}") for at, s in enumerate(t.shape)]
        if self.r.random() < 0.5:
            return te.compute((2,), lambda i: te.sum(t(*ks) + i, axis=ks), name=self.name())
        return te.compute((), lambda: te.sum(t(*ks), axis=ks), name=self.name())

    def windowed(self, t):
        d = self.r.randrange(t.ndim)
        w = self.r.randint(1, 3)
        if self.size(t.shape[d]) < w:
            return None
        k = te.reduce_axis((0, w), name="w")
        shape = [s - (w - 1) if at == d else s for at, s in enumerate(t.shape)]
        shift = lambda i: [x + k if at == d else x for at, x in enumerate(i)]
        return te.compute(shape, lambda *i: te.sum(t(*shift(i)), axis=k), name=self.name())

    def argmax(self, t):
        d = self.r.randrange(t.ndim)
        k = te.reduce_axis((0, t.shape[d]), name="k")
        shape = [s for at, s in enumerate(t.shape) if at != d] or [1]
        insert = lambda i: [*i[:d], k, *i[d:]] if t.ndim > 1 else [k]
        return te.compute(shape, lambda *i: ARGMAX((k.var, t(*insert(i))), axis=k), name=self.name())

    def started(self, t):
        d = self.r.randrange(t.ndim)
        if t.ndim != 2 or self.size(t.shape[d]) < 3:
            return None
        k = te.reduce_axis((1, t.shape[d] - 1), name="k")
        insert = lambda i: [k, i] if d == 0 else [i, k]
        n = t.shape[1 - d]
        other = [u for u in self.tensors if u.ndim == 1 and (u.shape[0] is n or self.same(u.shape[0], n))]
        chosen = self.r.choice(other) if other and self.r.random() < 0.7 else None
        init = lambda i: te.const(3, t.dtype) if chosen is None else chosen[i].astype(t.dtype)
        return te.compute((n,), lambda i: te.sum(t(*insert(i)), axis=k, init=init(i)), name=self.name())

    def transposed(self, t):
        return te.compute(t.shape[::-1], lambda *i: t(*i[::-1]), name=self.name())

    def two(self, t):
        fits = lambda u: u.ndim == t.ndim and all(a is b or self.same(a, b) for a, b in zip(u.shape, t.shape))
        fitting = [u for u in self.tensors if fits(u)]
        u = self.r.choice(fitting)
        return te.compute(t.shape, lambda *i: t(*i) - u(*i) * 2, name=self.name())

    @staticmethod
    def same(a, b):
        try:
            return int(a) == int(b)
        except TypeError:
            return False

    def flat(self, t):
        if t.ndim != 2:
            return None
        m = t.shape[1]
        if self.r.random() < 0.5 and self.size(m) > 0:
            return te.compute((t.shape[0] * m,), lambda i: t[i // m, i % m], name=self.name())
        return te.compute((m, t.shape[0]), lambda i, j: t[(i + j * m) // m, (i + j * m) % m], name=self.name())

    def strided(self, t):
        d = self.r.randrange(t.ndim)
        shape = [(s + 1) // 2 if at == d else s for at, s in enumerate(t.shape)]
        return te.compute(shape, lambda *i: t(*[x * 2 if at == d else x for at, x in enumerate(i)]), name=self.name())

    def outer(self, t):
        one = [u for u in self.tensors if u.ndim == 1]
        if t.ndim != 1 or self.size(t.shape[0]) > 8:
            return None
        u = self.r.choice(one)
        if self.size(u.shape[0]) > 8:
            return None
        return te.compute((t.shape[0], u.shape[0]), lambda i, j: t[i] * u[j], name=self.name())

    def tuple_(self, t):
        if t.ndim == 0:
            return None
        return te.compute(t.shape, lambda *i: (t(*i) + 1, t(*i) * 2), name=self.name())

    def gather(self, t):
        index = self.r.choice(self.tensors)
        if index.ndim != 1 or t.ndim != 1 or self.size(t.shape[0]) == 0:
            return None
        n = t.shape[0]
        return te.compute(index.shape, lambda i: t[index[i].astype("int32") % n], name=self.name())


def outputs_of(p):
    """The tensors that nothing reads, or some of them too."""
    read = {u for t in p.tensors for u in t.op.input_tensors}
    made = [t for t in p.tensors if isinstance(t.op, ComputeOp)]
    return [t for t in made if all(t.op.output(i) not in read for i in range(t.op.num_outputs))]


def randomly_scheduled(p, outputs, stats=None):
    """A schedule with directives drawn at random; those that are refused are left out."""
    r = p.r
    s = create_schedule(list(dict.fromkeys(t.op for t in outputs)))
    stats = stats if stats is not None else {}

    def attempt(name, fn, *args, **named):
        try:
            result = fn(*args, **named)
        except ScheduleError:
            return None
        stats[name] = stats.get(name, 0) + 1
        return result

    for stage in list(s.stages):
        if not isinstance(stage.op, ComputeOp):
            if r.random() < 0.15:
                readers = [c.op for c in s.stages if stage.op.output(0) in c.op.input_tensors]
                if readers:
                    attempt("cache_read", s.cache_read, stage.op.output(0), "local", readers)
            continue
        if r.random() < 0.15:
            outs = [stage.op.output(i) for i in range(stage.op.num_outputs)]
            attempt("cache_write", s.cache_write, outs if len(outs) > 1 else outs[0], "local")
        elif r.random() < 0.3 and stage.op.reduce_axis and stage.op.num_outputs == 1:
            axis = stage.op.reduce_axis[0]
            if r.random() < 0.7:
                axis = s[stage.op].split(axis, factor=r.randint(1, 4))[r.randint(0, 1)]
            attempt("rfactor", s.rfactor, stage.op.output(0), axis, r.randint(0, len(stage.op.axis)))
    for stage in reversed(s.stages):
        if isinstance(stage.op, ComputeOp):
            randomize(stage, r, attempt, s)
    while wrong := misplaced(s.state):  # lowering refuses these, and says so; see test_wrong_schedules
        s[wrong[0].producer.op].compute_root()
    return s


def randomize(stage, r, attempt, s):
    if r.random() < 0.15:
        if attempt("inline", stage.compute_inline) is not None or stage.attach_type == 2:
            return
    for _ in range(r.randint(0, 4)):
        leaves = list(stage.leaf_iter_vars)
        if not leaves:
            break
        axis = r.choice(leaves)
        what = r.random()
        if what < 0.5:
            if r.random() < 0.7:
                attempt("split", stage.split, axis, factor=r.choice([1, 2, 3, 4, 5, 8, 16]))
            else:
                attempt("split", stage.split, axis, nparts=r.choice([1, 2, 3, 4, 8]))
        elif what < 0.7:
            at = r.randrange(len(leaves))
            if at + 1 < len(leaves):
                attempt("fuse", stage.fuse, leaves[at], leaves[at + 1])
        else:
            some = r.sample(leaves, r.randint(1, len(leaves)))
            attempt("reorder", stage.reorder, *some)
    if r.random() < 0.7:
        hosts = [h for h in s.stages if isinstance(h.op, ComputeOp) and h is not stage and h.leaf_iter_vars]
        for _ in range(3):
            if hosts:
                host = r.choice(hosts)
                loop = r.choice(list(host.leaf_iter_vars))
                if attempt("compute_at", stage.compute_at, host, loop) is not None:
                    break
    for axis in stage.leaf_iter_vars:
        what = r.random()
        if what < 0.1:
            attempt("unroll", stage.unroll, axis)
        elif what < 0.2:
            attempt("vectorize", stage.vectorize, axis)
        elif what < 0.3:
            attempt("parallel", stage.parallel, axis)


def try_seed(seed, stats=None):
    """Makes, schedules, lowers, runs and checks program number `seed`."""
    p = Program(seed)
    outputs = outputs_of(p)
    s = randomly_scheduled(p, outputs, stats)
    given = [t for t in p.tensors if t in p.values] + outputs + [v for v in p.sizes if p.r.random() < 0.1]
    try:
        check(s, given, {**p.values, **p.sizes}, p.sizes)
    except LoweringError as error:
        if "gives the start values" not in str(error):  # a legal refusal that directives cannot foresee
            raise
    return s

# mypy: ignore-errors
"""Random directives, drawn on a live schedule: what it refuses is counted and left out."""

from tedsl.errors import ScheduleError
from tedsl.fuzz.check import declared, targets_here
from tedsl.lang.operation import ComputeOp
from tedsl.schedule.attach import misplaced

FACTORS = (2, 3, 4, 5, 7, 8, 16, 1)


class Scheduler:
    """Draws directives as text, applies them, keeps those that were accepted."""

    def __init__(self, case, draw):
        self.case, self.draw = case, draw
        self.names = declared(case)
        self.s = self.names["s"]
        self.tensors = [n for line in case.lines if " = te.compute(" in line for n in line.split(" = ")[0].split(", ")[:1]]
        self.inputs = list(case.data)
        self.refused = 0

    def attempt(self, text):
        """Whether the directive was accepted."""
        try:
            exec(text, self.names)
        except ScheduleError:
            self.refused += 1
            return False
        self.case.schedule.append(text)
        return True

    def count(self, what):
        self.case.counts[what] = self.case.counts.get(what, 0) + 1

    def stage(self, name):
        return self.s[self.names[name]]

    # --- directives that make stages ---

    def caches(self):
        for name in list(self.tensors):
            if self.names[name].op not in self.s.stage_map:
                self.tensors.remove(name)
                continue
            stage = self.stage(name)
            if self.draw.chance(15):
                self.cache_write(name, stage)
            elif stage.op.reduce_axis and self.draw.chance(30):
                self.rfactor(name, stage)
        for name in [*self.inputs, *self.tensors]:
            if self.draw.chance(10) and self.names[name].op in self.s.stage_map:
                self.cache_read(name)

    def cache_write(self, name, stage):
        made, scope = f"c{len(self.names)}", self.draw.choice(["local", "global"])
        if stage.op.num_outputs > 1:
            group = next(line.split(" = ")[0] for line in self.case.lines if line.startswith(f"{name}, "))
            if self.attempt(f"{made}, _ = s.cache_write([{group}], '{scope}')"):
                self.tensors.append(made)
        elif self.attempt(f"{made} = s.cache_write({name}, '{scope}')"):
            self.tensors.append(made)
            self.count("cache_write")

    def rfactor(self, name, stage):
        made, axis = f"f{len(self.names)}", len(stage.op.axis)
        if self.draw.chance(70):
            self.attempt(f"s[{name}].split(s[{name}].op.reduce_axis[0], factor={self.draw.choice(FACTORS)})")
        axis += self.draw.which(max(len(stage.leaf_iter_vars) - axis, 1))
        tail = ", _" if stage.op.num_outputs > 1 else ""
        place = self.draw.between(0, len(stage.op.axis))
        if self.attempt(f"{made}{tail} = s.rfactor({name}, loop({name}, {axis}), {place})"):
            self.tensors.append(made)
            self.count("rfactor")

    def cache_read(self, name):
        tensor = self.names[name]
        if isinstance(self.s[tensor].op, ComputeOp):
            tensor = self.s[tensor].op.output(0)
        readers = [n for n in self.tensors if tensor in self.stage(n).op.input_tensors]
        if readers and self.attempt(f"c{len(self.names)} = s.cache_read({name}, 'local', [{', '.join(readers)}])"):
            made = list(self.names)[-1]
            self.tensors.append(made)
            self.count("cache_read")

    # --- loops ---

    def loops(self, name):
        draw = self.draw
        for _ in range(draw.weighted({0: 2, 1: 4, 2: 4, 3: 3, 4: 2})):
            n = len(self.stage(name).leaf_iter_vars)
            if not n:
                return
            draw.weighted({self.split: 10, self.fuse: 4, self.reorder: 4, self.tile: 2})(name, n)

    def split(self, name, n):
        at, number = self.draw.which(n), self.draw.choice(FACTORS)
        if self.draw.chance(70):
            self.attempt(f"s[{name}].split(loop({name}, {at}), factor={number})")
        else:
            self.attempt(f"s[{name}].split(loop({name}, {at}), nparts={number})")

    def fuse(self, name, n):
        at = self.draw.which(n)
        if at + 1 < n:
            self.attempt(f"s[{name}].fuse(loop({name}, {at}), loop({name}, {at + 1}))")
        elif self.draw.chance(10):
            self.attempt(f"s[{name}].fuse()")

    def reorder(self, name, n):
        some = self.draw.sample(range(n), self.draw.between(1, n))
        self.attempt(f"s[{name}].reorder({', '.join(f'loop({name}, {at})' for at in some)})")

    def tile(self, name, n):
        if n > 1:
            x, y = self.draw.sample(range(n), 2)
            a, b = self.draw.choice(FACTORS), self.draw.choice(FACTORS)
            self.attempt(f"s[{name}].tile(loop({name}, {x}), loop({name}, {y}), {a}, {b})")

    # --- place ---

    def place(self, name):
        if self.draw.chance(15):
            self.attempt(f"s[{name}].compute_inline()")
            return
        if not self.draw.chance(75):
            return
        readers = [n for n in self.tensors if n != name and self.stage(n).leaf_iter_vars
                   and any(self.stage(name).op.output(i) in self.stage(n).op.input_tensors
                           for i in range(self.stage(name).op.num_outputs))]
        hosts = readers or [n for n in self.tensors if n != name and self.stage(n).leaf_iter_vars]
        for _ in range(2):
            if hosts:
                host = self.draw.choice(hosts)
                at = self.draw.which(len(self.stage(host).leaf_iter_vars))
                if self.attempt(f"s[{name}].compute_at(s[{host}], loop({host}, {at}))"):
                    return

    def annotate(self, name):
        draw, n = self.draw, len(self.stage(name).leaf_iter_vars)
        if n and draw.chance(45):
            self.attempt(f"s[{name}].vectorize(loop({name}, {n - 1 if draw.chance(70) else draw.which(n)}))")
        for at in range(n):
            kind = draw.weighted({"": 70, "unroll": 10, "parallel": 10, "pragma": 3, "explicit": 2})
            if kind == "pragma":
                self.attempt(f"s[{name}].pragma(loop({name}, {at}), 'auto_unroll_max_step', {draw.choice([4, 16, 64])})")
            elif kind == "explicit":
                self.attempt(f"s[{name}].pragma(loop({name}, {at}), 'unroll_explicit', {draw.which(2)})")
            elif kind:
                self.attempt(f"s[{name}].{kind}(loop({name}, {at}))")
        if draw.chance(6):
            self.attempt(f"s[{name}].nontemporal()")
        elif draw.chance(5):
            self.attempt(f"s[{name}].set_scope('{draw.choice(['local', 'global', 'shared'])}')")

    # --- all of it ---

    def draw_all(self):
        if self.draw.chance(4):
            return
        self.caches()
        order = [n for stage in reversed(self.s.stages) for n in self.tensors if self.stage(n) is stage]
        for name in dict.fromkeys(order):
            if isinstance(self.stage(name).op, ComputeOp):
                self.loops(name)
                self.place(name)
                self.annotate(name)
        self.settle()
        self.measure()

    def settle(self):
        """Producers that do not stand before all their readers go to the root: lowering would refuse them."""
        while wrong := misplaced(self.s.state):
            stage = wrong[0].producer
            name = next(n for n in self.tensors if self.stage(n).state is stage)
            self.attempt(f"s[{name}].compute_root()")

    def measure(self):
        counts = self.case.counts
        counts["attached"] = int(any(stage.attach_type == 4 for stage in self.s.stages))
        counts["not dividing"] = int(any(_uneven(stage) for stage in self.s.stages))


def _uneven(stage):
    """Whether a split of the stage leaves a remainder, or may for some size."""
    from tedsl.ir.build import as_int
    from tedsl.schedule.domains import extents_down
    from tedsl.schedule.relations import Split

    if not any(isinstance(relation, Split) for relation in stage.relations):
        return False
    roots = {axis: axis.dom.extent for axis in (*stage.op.axis, *stage.op.reduce_axis)}
    extents = extents_down(stage.relations, roots)
    for relation in stage.relations:
        if isinstance(relation, Split):
            extent = as_int(extents[relation.parent]) if relation.parent in extents else None
            by = as_int(relation.factor if relation.factor is not None else relation.nparts)
            if extent is None or (by and extent % by):
                return True
    return False


def draw_schedule(case, draw):
    """Adds a schedule, options and a target to the case. Returns the number of refused directives."""
    scheduler = Scheduler(case, draw)
    scheduler.draw_all()
    if draw.chance(20):
        case.config["tir.LoopPartition"] = {"partition_const_loop": True}
    if draw.chance(10):
        case.config["tir.UnrollLoop"] = {"auto_max_step": draw.choice([4, 16]), "explicit_unroll": draw.chance(70)}
    if draw.chance(4):
        case.config["tir.disable_vectorize"] = True
    if draw.chance(5):
        case.config["tir.noalias"] = False
    case.simple_mode = draw.chance(10)
    if draw.chance(35):
        case.target = draw.choice(targets_here())
    return scheduler.refused

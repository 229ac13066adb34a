"""Random hybrid scripts under random directives: refused with words, or the same values as the script run as Python."""

import importlib.util
import random

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import LoweringError, ScheduleError
from tedsl.lang.hybrid.nests import nests_of
from tedsl.schedule.script_loops import axes_of

pytestmark = pytest.mark.filterwarnings("ignore:.*as in TVM:UserWarning")  # of marks that random directives drop

ROWS, COLUMNS = 6, 10
DIRECTIVES = ["split", "split", "split", "reorder", "reorder", "reorder", "fuse", "vectorize", "vectorize", "unroll",
              "parallel", "bind"]
TAILS = ["guard"] * 20 + ["mask", "partition", "shift_inwards", "round_up"]  # all scripts refuse the others now


class Writer:
    """Writes a script whose nests carry values, keep scalars, read shifted elements, overwrite and scatter."""

    def __init__(self, rng):
        self.rng, self.lines = rng, []

    def source(self, name):
        self.lines = [f"def {name}(a, x):", f"    b = output_tensor(({ROWS}, {COLUMNS}), 'int32')", "    s = 1",
                      f"    l = allocate(({COLUMNS},), 'int32', 'local')",
                      f"    for i in range({ROWS}):", f"        for j in range({COLUMNS}):",
                      f"            b[i, j] = {self.rng.choice(['a[i, j]', 'i * 3 + j', '0'])}",
                      f"    for j in range({COLUMNS}):", "        l[j] = j"]
        for _ in range(self.rng.choice([1, 1, 2])):
            self.nest()
        return "\n".join(["from tedsl import te", "", "", "@te.hybrid.script", *self.lines, "    return b", ""])

    def nest(self):
        """Two or three loops; sometimes a statement between them."""
        rng = self.rng
        loops = [f"for i in range(1, {ROWS - 1}):", f"for j in range(1, {COLUMNS - 1}):"]
        rng.shuffle(loops)
        if rng.random() < 0.3:
            loops.insert(rng.randint(0, 2), "for k in range(3):")
        self.known = "k" if len(loops) == 3 else "1"
        for depth, loop in enumerate(loops, 1):
            self.lines.append("    " * depth + loop)
        depth = len(loops) + 1
        for number in range(rng.choice([1, 1, 1, 2, 3])):
            self.statement("    " * depth, number)

    def statement(self, indent, number):
        rng = self.rng
        kind = rng.choice(["element", "element", "element", "scalar", "name", "if", "local"])
        if kind == "if":
            self.lines.append(f"{indent}if {rng.choice(['a[i, j] > 4', 'i < j', 'j % 2 == 0'])}:")
            indent, kind = indent + "    ", "element"
        if kind == "element":
            self.lines.append(f"{indent}{self.target()} = ({self.value()}) % 97")
        elif kind == "scalar":
            self.lines.append(f"{indent}s = ({rng.choice(['s * 3 + a[i, j]', 's + b[i, j]', 'a[i, j] + 1'])}) % 97")
            if rng.random() < 0.8:
                self.lines.append(f"{indent}{self.target()} = s")
        elif kind == "name":
            self.lines.append(f"{indent}t{number} = {self.value()}")
            self.lines.append(f"{indent}{self.target()} = (t{number} + {self.value()}) % 97")
        else:
            self.lines.append(f"{indent}l[{rng.choice(['j', 'j - 1', 'i', '0'])}] = ({self.value()}) % 97")
            self.lines.append(f"{indent}{self.target()} = l[{rng.choice(['j', 'j + 1', 'i', '0'])}]")

    def target(self):
        rng = self.rng
        return "b[i, j]" if rng.random() < 0.5 else rng.choice([f"b[{self.row()}, {self.column()}]"] * 3 + [
            "b[i, 0]", "b[0, j]", "b[i, (j * 2) % 10]", "b[(i + j) % 6, j]", "b[i, j // 2]", "b[x[i], j]"])

    def row(self):
        return self.rng.choice(["i", "i", "i", "i - 1", "i + 1", "5 - i", self.known])

    def column(self):
        return self.rng.choice(["j", "j", "j", "j - 1", "j + 1", "9 - j", "i", self.known])

    def value(self):
        rng = self.rng
        first = rng.choice(["a[i, j]", "a[i, j] * 2", "a[x[i], j]", f"a[{self.row()}, {self.column()}]", "l[j]", "i * 5 + j"])
        if rng.random() < 0.75:
            wave = f"b[i {rng.choice('+-')} 1, j{rng.choice(['', ' + 1', ' - 1'])}]"
            read = wave if rng.random() < 0.5 else f"b[{self.row()}, {self.column()}]"
            first += f" + {read}{rng.choice(['', ' * 3'])}"
        return first


def loaded(text, folder, name):
    """The script of that source, from a file: errors show its lines."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def direct(rng, stage):
    """One directive on loops of `stage`, mostly those of one nest that is not plain; ScheduleError if it is refused."""
    nests = nests_of(stage.op)
    nest = rng.choice(nests[2:] if rng.random() < 0.9 else nests).axes
    loops = [loop for loop in stage.leaf_iter_vars if axes_of(stage.state, loop)[0] in nest]
    kind = rng.choice(DIRECTIVES)
    if kind in ("reorder", "fuse") and len(loops) < 2:
        kind = "split"
    if kind == "split":
        stage.split(rng.choice(loops), rng.choice([2, 3, 4]), tail=rng.choice(TAILS))
    elif kind == "reorder":
        stage.reorder(*rng.sample(loops, rng.randint(2, min(4, len(loops)))))
    elif kind == "fuse":
        at = rng.randrange(len(loops) - 1)
        stage.fuse(loops[at], loops[at + 1])
    elif kind == "bind":
        stage.bind(rng.choice(loops), te.thread_axis(rng.choice(["vthread", "threadIdx.x", "blockIdx.x"])))
    else:
        getattr(stage, kind)(rng.choice(loops))


def outcome(script, text, rng):
    """One schedule of `script`: "refused", or "same", or an assertion that fails with the program and the schedule."""
    a = te.placeholder((ROWS, COLUMNS), "int32", name="a")
    x = te.placeholder((ROWS,), "int32", name="x")
    values = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 9, (ROWS, COLUMNS)).astype("int32")
    places = np.array([rng.randrange(ROWS) for _ in range(ROWS)], "int32")
    made = script(a, x)
    s = te.create_schedule(made.op)
    for _ in range(rng.randint(1, 4)):
        try:
            direct(rng, s[made])
        except ScheduleError as error:
            assert "hint:" in str(error) or "loops now" in str(error)
    for checked in (False, True):
        try:
            run = tedsl.build(s, [a, x, made], checked=checked)
        except LoweringError as error:
            assert str(error)
            return "refused"
        result = np.full((ROWS, COLUMNS), -1, "int32")
        run(values, places, result)  # checked: no two iterations of a parallel loop touch one element
        np.testing.assert_array_equal(result, script(values, places), err_msg=f"{text}\n{s.journal}\nchecked={checked}")
    return "same" if s.journal else "plain"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_refused_or_the_same_values(tmp_path, seed):
    rng = random.Random(seed)
    seen = []
    for number in range(4):
        text = Writer(rng).source(f"script_{seed}_{number}")
        script = loaded(text, tmp_path, f"script_{seed}_{number}")
        seen += [outcome(script, text, rng) for _ in range(4)]
    assert seen.count("same") >= 2, "hardly any schedule was accepted: the directives are drawn badly"

"""How the work of a build grows with the program: by little more than the program does, whatever its shape."""

import math
import random
import time

import numpy as np
import pytest

import tedsl
from benchmarks.drawn_programs import calls_made_by, drawn_costs, exponent
from benchmarks.programs_by_size import FAMILIES
from tedsl import te, tir
from tedsl.codegen.kernels.kernel import make_kernel
from tedsl.codegen.llvm.emit import emit_module
from tedsl.passes.context import PassContext
from tedsl.target.current import host_target


def write(program):
    """The LLVM IR of a program."""
    sch, args = program
    target = host_target()
    func = tedsl.lower(sch, args, name="f")["f"]
    return emit_module(make_kernel(func, target, PassContext.current().options).versions(), target)


def growth(make, size, factor=4):
    """The exponent k of n^k by which the work until there is LLVM IR grows from `size` to `factor` times that."""
    write(make(size))  # what the first build of a process does besides is not counted
    small, large = make(size), make(size * factor)
    return math.log(calls_made_by(lambda: write(large)) / calls_made_by(lambda: write(small)), factor)


# --- one family each: the sizes at which the slope shows whatever is not linear ---

SHARED = ("shared select", "shared select by other data", "shared if_then_else", "shared product", "shared sides of a choice",
          "shared int min and floordiv")
NESTED = ("nested selects", "nested exps", "nested floordivs of data", "nested floordivs of an index", "nested sums",
          "nested mins of ints", "nested casts", "nested int8 casts")


@pytest.mark.parametrize("name", SHARED)
def test_a_value_that_is_used_again_is_computed_once(name):
    assert growth(FAMILIES[name].make, 24) < 1.2


@pytest.mark.parametrize("name", NESTED)
def test_the_depth_of_a_formula(name):
    assert growth(FAMILIES[name].make, 60) < 1.2


def test_twenty_five_levels_of_a_select_of_itself_build_at_once():
    begin = time.process_time()
    tedsl.build(*FAMILIES["shared select"].make(25))
    assert time.process_time() - begin < 2


@pytest.mark.whole
@pytest.mark.parametrize("name", ["nested exps", "nested tanhs", "nested selects", "nested floordivs of data"])
def test_a_formula_of_1600_levels(name):
    program = FAMILIES[name].make(1600)
    begin = time.process_time()
    tedsl.build(*program)
    assert time.process_time() - begin < 10


def indexed(step, depth):
    """The schedule and arguments of a copy whose index is `step` applied `depth` times."""
    x = te.placeholder((100,), name="x")

    def formula(i):
        for k in range(depth):
            i = step(i, k)
        return x[i]

    y = te.compute((100,), formula, name="y")
    return te.create_schedule(y.op), [x, y]


@pytest.mark.parametrize("step", [lambda e, k: (e * 3 + e // 2) % 100, lambda e, k: (e // 3 + e % 7 * 5) % 100],
                         ids=["sums", "quotients"])
def test_twenty_two_levels_of_an_index_of_itself_build_at_once(step):
    program = indexed(step, 22)
    begin = time.process_time()
    tedsl.build(*program)
    assert time.process_time() - begin < 3


@pytest.mark.whole
def test_an_index_of_1200_nested_floormods():
    program = indexed(lambda e, k: (e * 7 + k) % 97, 1200)
    begin = time.process_time()
    kernel = tedsl.build(*program)
    assert time.process_time() - begin < 6
    x, y, at = np.arange(100, dtype="float32"), np.empty(100, "float32"), np.arange(100)
    kernel(x, y)
    for k in range(1200):
        at = (at * 7 + k) % 97
    np.testing.assert_array_equal(y, x[at])


def test_a_value_in_both_sides_of_forty_vector_choices_builds_at_once():
    """Each load has 2**40 masks; beyond a thousand the lanes run one after the other."""
    a = te.placeholder((1024,), name="A")

    def formula(i):
        value = a[i]
        for k in range(40):
            value = tir.if_then_else(i > k, value + a[i - k], value * 2.0)
        return value

    b = te.compute((1024,), formula, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=16)[1])
    begin = time.process_time()
    tedsl.build(s, [a, b])
    assert time.process_time() - begin < 5


# --- any program ---


def random_program(draw, size):
    """A formula of `size` steps over earlier values, each used again by later ones as it comes."""
    a, b = (te.placeholder((256,), name=name) for name in "AB")

    def formula(i):
        values = [a[i], b[i]]
        for _ in range(size):
            x, y = values[-1], values[-draw.randint(1, min(len(values), 6))]
            values.append(draw.choice((
                lambda x, y: x + y, lambda x, y: x * 0.5 - y, lambda x, y: te.max(x, y), lambda x, y: te.exp(x) + y,
                lambda x, y: te.select(x > y, x, y * 0.5), lambda x, y: tir.if_then_else(x > 0.5, y, x * y),
                lambda x, y: tir.if_then_else(i > 3, a[i - 3] + x, y), lambda x, y: te.floordiv(x, 3.0) + y,
                lambda x, y: x.astype("int32").astype("float32") * y))(x, y))
        return values[-1]

    out = te.compute((256,), formula, name="C")
    s = te.create_schedule(out.op)
    outer, inner = s[out].split(out.op.axis[0], factor=16)
    draw.choice((lambda: None, lambda: s[out].unroll(inner) if size < 16 else None, lambda: s[out].parallel(outer)))()
    return s, [a, b, out]


@pytest.mark.whole
def test_the_work_of_a_hundred_random_programs_grows_as_they_do():
    """The exponent of the power of the size that fits them all best; none makes as many calls as 5 seconds hold.

    A sample; `python -m benchmarks.build_time --drawn N` counts the calls of N programs under random schedules.
    """
    draw = random.Random(0)
    sizes = [round(2 * 12 ** (at / 99)) for at in range(100)]  # 2 to 24 steps
    calls = [calls_made_by(lambda size=size: write(random_program(draw, size))) for size in sizes]
    assert exponent(sizes, calls) < 1.2
    assert max(calls) < 5_000_000


def test_drawn_programs_under_drawn_schedules_are_built_and_counted():
    costs = list(drawn_costs(8, most=4))
    assert [cost.number for cost in costs] == sorted(cost.number for cost in costs) and len(costs) >= 3
    assert costs[-1].size > costs[0].size and min(c.calls for c in costs) > 1000 and max(c.seconds for c in costs) < 5


@pytest.mark.whole
def test_the_work_of_drawn_programs_grows_as_they_do():
    """With the size, and less than its square: of 24 programs, for a few differ more by their schedules than by their size."""
    costs = list(drawn_costs(24, most=4))
    assert 0 < exponent([c.size for c in costs], [c.calls for c in costs]) < 2


@pytest.mark.whole
def test_two_hundred_attached_stencils():
    program = FAMILIES["attached stencils"].make(200)
    begin = time.process_time()
    tedsl.build(*program)
    assert time.process_time() - begin < 10

"""How the work of a build grows with the program: by little more than the program does, whatever its shape."""

import gc
import math
import sys
import time

import pytest

import tedsl
from benchmarks.programs_by_size import FAMILIES
from tedsl.codegen.llvm.backend import make_kernel
from tedsl.codegen.llvm.emit import emit_module
from tedsl.passes.context import PassContext
from tedsl.target.current import host_target


def calls_made_by(function):
    """The calls of Python and C functions while `function` runs: work as no busy machine changes it."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        if event == "call" or event == "c_call":
            count += 1

    gc.disable()  # finalizers are calls, too
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def write(program):
    """The LLVM IR of a program."""
    sch, args = program
    target = host_target()
    func = tedsl.lower(sch, args, name="f")["f"]
    return emit_module(make_kernel(func, target, PassContext.current().options).versions(), target)


def growth(make, size, factor=4):
    """The exponent k of n^k by which the work until there is LLVM IR grows from `size` to `factor` times that."""
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


@pytest.mark.parametrize("name", ["nested exps", "nested tanhs", "nested selects", "nested floordivs of data"])
def test_a_formula_of_1600_levels(name):
    program = FAMILIES[name].make(1600)
    begin = time.process_time()
    tedsl.build(*program)
    assert time.process_time() - begin < 10

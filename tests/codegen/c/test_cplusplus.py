"""The text of modules, read by a C++ compiler."""

import pytest

from tedsl.codegen.c.backend import module_of
from tedsl.fuzz.report import Report
from tedsl.fuzz.targets.in_c import draw_batch
from tedsl.target import Target
from tests.codegen.c import programs
from tests.codegen.c.compilers import needs_cplusplus, read_as_cplusplus
from tests.codegen.c.test_math import all_functions

pytestmark = needs_cplusplus


@pytest.mark.parametrize("options", ["", "-parallel=omp", "-vectors=gcc", "-math=own"])
def test_shared_programs(options):
    for program in (programs.added(), programs.product(), all_functions("float32")):
        assert read_as_cplusplus("\n" + programs.text(program, f"c {options}")) == ""


def test_random_programs():
    target = Target("c -math=own")
    compiled = draw_batch(range(50_000, 50_016), target, Report())
    assert read_as_cplusplus(str(module_of([program.kernel for program in compiled], target).get_source())) == ""

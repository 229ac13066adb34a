"""The programs whose builds are measured, the parts of a build, and shapes drawn at random."""

import tedsl
from benchmarks.pass_times import table, times_of
from benchmarks.programs import PROGRAMS
from benchmarks.suites import builds, drawn


def test_the_parts_of_a_build_add_up_to_the_whole():
    seconds = times_of(PROGRAMS["vector add"])
    assert {"schedule", "pass tir.VectorizeLoop", "LLVM: parse", "LLVM: passes", "LLVM: machine code"} <= set(seconds)
    whole = seconds.pop("whole")
    assert abs(sum(seconds.values()) - whole) < 1e-6 and min(seconds.values()) >= 0


def test_a_table_begins_with_the_whole_and_goes_down():
    (name, _, share), *parts = table(PROGRAMS["vector add"], 1)
    assert (name, share) == ("whole", 1.0)
    assert [value for _, value, _ in parts] == sorted((value for _, value, _ in parts), reverse=True)


def test_llvm_is_as_before_after_it_was_timed():
    import llvmlite.binding as llvm

    before = llvm.parse_assembly
    times_of(PROGRAMS["vector add"])
    assert llvm.parse_assembly is before


def test_builds_are_measured_by_one_thread():
    assert not builds.cases(2) and {made.name for made in builds.cases(1)} >= {"build softmax", "schedule + lower ResNet-18"}
    tedsl.lower(*PROGRAMS["conv2d + relu"]())


def test_drawn_shapes_are_those_of_the_seed():
    names = [made.name for made in drawn.cases(1, 40, 7)]
    assert names == [made.name for made in drawn.cases(1, 40, 7)] != [made.name for made in drawn.cases(1, 40, 8)]
    kinds = {name.split(":")[1].split()[0] for name in names}
    assert {"matmul", "batch_matmul", "dense"} <= kinds and len(names) == 40


def test_a_drawn_case_has_the_goal_of_its_suite():
    made = next(made for made in drawn.cases(1, 40, 0) if made.name.startswith("drawn: sum"))()
    assert made.row == "random" and str(made.goal) == "0.8" and made.reference is not None

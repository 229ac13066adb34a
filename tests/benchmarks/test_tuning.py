"""What the benchmark of searches measures: programs of its families, and the table."""

import random
from dataclasses import replace

import pytest

from benchmarks import tuned_programs, tuning
from tedsl import tune
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.runtime.parallel import get_num_threads
from tedsl.target import Target
from tedsl.tune.measure.machine import machine_model


@pytest.mark.parametrize("family", tuned_programs.FAMILIES.values())
def test_shapes_are_drawn_by_the_seed_and_can_be_scheduled(family):
    name, args, _ = family(random.Random(1))
    assert name == family(random.Random(1))[0] != family(random.Random(2))[0]
    assert [array.shape for array in tuning.arrays_of(args)] == [tuple(map(int, arg.shape)) for arg in args]
    assert Problem(args, Target("llvm")).default.schedule.journal


def row_of(case, seconds, ratio):
    medians = {"best": 1e-6, "default": ratio * 1e-6}
    return tuning.Row(case, seconds, machine_model(Target("llvm")), get_num_threads(), 3, medians,
                      {"default": (ratio * 0.9, ratio, ratio * 1.1)}, {"split0 factor": 8}, "s[C].split(i, factor=8)")


def test_a_table_is_made_in_parts(tmp_path, monkeypatch, capsys):
    measured = []

    def compared(shape, seconds):
        measured.append(shape)
        return row_of(tuned_programs.drawn(*shape)[0], seconds, 2.0 if len(measured) % 2 else 0.5)

    monkeypatch.setattr(tuning, "compared", compared)
    kept, other = tmp_path / "kept.jsonl", tmp_path / "other.jsonl"
    first = ["--families", "rows", "pooling", "--seconds", "1", "--count", "1", "--kept", str(kept)]
    tuning.main(first)
    assert "below the default: 1 of 2 shapes" in capsys.readouterr().out and len(measured) == 2
    with kept.open("a") as file:
        file.write('{"case": "cut sh')
    tuning.main([*first, "--count", "2"])
    said = capsys.readouterr().out
    assert len(measured) == len(set(measured)) == 4 and "geomean: 1.00 of default" in said
    tuning.main([*first, "--count", "2"])
    assert len(measured) == 4 and capsys.readouterr().out == said
    tuning.main([*first[:-1], str(other), "--count", "2", "--joined", str(kept)])
    assert len(measured) == 4 and capsys.readouterr().out == said
    monkeypatch.setattr(tuning, "again", lambda shape, row: replace(row, ratios={"default": (3.0, 3.0, 3.0)}))
    tuning.main([*first, "--count", "2", "--again"])
    assert len(measured) == 4 and "geomean: 3.00 of default" in capsys.readouterr().out
    monkeypatch.setattr(tuning, "machine_model", lambda target: "another machine")
    tuning.main([*first, "--count", "1"])
    assert len(measured) == 6
    tuning.main([*first, "--seconds", "2"])
    assert len(measured) == 8


def test_a_row_and_the_mean():
    unsure, kept = row_of("case", 1.0, 0.95), replace(row_of("same", 1.0, 1.0), ratios={"default": tuning.KEPT})
    assert str(row_of("case", 1.0, 2.0)).split() == ["case", "3", "1.0", "2.0", "-", "2.00", "(1.80-2.20)"]
    assert str(kept).split()[-1] == "kept" and tuning.geomean([2.0, 8.0]) == pytest.approx(4.0)
    assert tuning.summary([unsure, kept]).startswith("below the default: 0 of 2 shapes; the default was kept for 1")
    assert tuning.summary([row_of("case", 1.0, 0.9)]).startswith("below the default: 1 of 1 shapes, case;")


@pytest.mark.parametrize("steady, sittings", [(True, tuning.FEW), (False, tuning.MOST)])
def test_ratios_are_those_of_rounds_and_measured_until_they_are_sure(steady, sittings):
    made, draw = [], random.Random(0)

    def sitting():
        made.append([1 + draw.random() for _ in range(tuning.ROUNDS)])  # the drift of the machine, which slows both
        return {"best": made[-1], "torch": [3 * one * (1 if steady else 0.5 + draw.random()) for one in made[-1]]}

    medians, ratios = tuning.in_turns(sitting)
    low, middle, high = ratios["torch"]
    assert len(made) == sittings and low <= middle <= high and 1 < medians["best"] < 2
    assert middle == pytest.approx(3) if steady else high - low > 0.06


def test_where_the_search_keeps_the_default_nothing_is_compared(monkeypatch):
    shape = ("rows", 0, 0)
    rules = Problem(tuned_programs.drawn(*shape)[1], Target("llvm")).default.schedule
    best = tune.Record("", "", "", "", {"decisions": {}}, tune.Outcome((1.0,)))
    monkeypatch.setattr(tuning, "searched", lambda args, seconds, seed: (best, rules, 5))
    monkeypatch.setattr(tuning, "in_turns", lambda sitting: (dict.fromkeys(sitting.args[0](*sitting.args[1:]), 1e-3), {}))
    monkeypatch.setattr(tuning, "torch_or_none", lambda threads: None)
    one = tuning.compared(shape, 1.0)
    assert one.ratios["default"] == tuning.KEPT and one.medians == {"best": 1e-3, "default": 1e-3}
    assert one.directives == str(rules.journal)


def test_a_schedule_that_was_found_is_measured_again_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(tuning, "MOST", 1)  # each sitting is a process
    shape = ("rows", 0, 0)
    _, args, _ = tuned_programs.drawn(*shape)
    found = tuning.scheduled(args, None)
    found[args[-1]].split(args[-1].op.axis[0], factor=4)
    before = replace(row_of("case", 1.0, 1.0), journal=found.journal.to_json(indent=None))
    after = tuning.again(shape, before)
    assert after.medians["best"] > 0 and after.ratios["default"][1] != 1.0 and after.journal == before.journal

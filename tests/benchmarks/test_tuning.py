"""What the benchmark of searches measures: programs of its families, and the table."""

import random

import pytest

from benchmarks import tuned_programs, tuning
from tedsl.auto_scheduler.search.problem import Problem
from tedsl.target import Target


@pytest.mark.parametrize("family", tuned_programs.FAMILIES.values())
def test_shapes_are_drawn_by_the_seed_and_can_be_scheduled(family):
    name, args, _ = family(random.Random(1))
    assert name == family(random.Random(1))[0] != family(random.Random(2))[0]
    assert [array.shape for array in tuning.arrays_of(args)] == [tuple(map(int, arg.shape)) for arg in args]
    assert Problem(args, Target("llvm")).default.schedule.journal


def test_a_table_is_made_in_parts(tmp_path, monkeypatch, capsys):
    measured = []

    def compared(case, seconds, seed, torch):
        measured.append(case[0])
        return {"default": 2.0} if len(measured) % 2 else {"default": 0.5}

    monkeypatch.setattr(tuning, "compared", compared)
    kept = tmp_path / "kept.jsonl"
    first = ["--families", "rows", "pooling", "--count", "1", "--seconds", "1", "--kept", str(kept)]
    tuning.main(first)
    assert "below the default: 1 of 2 shapes" in capsys.readouterr().out and len(measured) == 2
    with kept.open("a") as file:
        file.write('{"case": "cut sh')
    tuning.main([*first[:-4], *first[-4:], "--count", "2"])
    said = capsys.readouterr().out
    assert len(measured) == len(set(measured)) == 4 and said.count(" kept ") == 2 and "geomean: 1.00 of default" in said
    tuning.main([*first, "--count", "2"])
    assert len(measured) == 4
    tuning.main([*first, "--count", "2", "--seconds", "2"])
    assert len(measured) == 8


def test_a_row_and_the_mean():
    row = tuning.row("case", 7, {"best": 1e-6, "default": 2e-6}, {"default": 2.0})
    assert row.split() == ["case", "7", "1.0", "2.0", "-", "2.00"] and tuning.geomean([2.0, 8.0]) == pytest.approx(4.0)

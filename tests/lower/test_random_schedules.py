"""Random programs under random schedules mean what their formulas say, and lower to the same text in every process."""

import os
import subprocess
import sys

import pytest

from tedsl.lower.lower import lower_schedule
from tests.lower.random_programs import Program, outputs_of, randomly_scheduled, try_seed


@pytest.mark.parametrize("block", range(8))
def test_random_schedules_keep_the_meaning(block):
    for seed in range(block * 40, block * 40 + 40):
        try_seed(seed)


def print_texts(count):
    """The loops of the first programs, on standard output."""
    for seed in range(count):
        program = Program(seed)
        outputs = outputs_of(program)
        inputs = [t for t in program.tensors if t in program.values]
        print(lower_schedule(randomly_scheduled(program, outputs), [*inputs, *outputs, *program.sizes]))


def test_the_text_does_not_depend_on_the_hash_seed():
    code = "from tests.lower.test_random_schedules import print_texts; print_texts(30)"
    texts = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                            env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(texts) == 1

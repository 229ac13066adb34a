"""What tutorials print keeps to the limits that CI holds them to."""

import importlib.util
import subprocess
import sys
from pathlib import Path

TUTORIALS = Path(__file__).parents[1] / "tutorials"
spec = importlib.util.spec_from_file_location("limits", TUTORIALS / "limits.py")
limits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limits)


def test_the_first_tutorial_keeps_to_the_limits():
    run = subprocess.run([sys.executable, TUTORIALS / "limits.py", TUTORIALS / "01_first_kernel.py"], capture_output=True,
                         text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "C[at : at+16] = A[at : at+16] + B[at : at+16]" in run.stdout


def test_what_is_too_long_or_printed_twice_is_found():
    loops = "def main():\n    pass"
    assert limits.problems("x.py", f"{loops}\n\nsays:\n{'x' * 110}\n") == []
    assert limits.problems("x.py", f"{'x' * 111}\n") == [f"line 1 has 111 columns: {'x' * 60}..."]
    assert limits.problems("x.py", "x\n" * 121) == ["121 lines"]
    assert limits.problems("x.py", f"{loops}\nmore\n{loops}\n") == [f"these loops are printed twice:\n{loops}"]
    assert limits.problems("05_schedule_directives.py", f"{loops}\nmore\n{loops}\n" * 60) == []


def test_each_tutorial_is_run_in_ci():
    steps = TUTORIALS.parent / ".ci"
    assert "tutorials/limits.py" in (steps / "tutorials").read_text()
    assert " tutorials " in next(line for line in (steps / "run").read_text().splitlines() if ".ci/together" in line)

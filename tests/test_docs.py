"""The pages under docs/ that are made from the code are what the code says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_of_directives_is_made_from_the_docstrings():
    made = subprocess.run([sys.executable, "docs/directives.py", "--check"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def test_every_directive_of_a_stage_has_an_example():
    page = (ROOT / "docs" / "directives.md").read_text()
    from tedsl.schedule.handles import Schedule
    from tedsl.schedule.stage import Stage

    for holder in (Stage, Schedule):
        for name, method in vars(holder).items():
            calls = set(getattr(getattr(method, "__code__", None), "co_names", ()))
            if calls & {"_record", "record"} and not name.startswith("_"):
                assert f"### `{name}(" in page, f"{name} has no Example block in its docstring"

"""The pages under docs/ that are made from the code are what the code says."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BARE = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TEDSL_CACHE_DIR": "off"}  # of processes that write pages


@pytest.mark.parametrize("script", ["docs/compatibility.py", "docs/concepts.py", "docs/directives.py", "docs/mistakes.py",
                                    "docs/operators.py"])
def test_a_page_is_made_from_the_code(script):
    made = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, env=BARE, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def directives():
    """The names of all directives of stages and schedules."""
    from tedsl.schedule.handles import Schedule
    from tedsl.schedule.stage import Stage

    for holder in (Stage, Schedule):
        yield from sorted(holder._directives)


def test_every_directive_of_a_stage_has_an_example():
    page = (ROOT / "docs" / "directives.md").read_text()
    for name in directives():
        assert f"### `{name}(" in page, f"{name} has no Example block in its docstring"


def test_the_tutorial_shows_the_directives_one_by_one():
    tutorial = (ROOT / "tutorials" / "05_schedule_directives.py").read_text()
    missing = [name for name in directives() if f".{name}(" not in tutorial]
    assert missing == ["tensorize"]  # it has a tutorial of its own


def test_every_operator_has_a_line():
    import topi

    page = (ROOT / "docs" / "operators.md").read_text()
    for room in (topi, topi.nn, topi.image, topi.vision, topi.random, topi.sparse):
        section = page.partition(f"\n## {room.__name__}\n")[2].partition("\n## ")[0]
        for name in room.__all__:
            if callable(getattr(room, name)) and not getattr(room, name).__module__.endswith(".utils"):
                listed = f"| `{name}(" in section or f" `{name}`" in section
                assert listed, f"{room.__name__}.{name} is not in docs/operators.md"


def test_every_tail_pragma_and_function_over_a_schedule_is_described():
    from tedsl import te
    from tedsl.schedule.primitives.pragma import PRAGMAS
    from tedsl.schedule.relations import TAILS

    page = (ROOT / "docs" / "directives.md").read_text()
    split = page.partition("### `split(")[2].partition("\n### ")[0]
    pragma = page.partition("### `pragma(")[2].partition("\n### ")[0]
    assert [tail for tail in TAILS if f'- "{tail}"' not in split] == []
    assert [kind for kind in PRAGMAS if f'"{kind}"' not in pragma] == []
    assert [name for name in vars(te.schedule) if name.startswith("AutoInline") and f"### `{name}(" not in page] == []


def test_an_example_that_shows_nothing_is_refused():
    made = subprocess.run([sys.executable, "-c", "import directives as d; d.example_text('decompose_reduction', "
                           "'s[B].decompose_reduction(k)', d.rowsum)"], cwd=ROOT / "docs", capture_output=True, text=True,
                          timeout=120, env=BARE, check=False)
    assert "shows nothing" in made.stderr

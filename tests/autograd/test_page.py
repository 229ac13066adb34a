"""The programs of docs/autograd.md run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "autograd.md"


def test_the_programs_of_the_page_run():
    text = PAGE.read_text()
    programs = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(programs) == 6
    names = {}
    for program in programs:
        exec(compile(program, "article.py", "exec"), names)


def test_the_names_of_the_table_are_there():
    from tedsl import autograd

    for name in re.findall(r"`autograd\.(\w+)`", PAGE.read_text()):
        assert hasattr(autograd, name), name

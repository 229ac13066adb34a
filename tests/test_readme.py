"""The README's example prints what the README shows."""

import contextlib
import io
import pathlib
import re

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_prints_its_listing():
    program = re.search(r"```python\n(.*?)```", README, re.S)[1]
    listing = re.search(r"prints\n\n```\n(.*?)```", README, re.S)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue() == listing

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


def test_pictures_are_found_outside_of_the_repository_too():
    """Package indexes show the README alone: its pictures need addresses, of files that exist here."""
    root = pathlib.Path(__file__).parent.parent
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", README)
    assert pictures
    for address in pictures:
        base, _, path = address.partition("/main/")
        assert base == "https://raw.githubusercontent.com/tedsl/tedsl"
        assert "https://github.com/tedsl/tedsl" in (root / "pyproject.toml").read_text()
        assert (root / path).is_file()

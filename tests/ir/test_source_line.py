"""The line of the user's program, which warnings and the journal name."""

import warnings

import pytest

from tedsl.errors import OURS

INSIDE = """
import warnings
from functools import cached_property
from tedsl.ir.source_line import user_level, user_line

class Host:
    @cached_property
    def line(self):
        warnings.warn("asked", RuntimeWarning, stacklevel=user_level())
        return user_line()
"""


@pytest.mark.parametrize("package", OURS)
def test_properties_are_asked_by_the_line_of_the_user(package):
    made = {}
    exec(compile(INSIDE, f"{package}host.py", "exec"), made)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = made["Host"]().line
    assert caught[0].filename == line.file == __file__
    assert caught[0].lineno == line.line and line.short == f"test_source_line.py:{line.line}"

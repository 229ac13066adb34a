"""What a type checker says of users' programs: nothing of right ones, an error on each line of a wrong one that has a mark.

A mark is `# error: CODE` behind the line, with mypy's code. Runs where mypy is installed: with the extra `dev`.
"""

import pathlib
import re

import pytest

mypy = pytest.importorskip("mypy.api", reason="type checks of users' programs need mypy: pip install -e '.[dev]'")
PROGRAMS = sorted((pathlib.Path(__file__).parent / "programs").glob("*.py"))


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The (line, code) of each error, by file; all programs in one run of mypy."""
    options = ["--strict", "--config-file", "", "--disable-error-code", "comparison-overlap", "--follow-imports", "silent",
               "--cache-dir", str(tmp_path_factory.mktemp("cache")), "--no-error-summary", "--hide-error-context"]
    out, err, _ = mypy.run([*options, *map(str, PROGRAMS)])
    assert not err
    found = {path.name: [] for path in PROGRAMS}
    for line in out.splitlines():
        match = re.match(r"(.*?):(\d+): error: .*\[([a-z-]+)\]$", line)
        if match:
            found[pathlib.Path(match[1]).name].append((int(match[2]), match[3]))
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_errors_stand_where_the_program_is_wrong(path, errors):
    marks = [(number, match[1]) for number, line in enumerate(path.read_text().splitlines(), 1)
             if (match := re.search(r"# error: ([a-z-]+)$", line))]
    assert sorted(set(errors[path.name])) == marks

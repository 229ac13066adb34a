"""docs/architecture.md is a map: what it names exists, and every folder of the packages is on it."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = ["architecture.md", "contributing.md"]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page):
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(r"`((?:tedsl|topi|tests|docs|tutorials|benchmarks)/[\w./*-]*)`", text)
    assert len(named) > 20
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def test_files_named_in_the_row_of_a_folder_stand_in_it():
    missing = []
    for folder, text in re.findall(r"^\| `([^`]+)` \| (.*) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.M):
        missing += [f"{folder}{name}" for name in re.findall(r"`(\w+(?:\.py|/))`", text) if not (ROOT / folder / name).exists()]
    assert missing == []


def test_every_folder_is_on_the_map():
    rows = set(re.findall(r"^\| `([^`]+)/` \|", (ROOT / "docs" / "architecture.md").read_text(), re.M))
    folders = {str(file.parent.relative_to(ROOT)) for package in ("tedsl", "topi") for file in (ROOT / package).rglob("*.py")}
    assert rows == folders


def test_decisions_that_the_code_cites_are_on_the_page():
    text = (ROOT / "docs" / "architecture.md").read_text()
    numbers = set(map(int, re.findall(r"^(\d+)\. \*\*", text, re.M)))
    assert numbers == set(range(1, 25))
    cited = {int(n) for package in ("tedsl", "topi", "tests") for file in (ROOT / package).rglob("*.py")
             for n in re.findall(r"\bdecision (\d+)", file.read_text())}
    assert cited <= numbers

"""docs/architecture.md is a map: what it names exists, and every folder of the packages is on it."""

import ast
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


def test_packages_name_their_folders():
    """The docstring of a package with folders names each; that of `tedsl` points to the map."""
    silent = []
    for file in [*(ROOT / "tedsl").rglob("__init__.py"), *(ROOT / "topi").rglob("__init__.py")]:
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        folders = [folder.name for folder in file.parent.iterdir() if list(folder.glob("*.py"))]
        if "docs/architecture.md" not in text:
            silent += [f"{file.parent.relative_to(ROOT)}: {name}/" for name in folders if f"{name}/" not in text]
    assert silent == []


def test_packages_name_what_is_there():
    """A name that the docstring of a package writes as a folder or a file is one."""
    gone = []
    for file in [*(ROOT / "tedsl").rglob("__init__.py"), *(ROOT / "topi").rglob("__init__.py")]:
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        names = re.findall(r"(?<![\w./<])(\w+/)(?=[\s,;:.`)]|$)|`(\w+\.py)`", text)
        gone += [f"{file.parent.relative_to(ROOT)}: {folder or name}" for folder, name in names
                 if not (file.parent / (folder or name)).exists()]
    assert gone == []


def test_decisions_that_the_code_cites_are_on_the_page():
    text = (ROOT / "docs" / "architecture.md").read_text()
    numbers = set(map(int, re.findall(r"^(\d+)\. \*\*", text, re.M)))
    assert numbers == set(range(1, 25))
    cited = {int(n) for package in ("tedsl", "topi", "tests") for file in (ROOT / package).rglob("*.py")
             for n in re.findall(r"\bdecision (\d+)", file.read_text())}
    assert cited <= numbers

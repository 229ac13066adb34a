"""Writes a notebook of tutorials: `python tutorials/notebook.py [NUMBER ...] [--run]`; without numbers of 01, 02 and 03.

The section headings and the comments below them become text, the rest becomes cells of code. The notebook is
tutorials/out/tutorials.ipynb; with --run it is run without a browser first and holds what its cells show (extra `notebook`).
"""

import argparse
import pathlib
import re

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = pathlib.Path(__file__).resolve().parent
HEADING = re.compile(r"^# --- (.*?) -+$", re.M)


def cells_of(path):
    """The cells of one tutorial: its docstring, then for each section its heading and comments, and its code."""
    source = path.read_text()
    docstring = re.match(r'"""(.*?)"""\n', source, re.S)
    title, _, text = docstring[1].partition("\n")
    yield new_markdown_cell(f"# {title}\n{text}")
    # A notebook has no file and no arguments of its own: those of the tutorial.
    yield new_code_cell(f"import sys\n__file__ = {str(path)!r}\nsys.argv = [__file__]\n"
                        f"sys.path.insert(0, {str(path.parent.parent)!r})")
    parts = HEADING.split(source[docstring.end():])
    yield from code_cells(parts[0])
    for heading, body in zip(parts[1::2], parts[2::2]):
        comment = re.match(r"\n((?:# .*\n)*)", body)
        yield new_markdown_cell(f"## {heading}\n\n" + re.sub(r"^# ", "", comment[1], flags=re.M))
        yield from code_cells(body[comment.end():])


def code_cells(code):
    """One cell, unless there is nothing in it."""
    if code.strip():
        yield new_code_cell(code.strip())


def tutorial(number):
    """The file of a tutorial."""
    (path,) = HERE.glob(f"{int(number):02d}_*.py")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", default=["01", "02", "03"], metavar="NUMBER")
    parser.add_argument("--run", action="store_true", help="run the cells, and keep what they show")
    options = parser.parse_args()
    cells = [cell for number in options.numbers for cell in cells_of(tutorial(number))]
    cells.append(new_code_cell("s  # what a notebook shows of a schedule"))
    notebook = new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                                                  "language": "python"}})
    if options.run:
        from nbclient import NotebookClient

        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        assert "text/html" in notebook.cells[-1].outputs[0].data, "a schedule is shown as a page"
    target = HERE / "out" / "tutorials.ipynb"
    target.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, target)
    print(f"{len(cells)} cells written to {target}")


if __name__ == "__main__":
    main()

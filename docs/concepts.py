"""Writes the drawings of docs/concepts.md, from the objects that the page's program makes.

    python docs/concepts.py            writes docs/concepts/*.svg
    python docs/concepts.py --check    fails if a drawing is not what the code says
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

from tedsl import te
from tedsl.display.graph import Node, svg_of
from tedsl.display.markup import Markup, element, joined
from tedsl.ir.script import script
from tedsl.schedule.picture import picture
from tedsl.schedule.relations import Split

FOLDER = pathlib.Path(__file__).with_suffix("")
STYLE = """svg { background: #ffffff; } text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #656d76; }
text.name { fill: #1c2128; font-weight: bold; } rect { fill: #f6f8fa; stroke: #d0d7de; }
.output rect { stroke: #0757b0; stroke-width: 2; } .inline rect { stroke-dasharray: 4 3; } .input rect { fill: #ffffff; }
.edge { fill: none; stroke: #656d76; } .head { fill: #656d76; } rect.chosen { fill: #cfe3ff; stroke: #0757b0; }"""
CELL = 26


def program() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """The sum of each row of A + 1."""
    A = te.placeholder((4, 6), name="A")
    B = te.compute((4, 6), lambda y, x: A[y, x] + 1.0, name="B")
    k = te.reduce_axis((0, 6), "k")
    C = te.compute((4,), lambda y: te.sum(B[y, k], axis=k), name="C")
    return A, B, C


def tensor() -> Markup:
    """The elements of A, and where one of them lies in memory."""
    A, _, _ = program()
    rows, columns = (int(extent) for extent in A.shape)
    y, x = 2, 3
    cells = [element("rect", x=60 + CELL * i, y=30 + CELL * j, width=CELL, height=CELL,
                     class_="chosen" if (j, i) == (y, x) else None) for j in range(rows) for i in range(columns)]
    below = 30 + CELL * rows + 46
    width = CELL * columns / 10
    line = [element("rect", x=round(60 + width * at, 1), y=below, width=round(width, 1), height=14,
                    class_="chosen" if at == y * columns + x else None) for at in range(rows * columns)]
    words = [(60, 20, f"x: 0 .. {columns - 1}", None), (4, 60, f"y: 0 .. {rows - 1}", None),
             (70 + CELL * columns, 35 + CELL * y + 12, f"{A.op.name}[{y}, {x}]", "name"),
             (60, below - 8, f"in memory, row after row: element {y}*{columns} + {x} = {y * columns + x}", None)]
    texts = [element("text", text, x=at, y=top, class_=kind) for at, top, text, kind in words]
    return element("svg", element("title", "A tensor and one of its elements"), joined(*cells, *line, *texts),
                   xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 450 {below + 30}", width=450, height=below + 30)


def operation() -> Markup:
    """The operation of C: what it reads, its axes and its formula."""
    _, _, C = program()
    reads = [Node((f"tensor {t.op.name}", f"{list(t.shape)} {t.dtype}"), "input") for t in C.op.input_tensors]
    kinds = {"axis": C.op.axis, "reduce_axis": C.op.reduce_axis}
    axes = [f"{kind} {axis.var.name}: {script(axis.dom)}" for kind, listed in kinds.items() for axis in listed]
    formula = Node((f"operation {C.op.name}", *axes, "body:", script(C.op.body[0])))
    result = Node((f"tensor {C.op.name}", f"{list(C.shape)} {C.dtype}"), "output")
    return svg_of([*reads, formula, result], [(0, 1), (1, 2)], "An operation, what it reads and what it makes")


def stages() -> Markup:
    """A stage for each operation, and what each reads."""
    return picture(te.create_schedule(program()[2].op).state)


def scheduled() -> tuple[te.Schedule, te.Tensor, te.Tensor]:
    """The schedule of the page: C in blocks of two rows, B computed for each block."""
    _, B, C = program()
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=2)
    s[B].compute_at(s[C], outer)
    return s, B, C


def axes() -> Markup:
    """How the loops of C come from its axes."""
    s, _, C = scheduled()
    stage = s[C]
    nodes: list[Node] = []
    places: dict[Any, int] = {}
    leaves = stage.leaf_iter_vars
    for axis in stage.all_iter_vars:
        kind = "output" if axis in leaves else "plain"
        what = f"loop {leaves.index(axis) + 1}" if axis in leaves else "axis"
        places[axis] = len(nodes)
        nodes.append(Node((axis.var.name, what), kind))
    edges = [(places[r.parent], places[part]) for r in stage.relations if isinstance(r, Split) for part in (r.outer, r.inner)]
    return svg_of(nodes, edges, "Axes and the loops that come from them")


def attachment() -> Markup:
    """The loops of C, and those of B inside them."""
    s, B, C = scheduled()
    nodes, edges = [Node(("C",), "output")], []
    at = 0
    for loop in s[C].leaf_iter_vars:
        nodes.append(Node((f"for {loop.var.name}", "of C")))
        edges.append((at, len(nodes) - 1))
        at = len(nodes) - 1
        if s[B].attach_ivar is loop:
            inner = at
            for guest in s[B].leaf_iter_vars:
                nodes.append(Node((f"for {guest.var.name}", "of B, attached here"), "inline"))
                edges.append((inner, len(nodes) - 1))
                inner = len(nodes) - 1
    return svg_of(nodes, edges, "A stage that is computed inside of a loop of another one")


def scope() -> Markup:
    """The scopes in which the tensors of the schedule are kept, with a copy of the input and a partial sum in local memory."""
    _, B, C = program()
    s = te.create_schedule(C.op)
    total = s.cache_write(C, "local")
    outer, _ = s[C].split(C.op.axis[0], factor=2)
    s[total].compute_at(s[C], outer)
    s[B].compute_at(s[C], outer)
    return picture(s.state)


DRAWINGS = {"tensor": tensor, "operation": operation, "stage": stages, "axis": axes, "attachment": attachment, "scope": scope}


def standing_alone(drawing: Markup) -> str:
    """The drawing as a file of its own, with its style sheet."""
    return drawing.replace("<title>", f"<style>{STYLE}</style><title>", 1) + "\n"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        path, text = FOLDER / f"{name}.svg", standing_alone(draw())
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text() != text:
                print(f"{path.name} is not what the code says: run python docs/concepts.py")
                return 1
        else:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

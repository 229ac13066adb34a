"""Schedules drawn as graphs, by the names of TVM's tensor expression debug display: texts of the DOT language.

    tedd.viz_dataflow_graph(s, dot_file_path="flow.dot")            which stage reads which tensor
    tedd.viz_schedule_tree(s, dot_file_path="tree.dot")             which stage is computed in which loop
    tedd.viz_itervar_relationship_graph(s, dot_file_path="i.dot")   how loops were split and fused

Each writes the text to `dot_file_path`, if one is given, and returns it with `output_dot_string`; `show_svg` returns a picture
for notebooks, for which the package graphviz is needed.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tedsl.errors import ArgumentTypeError, TedslError, entries, type_in_words
from tedsl.ir.iters import IterVar
from tedsl.schedule.handles import Schedule
from tedsl.schedule.relations import Fuse, Split
from tedsl.schedule.stage import Stage

__all__ = ["viz_dataflow_graph", "viz_itervar_relationship_graph", "viz_schedule_tree"]


def viz_dataflow_graph(sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False) -> Any:
    """The stages of a schedule, and the tensors between them."""
    return _shown(sch, "Dataflow Graph", _dataflow, show_svg, dot_file_path, output_dot_string)


def viz_schedule_tree(sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False) -> Any:
    """The stages of a schedule with their loops, each below the loop in which it is computed."""
    return _shown(sch, "Schedule Tree", _tree, show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(sch: Schedule, show_svg: bool = False, dot_file_path: str = "",
                                   output_dot_string: bool = False) -> Any:
    """The loops of each stage, and the splits and fusions by which they came to be."""
    return _shown(sch, "IterVar Relationship Graph", _relations, show_svg, dot_file_path, output_dot_string)


def _shown(sch: Schedule, title: str, lines: Any, show_svg: bool, dot_file_path: str, output_dot_string: bool) -> Any:
    if not isinstance(sch, Schedule):
        raise ArgumentTypeError(f"tedd draws a schedule, not {type_in_words(sch)}", hint="s = te.create_schedule(C.op)")
    text = "\n".join([f'digraph "{title}" {{', "    node [shape=box]", *(f"    {line}" for line in lines(sch)), "}", ""])
    if dot_file_path:
        Path(dot_file_path).write_text(text)
    if show_svg:
        return _picture(text)
    return text if output_dot_string else None


def _picture(text: str) -> Any:
    try:
        from graphviz import Source  # type: ignore[import-not-found,unused-ignore]  # asked for by `show_svg` alone
    except ImportError:
        raise TedslError("show_svg needs the package graphviz",
                         hint="pip install graphviz, or output_dot_string=True: dot -Tsvg draws the text") from None
    return Source(text)


def _dataflow(sch: Schedule) -> Iterator[str]:
    numbers = {stage.op: number for number, stage in enumerate(sch.stages)}
    for number, stage in enumerate(sch.stages):
        yield _record(f"Stage_{number}", _head(stage), [f"I_{i}" for i in range(len(stage.op.input_tensors))],
                      [f"O_{o}" for o in range(stage.op.num_outputs)])
        for o in range(stage.op.num_outputs):
            made = stage.op.output(o)
            yield f'Tensor_{number}_{o} [label="{_words(f"{made.name}: {made.dtype} {list(made.shape)}")}" shape=ellipse]'
            yield f"Stage_{number}:O_{o} -> Tensor_{number}_{o}"
    for number, stage in enumerate(sch.stages):
        for i, read in enumerate(stage.op.input_tensors):
            yield f"Tensor_{numbers[read.op]}_{read.value_index} -> Stage_{number}:I_{i}"


def _tree(sch: Schedule) -> Iterator[str]:
    numbers = {stage.op: number for number, stage in enumerate(sch.stages)}
    yield 'ROOT [label="ROOT"]'
    for number, stage in enumerate(sch.stages):
        yield _record(f"Stage_{number}", _head(stage), [_loop(stage, loop) for loop in stage.leaf_iter_vars], [])
        around, loop = stage.attach_stage, stage.attach_ivar
        if around is None or loop is None:
            yield f"ROOT -> Stage_{number}"
        else:
            yield f'Stage_{numbers[around.op]} -> Stage_{number} [label="in {_words(loop.var.name)}"]'


def _relations(sch: Schedule) -> Iterator[str]:
    for number, stage in enumerate(sch.stages):
        names = {loop: f"Loop_{number}_{i}" for i, loop in enumerate(stage.all_iter_vars)}
        yield f'subgraph cluster_{number} {{ label="{_words(_head(stage))}"'
        for loop, name in names.items():
            yield f'{name} [label="{_words(_loop(stage, loop))}"]'
        for i, relation in enumerate(stage.relations):
            made = f"Relation_{number}_{i}"
            yield f'{made} [label="{type(relation).__name__}" shape=ellipse]'
            for read, written in _ends(relation):
                yield from (f"{names[loop]} -> {made}" for loop in read if loop in names)
                yield from (f"{made} -> {names[loop]}" for loop in written if loop in names)
        yield "}"


def _ends(relation: Any) -> list[tuple[list[IterVar], list[IterVar]]]:
    if isinstance(relation, Split):
        return [([relation.parent], [relation.outer, relation.inner])]
    if isinstance(relation, Fuse):
        return [([relation.outer, relation.inner], [relation.fused])]
    return []


def _head(stage: Stage) -> str:
    return f"{stage.op.name} ({stage.scope})" if stage.scope else str(stage.op.name)


def _loop(stage: Stage, loop: IterVar) -> str:
    attr = stage.iter_var_attrs.get(loop)
    thread = "" if attr is None or attr.bind_thread is None else f", {attr.bind_thread.thread_tag}"
    return f"{loop.var.name} ({(loop if attr is None else attr).iter_type.name}{thread})"


def _record(name: str, head: str, *rows: list[str]) -> str:
    """A box with a row of cells for each list, whose cells that are ports edges start and end at."""
    cells = ["<TR>" + "".join(f'<TD PORT="{html.escape(cell)}">{html.escape(cell)}</TD>' for cell in row) + "</TR>"
             for row in rows if row]
    title = f"<TR><TD COLSPAN=\"{max(1, *map(len, rows))}\">{html.escape(head)}</TD></TR>"
    return f"{name} [shape=plain label=<<TABLE CELLBORDER=\"1\">{title}{''.join(cells)}</TABLE>>]"


def _words(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


entries(globals())

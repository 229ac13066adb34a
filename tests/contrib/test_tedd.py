"""Graphs of schedules by TVM's names: what is drawn is what the schedule is."""

import re

import pytest

from tedsl import te
from tedsl.contrib import tedd
from tedsl.errors import ArgumentTypeError, TedslError


def schedule():
    A = te.placeholder((64, 14), name="A")
    B = te.compute((64, 14), lambda i, j: A[i, j] * 2.0, name="B")
    k = te.reduce_axis((0, 14), name="k")
    C = te.compute((64,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].vectorize(s[B].split(B.op.axis[1], 4)[1])
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    return s


def edges(text):
    return set(re.findall(r"(\w+(?::\w+)?) -> (\w+(?::\w+)?)", text))


def test_the_dataflow_is_that_of_the_stages():
    text = tedd.viz_dataflow_graph(schedule(), output_dot_string=True)
    assert text.startswith('digraph "Dataflow Graph" {') and text.count("{") == text.count("}")
    assert edges(text) == {("Stage_0:O_0", "Tensor_0_0"), ("Tensor_0_0", "Stage_1:I_0"), ("Stage_1:O_0", "Tensor_1_0"),
                           ("Tensor_1_0", "Stage_2:I_0"), ("Stage_2:O_0", "Tensor_2_0")}
    assert "B: float32 [64, 14]" in text


def test_stages_hang_where_they_are_computed():
    text = tedd.viz_schedule_tree(schedule(), output_dot_string=True)
    assert edges(text) == {("ROOT", "Stage_0"), ("Stage_2", "Stage_1"), ("ROOT", "Stage_2")}
    assert "blockIdx.x" in text and "j.inner (VECTORIZED)" in text and "k (COMM_REDUCE)" in text and 'label="in i"' in text


def test_loops_come_from_splits(tmp_path):
    path = tmp_path / "loops.dot"
    assert tedd.viz_itervar_relationship_graph(schedule(), False, str(path)) is None
    text = path.read_text()
    name = {words: node for node, words in re.findall(r'(Loop_1_\d+) \[label="([\w.]+) ', text)}
    assert {edge for edge in edges(text) if "Relation_1_0" in edge} == {
        (name["j"], "Relation_1_0"), ("Relation_1_0", name["j.outer"]), ("Relation_1_0", name["j.inner"])}


def test_what_is_not_a_schedule_and_pictures(monkeypatch):
    with pytest.raises(ArgumentTypeError, match="tedd draws a schedule, not an int"):
        tedd.viz_schedule_tree(3)
    monkeypatch.setitem(__import__("sys").modules, "graphviz", None)
    with pytest.raises(TedslError, match="show_svg needs the package graphviz"):
        tedd.viz_schedule_tree(schedule(), show_svg=True)

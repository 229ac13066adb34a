"""A fixed sample of the node tests of the package onnx."""

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="models of ONNX need the extra: pip install 'tedsl[onnx]'")

from tests.graph.onnx.node_tests import cases, left_out, run

SAMPLE = (Path(__file__).parent / "sample.txt").read_text().split()


@pytest.fixture(scope="module")
def known():
    return {case.name: case for case in cases()}


@pytest.mark.parametrize("part", range(6))
def test_the_sample_passes(part, known):
    missing = [name for name in SAMPLE[part::6] if name not in known]
    assert len(missing) <= 4, f"renamed in this version of onnx: {missing}"
    wrong = {name: problem for name in SAMPLE[part::6] if name in known and (problem := run(known[name])[0])}
    assert not wrong


def test_most_node_tests_are_standard(known):
    assert sum(not left_out(case) for case in known.values()) > 1200

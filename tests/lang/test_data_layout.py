"""tir.layout and tir.bijective_layout: letters, sizes of blocks, indices and shapes."""

import pytest

from tedsl import te, tir
from tedsl.errors import ArgumentError, ShapeError


def test_a_layout_is_its_letters():
    layout = tir.layout("NCHW16c")
    assert (len(layout), str(layout), layout.name, list(layout)) == (5, "NCHW16c", "NCHW16c", ["N", "C", "H", "W", "c"])
    assert layout[1] == "C" and layout[-1] == "c" and "c" in layout and "D" not in layout
    assert (layout.index_of("H"), layout.index_of("c"), layout.index_of("n")) == (2, 4, -1)
    assert (layout.factor_of("C"), layout.factor_of("c"), layout.factor_of("N")) == (16, 16, -1)
    assert layout == tir.layout("NCHW16c") != tir.layout("NCHW") and hash(layout) == hash(tir.layout("NCHW16c"))
    assert repr(layout) == "Layout(NCHW16c)" and tir.layout(layout) is layout


def test_indices_and_shapes_move_between_layouts():
    way = tir.bijective_layout("NCHW", "NCHW16c")
    n, c, h, w = (te.var(name) for name in "nchw")
    assert repr(way.forward_index([n, c, h, w])) == "[n, floordiv(c, 16), h, w, floormod(c, 16)]"
    assert repr(way.backward_index([n, c, h, w, 3])) == "[n, ((c*16) + 3), h, w]"
    assert [int(e) for e in way.forward_shape((1, 32, 7, 9))] == [1, 2, 7, 9, 16]
    assert [int(e) for e in way.forward_shape((1, 33, 7, 9))] == [1, 3, 7, 9, 16]
    assert [int(e) for e in way.backward_shape((1, 2, 7, 9, 16))] == [1, 32, 7, 9]
    assert way.src_layout.name == "NCHW" and way.dst_layout.name == "NCHW16c"
    assert repr(tir.bijective_layout("NC", "CN").forward_index([n, c])) == "[c, n]"


@pytest.mark.parametrize("name, words", [("NC-HW", "only letters"), ("NCHW16", "only letters"), ("NCN", "twice"),
                                         ("NHW4c", "'c' is the place in a block of 'C'"),
                                         ("NCc", "the size of a block before it"),
                                         ("N4CHW", "'C' is a whole dimension and has no size")])
def test_names_that_mean_nothing(name, words):
    with pytest.raises(ArgumentError, match=words):
        tir.layout(name)


def test_layouts_that_do_not_fit():
    with pytest.raises(ArgumentError, match=r"NCHW and NHW do not have the same dimensions(.|\n)*C stands only in one"):
        tir.bijective_layout("NCHW", "NHW")
    way = tir.bijective_layout("NCHW4c", "NCHW")
    with pytest.raises(ShapeError, match="layout NCHW4c has 5 dimensions"):
        way.forward_shape((1, 2, 3))
    with pytest.raises(ShapeError, match=r"dimension 'c' of the shape .* is 3"):
        way.forward_shape((1, 2, 5, 5, 3))

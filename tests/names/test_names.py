"""Each public name of TVM v0.8 is here with its parameters, or the data say what differs."""

import collections
import itertools
import pathlib
import re

import pytest

import tedsl
from tedsl.errors import OptionError
from tedsl.tir.not_planned import NOT_PLANNED
from tests.names.table import Name, difference, differing_parameters, names, read, releases, since

PLACES = [(place, list(group)) for place, group in itertools.groupby(names(), lambda name: name.place)]


def found_difference(name):
    """What differs, None for a name that does not exist."""
    try:
        return difference(name)
    except AttributeError:
        return None


@pytest.mark.parametrize("place, listed", PLACES, ids=[place or "tvm" for place, _ in PLACES])
def test_each_name_is_there_as_the_data_say(place, listed):
    wrong = []
    for name in listed:
        differs = found_difference(name)
        if name.note == "not planned":
            if differs is not None:
                wrong.append(f"{name} exists: the note can go")
        elif differs is None:
            wrong.append(f"{name} does not exist")
        elif name.note == "differs" and not differs:
            wrong.append(f"{name} is as in TVM: the note can go")
        elif not name.note and differs:
            wrong.append(f"{name} {differs}")
    assert not wrong, "\n".join(wrong)


def test_a_pass_that_is_not_planned_is_refused_with_the_reason_of_the_data():
    data = {name.name: name.words for name in names() if name.place == "tir.transform" and name.note == "not planned"}
    assert data == NOT_PLANNED
    for name, words in NOT_PLANNED.items():
        with pytest.raises(OptionError, match=name) as refusal:
            getattr(tedsl.tir.transform, name)
        assert refusal.value.hint == words


def test_each_pass_has_a_row_or_a_reason():
    page = (pathlib.Path(tedsl.__file__).parents[1] / "docs" / "compatibility.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \| \S", page.split("## tir.transform\n")[1].split("\n## ")[0], re.M)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    there = [name.name for name in names() if name.place == "tir.transform" and name.note != "not planned"]
    assert sorted(listed) == sorted(there) and all(hasattr(tedsl.tir.transform, name) for name in listed)


def test_no_name_is_listed_twice():
    paths = [name.path for name in names()]
    assert len(paths) == len(set(paths)) and len(paths) > 1500


def test_each_release_is_that_of_names():
    paths, places = {name.path for name in names()}, {f"{name.place}.*" for name in names()}
    assert not set(releases()) - paths - places
    count = collections.Counter(map(since, names()))
    assert set(count) == {"0.6", "0.7", "0.7 or before", "0.8", "0.8 or before"} and min(count.values()) > 100
    of = {name.path: since(name) for name in names()}
    assert (of["te.compute"], of["te.size_var"], of["te.Stage.rolling_buffer"], of["tir.transform.Simplify"]) == (
        "0.6", "0.7", "0.8", "0.7")
    notes = {"topi.bifrost": "0.6", "topi.strided_set": "0.7", "topi.nn.pool3d": "0.7", "topi.einsum": "0.8"}
    assert {path: of[path] for path in notes} == notes, "as the notes of those releases say"


@pytest.mark.parametrize("there, here, differs", [
    ("a, b=1", lambda a, b=1: 0, ""), ("a, b=1", lambda a, b=1, *, more=0: 0, ""), ("a", lambda a, b=1: 0, ""),
    ("a, span=None", lambda a: 0, ""), ("*args", lambda *given: 0, ""), ("a, b=None", lambda a, b={}: 0, ""),
    ("a, b=1", lambda a, b=2: 0, "has 2 as the default of b, not 1"), ("a, b", lambda b, a: 0, "has a at another place"),
    ("a, b", lambda a: 0, "has no parameter b"), ("a", lambda a, b: 0, "needs b too"), ("*args", lambda a: 0, "does not take"),
    ("a, b=1", lambda a, b: 0, "as the default of b"), ("a=True", lambda a=1: 0, "has 1 as the default of a, not True"),
    ("a, **kwargs", lambda a: 0, "does not take"), ("a, b=0", lambda a, *, b=0: 0, "another place")])
def test_what_counts_as_a_difference(there, here, differs):
    found = differing_parameters(there, here, in_class=False)
    assert differs in found and bool(differs) == bool(found)


def test_notes_of_the_data():
    text = "[te.x] | not planned: never\na(b)\n\n[te]\nclass C(x=1) | differs: y\n"
    assert list(read(text)) == [Name("te.x", "a", False, "b", "not planned", "never"),
                                Name("te", "C", True, "x=1", "differs", "y")]
    with pytest.raises(ValueError, match="a note is one of"):
        list(read("[te]\na | later: soon"))


def test_what_a_name_is_in_another_module():
    from tedsl.topi.math import cast
    from tedsl.topi.nn.conv2d import conv2d_nchw

    import topi
    from tedsl.te.tag import tag_scope

    assert tag_scope is tedsl.te.tag_scope and cast is topi.cast and conv2d_nchw.__doc__ == topi.nn.conv2d_nchw.__doc__

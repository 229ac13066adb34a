"""Tracebacks of refusals show the user's lines, one frame of tedsl at most; notebooks none, and cells by their numbers."""

import sys
import traceback
import types
from pathlib import Path

import numpy as np
import pytest

import tedsl
from tedsl import nd, te, tir
from tedsl.errors import OURS, InternalError, TedslError, entry, shortened
from tedsl.ir.source_line import SourceLine

A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1, name="B")
K = te.reduce_axis((0, 4), "k")


@pytest.fixture(scope="module")
def kernel():
    return tedsl.build(te.create_schedule(B.op), [A, B])


def frames(error):
    """The frames of tedsl in the traceback, and those of others."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [file for file in files if file.startswith(OURS)]
    return len(ours), len(files) - len(ours)


def scheduled(then):
    s = te.create_schedule(B.op)
    return then(s, s[B], B.op.axis[0])


REFUSALS = {
    "formula": (lambda: te.compute((4,), lambda i: A[i, i]), 2),  # the line of the formula too
    "reduction": (lambda: te.compute((4,), lambda i: te.sum(A[K], axis=K) + 1), 1),
    "placeholder": (lambda: te.placeholder((-1,)), 1),
    "extern": (lambda: te.extern((4,), [A], lambda ins, outs: 3), 1),
    "schedule": (lambda: te.create_schedule(3), 1),
    "directive": (lambda: scheduled(lambda s, b, i: b.split(i, factor=0)), 3),
    "cache_read": (lambda: scheduled(lambda s, b, i: s.cache_read(3, "local", [B])), 3),
    "lower": (lambda: tedsl.lower(te.create_schedule(B.op), [A, 3]), 1),
    "build": (lambda: tedsl.build(te.create_schedule(B.op), [A, B], target="nothing"), 1),
    "array": (lambda: nd.array("text"), 1),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_has_one_frame_of_tedsl_at_most(kind, monkeypatch):
    refuse, lines_of_the_user = REFUSALS[kind]
    monkeypatch.delenv("TEDSL_TRACEBACK", raising=False)
    with pytest.raises(TedslError) as short:
        refuse()
    assert frames(short.value) == (1, lines_of_the_user + 1)  # and this function
    monkeypatch.setenv("TEDSL_TRACEBACK", "full")
    with pytest.raises(TedslError) as full:
        refuse()
    assert frames(full.value)[0] > 1 and str(full.value) == str(short.value)


def test_a_call_of_a_kernel(kernel, monkeypatch):
    monkeypatch.delenv("TEDSL_TRACEBACK", raising=False)
    with pytest.raises(TedslError) as refusal:
        kernel(np.zeros(4, "float32"), np.zeros(5, "float32"))
    assert frames(refusal.value) == (1, 1)


def test_what_caused_a_refusal_is_shortened_too(monkeypatch):
    monkeypatch.delenv("TEDSL_TRACEBACK", raising=False)
    with pytest.raises(TedslError) as refusal:
        nd.array([[1, 2], [3]])
    assert isinstance(refusal.value.__cause__, ValueError) and frames(refusal.value.__cause__)[0] == 0
    printed = "".join(traceback.format_exception(refusal.value))
    assert "The above exception was the direct cause" in printed and len(printed.splitlines()) < 20


def test_other_exceptions_keep_their_frames():
    def deeper():
        raise InternalError("a bug")

    def fails(i):
        raise KeyError("the user's own")

    file = str(Path(tedsl.__file__).with_name("stand_in.py"))
    inside = types.FunctionType(compile("def f(g): return g()", file, "exec").co_consts[0], {})
    with pytest.raises(InternalError) as bug:
        entry(inside)(deeper)
    assert frames(bug.value)[0] == 2
    with pytest.raises(KeyError) as own:
        te.compute((4,), fails)
    assert frames(own.value)[0] > 1


class Shell:
    """What is asked of IPython: its names of cells, and its form of tracebacks."""

    class compile:
        @staticmethod
        def format_code_name(name):
            return ("Cell", "In[3]") if name == "/tmp/ipykernel_7/4231674237.py" else None

    class InteractiveTB:
        tb_offset = 1

        @staticmethod
        def structured_traceback(kind, value, trace, tb_offset):
            return [f"{kind.__name__} {tb_offset}", *(frame.filename for frame in traceback.extract_tb(trace))]


@pytest.fixture
def notebook(monkeypatch):
    module = types.ModuleType("IPython")
    module.get_ipython = Shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.delenv("TEDSL_TRACEBACK", raising=False)


def test_a_notebook_shows_no_frame_of_tedsl(notebook):
    """Also where nothing stands between: operators, the constructors of nodes."""
    for refuse in (REFUSALS["formula"][0], lambda: A[0, 0], lambda: bool(A[0]),
                   lambda: tir.Allocate(0, "float32", [4], 1, None)):
        with pytest.raises(TedslError) as refusal:
            refuse()
        first, *files = refusal.value._render_traceback_()
        assert first == f"{type(refusal.value).__name__} 1" and files and set(files) == {__file__}


def test_places_in_a_notebook_are_cells(notebook):
    line = SourceLine("/tmp/ipykernel_7/4231674237.py", 2)
    assert line.short == "Cell In[3], line 2" and str(line) == "Cell In[3], line 2"
    assert SourceLine("/home/me/prog.py", 2).short == "prog.py:2" and str(SourceLine("/me/prog.py", 2)) == "/me/prog.py:2"


def test_the_place_in_a_message_is_the_cell(notebook):
    program = "s[B].parallel(B.op.axis[0])\ns[B].reorder(B.op.axis[0], K)"
    names = {"s": te.create_schedule(B.op), "B": B, "K": K}
    with pytest.raises(TedslError):
        exec(compile(program, "/tmp/ipykernel_7/4231674237.py", "exec"), names)
    assert "Cell In[3], line 1" in "\n".join(map(repr, [d.where.short for d in names["s"].journal]))


def test_an_error_that_is_its_own_cause_is_shown():
    """It held the process: causes were followed without end."""
    refusal = TedslError("refused")
    refusal.__cause__ = ValueError("behind it")
    refusal.__cause__.__cause__ = refusal
    assert shortened(refusal) is refusal

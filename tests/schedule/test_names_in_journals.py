"""Journals of programs whose names are no names of Python, or mean something else in a journal."""

import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, ScheduleError, TedslError
from tedsl.schedule.journal import Journal
from tedsl.schedule.record.grammar import read_directive


def program(shape=(8, 16), axes=("y", "x"), names=("A", "B", "C")):
    A = te.placeholder(shape, name=names[0])
    B = te.compute(shape, eval(f"lambda {', '.join(axes)}: A[{', '.join(axes)}] + 1.0", {"A": A}), name=names[1])
    C = te.compute(shape, lambda *i: B(*i) * 2.0, name=names[2])
    return te.create_schedule(C.op), A, B, C


def replayed(journal, **kind):
    s, A, _, C = program(**kind)
    s.replay(journal)
    return str(tedsl.lower(s, [A, C]))


@pytest.mark.parametrize("shape", [(8, 16), "s", "te"])
def test_parameters_of_a_layout_called_as_the_schedule(shape):
    """An axis `s` became a parameter of the lambda, and was read as the schedule."""
    kind = {"axes": ("s", "te"), "shape": shape if isinstance(shape, tuple) else (te.size_var(shape), 16)}
    s, A, B, C = program(**kind)
    s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])
    expected = str(tedsl.lower(s, [A, C]))
    assert replayed(s.journal, **kind) == expected
    assert replayed(Journal.from_json(s.journal.to_json()), **kind) == expected


def test_parameters_hide_what_has_their_name():
    """A journal of a file may name a parameter `s`; it hides the schedule in its lambda."""
    text = "s[B].transform_layout(lambda s, te: [(te // 4), s, (te % 4)])"
    s, A, B, C = program()
    s[B].transform_layout(lambda y, x: [x // 4, y, x % 4])
    assert replayed(Journal([read_directive(text, "B")])) == str(tedsl.lower(s, [A, C]))


def test_a_size_and_an_axis_of_one_name():
    """In `lambda n, x: [n // n, ...]` the size n was taken for the parameter n."""
    n = te.size_var("n")
    kind = {"shape": (n, 16), "axes": ("n", "x")}
    s, A, B, C = program(**kind)
    s[B].transform_layout(lambda i, j: [i + j * n])
    assert "lambda n_1, x: [(n_1 + (x * n))]" in str(s.journal)
    assert replayed(s.journal, **kind) == str(tedsl.lower(s, [A, C]))


@pytest.mark.parametrize("name", ["ﬁ", "λ", "ℌ", "x²", "½", "class", "te", "a b", "1x", ""])
def test_names_that_python_reads_otherwise(name):
    kind = {"names": ("A", name, "C")}
    s, A, B, C = program(**kind)
    BL = s.cache_read(B, "local", [C])
    s[BL].unroll(BL.op.axis[1])
    s[B].split(B.op.axis[0], 4)
    compile(str(s.journal), "journal", "exec")
    expected = str(tedsl.lower(s, [A, C]))
    assert replayed(s.journal, **kind) == expected
    assert replayed(Journal.from_json(s.journal.to_json()), **kind) == expected


@pytest.mark.parametrize("name", ["n", "s", "te", "C", "class", "n.x", "y_outer"])
def test_the_variables_of_a_program_that_was_built_again(name):
    """The old program's variable was taken, and lowering then asked for its value."""
    def built():
        n = te.size_var(name)
        return n, *program(shape=(n, 16))

    def scheduled(n, s, A, B, C):
        s[C].specialize(n % 4 == 0)
        s[C].specialize(te.power(n, 2) > 7)  # kept as an object
        s[C].split(C.op.axis[0], n // 2)
        return s.journal, str(tedsl.lower(s, [A, C]))

    journal, expected = scheduled(*built())
    _, s, A, _, C = built()
    s.replay(journal)
    assert str(tedsl.lower(s, [A, C])) == expected


def test_scalars_of_a_program_that_was_built_again():
    def built():
        alpha = te.var("alpha", "int32")
        A = te.placeholder((8,), name="A", dtype="int32")
        C = te.compute((8,), lambda i: A[i] * alpha, name="C")
        return te.create_schedule(C.op), A, C, alpha

    s, _, C, alpha = built()
    s[C].specialize(alpha > 3)
    again, A, C, alpha = built()
    again.replay(s.journal)
    assert "3 < alpha" in str(tedsl.lower(again, [A, alpha, C]))


def test_several_variables_of_one_name():
    def built():
        n, m = te.size_var("n"), te.size_var("n")
        return n, *program(shape=(n, m))

    n, s, A, B, C = built()
    s[C].specialize(n % 4 == 0)
    te.create_schedule(C.op).replay(s.journal)  # these very variables
    for journal in (s.journal, Journal.from_json(s.journal.to_json())):
        with pytest.raises(ArgumentError, match="the journal refers to n, and several variables here have that name"):
            built()[1].replay(journal)


def test_a_map_that_raises_is_named():
    def mine(y, x):
        return [y, {}[0]]

    s, _, B, _ = program()
    with pytest.raises(ScheduleError, match="the map mine raised KeyError: 0") as caught:
        s[B].transform_layout(mine)
    assert isinstance(caught.value.__cause__, KeyError) and not s.journal
    with pytest.raises(ScheduleError, match="on stage B: the map fails: `/` on integers"):
        s[B].transform_layout(lambda y, x: [y, x / 2])
    for wrong in (lambda y, x: [y // 0, x], lambda y, x: [y, x % 0], lambda y, x: [y // -2, x]):
        with pytest.raises(ScheduleError, match=r"divides by (0|-2): tiles have at least one element"):
            s[B].transform_layout(wrong)


@pytest.mark.parametrize("apply", [
    lambda s, B: s[B].transform_layout(lambda i: [i % 4, i // 4]),                       # i is a parameter
    lambda s, B: s[B].bind(s[B].leaf_iter_vars[0], te.thread_axis("threadIdx.x", name="i"))], ids=["layout", "thread"])
def test_names_of_refused_directives_are_forgotten(apply):
    """The loop that a refused prefetch called `i` was kept as an object of the process, for the `i` of the next directive."""
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i % 4] * 2.0, name="C")
    s = te.create_schedule(C.op)
    (i,) = s[C].op.axis
    with pytest.raises(TedslError):
        s[C].prefetch(A, i, i)
    apply(s, B)
    s[C].unroll(i)
    assert s.journal.objects == {} and "s[C].unroll(s[C].op.axis[0])" in str(s.journal)
    again = te.create_schedule(C.op)
    again.replay(Journal.from_json(s.journal.to_json()))
    assert str(again) == str(s)

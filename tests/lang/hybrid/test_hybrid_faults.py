"""Faults of a script that are found when it becomes loops, or when it runs: they show the line that is wrong."""
# ruff: noqa: F821 - the names of hybrid script are known inside of the functions only
# mypy: ignore-errors

import inspect

import numpy as np
import pytest

import tedsl
from tedsl import te
from tedsl.errors import ArgumentError, LoweringError

n = te.var("n")
a, at = te.placeholder((8,), name="a"), te.placeholder((8,), "int32", name="at")


@te.hybrid.script
def one_line(a):
    c = output_tensor((8,), "float32")
    for i in range(9): c[i] = 1.0  # noqa: E701 WRONG
    return c


@te.hybrid.script
def a_name(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = 0.0
        t = a[i + 1]  # WRONG
        if t > 0.0:
            c[i] = t
    return c


@te.hybrid.script
def a_condition(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = 0.0
    for i in range(8):
        for j in range(2):
            if a[i + j] > 0.0:  # WRONG
                c[i] = 2.0
    return c


@te.hybrid.script
def before(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = a[i - 1]  # WRONG
    return c


@te.hybrid.script
def written_out(a):
    c = output_tensor((8,), "float32")
    t = allocate((8,), "float32", "local")
    for i in range(8):
        for k in const_range(3):
            t[i + k] = a[i]  # WRONG
        c[i] = t[i]
    return c


@te.hybrid.script
def a_sum(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        s = 0.0
        for j in range(3):
            s += a[i + j]  # WRONG
        c[i] = s
    return c


@te.hybrid.script
def by_size(a, n):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = 0.0
    for i in range(n):
        c[i + 1] = a[i]  # WRONG
    return c


@te.hybrid.script
def by_data(a, at):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = 0.0
    for i in range(8):
        c[at[i]] = a[i]  # WRONG
    return c


@te.hybrid.script
def racing(a):
    c = output_tensor((1,), "float32")
    c[0] = 0.0
    for i in parallel(8):  # WRONG
        c[0] += a[i]
    return c


@te.hybrid.script
def racing_twice(a):
    c = output_tensor((8,), "float32")
    for i in parallel(8):
        c[i] = a[i]
    for i in parallel(7):
        c[i] = c[i + 1]
    return c


def wrong_line(script):
    """How errors show the line of `script` that says so."""
    lines, first = inspect.getsourcelines(script.__wrapped__)
    number = next(at for at, line in enumerate(lines) if "WRONG" in line)
    return f"hybrid script {script.__name__} ({__file__}:{first + number}, `{lines[number].strip()}`)"


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("script, hint", [
    (one_line, "make the loop shorter or the array larger, or write it under a condition: if"),
    (before, "make the loop shorter or the array larger, or write it under a condition: if"),
    (a_name, "make the loop shorter or the array larger"), (a_condition, "make the loop shorter"),
    (written_out, "make the loop shorter"), (a_sum, "make the loop shorter")], ids=lambda p: getattr(p, "__name__", ""))
def test_an_access_outside_shows_its_line(script, hint, split):
    made = script(a)
    s = te.create_schedule(made.op)
    if split:
        s[made].split(made.op.axis[-1], 3)
    with pytest.raises(LoweringError) as error:
        tedsl.lower(s, [a, made])
    text = str(error.value)
    assert text.startswith(f"{wrong_line(script)}: the ") and " is outside: " in text
    assert f"hint: {hint}" in text and "if_scope" not in text
    assert text.endswith({one_line: " < 8:", before: " >= 0:"}.get(script, ":"))


@pytest.mark.parametrize("make, given", [(lambda: (by_size(a, n), n), 8),
                                         (lambda: (by_data(a, at), at), np.arange(1, 9, dtype="int32"))], ids=["size", "data"])
def test_an_access_that_the_call_decides_shows_its_line(make, given):
    made, other = make()
    s = te.create_schedule(made.op)
    run = tedsl.build(s, [a, other, made])
    x, result = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    run(x, given - 1, result)  # everything is inside
    np.testing.assert_array_equal(result, [0, *x[:7]] if made.op.name == "by_size" else x)
    with pytest.raises(ArgumentError) as error:
        run(x, given, result)
    script = by_size if made.op.name == "by_size" else by_data
    assert f"{wrong_line(script)}: the store to {made.op.name}[" in str(error.value) and "leaves its memory" in str(error.value)


def test_marks_of_lines_are_gone_when_they_are_checked():
    made = a_sum(te.placeholder((10,), name="a"))
    text = str(tedsl.lower(te.create_schedule(made.op), [*made.op.inputs, made], simple_mode=True))
    assert "script_line" not in text and "hybrid script" not in text


def test_a_race_of_a_written_parallel_loop_shows_the_loop(strict):
    made = racing(a)
    with pytest.raises(LoweringError, match=r"i = 0 writes racing\[0\], and i = 1 reads it\n") as error:
        tedsl.lower(te.create_schedule(made.op), [a, made])
    assert f"\n  from: {wrong_line(racing)}\n" in str(error.value)


def test_of_several_loops_of_a_name_the_script_is_shown(strict):
    made = racing_twice(a)
    with pytest.raises(LoweringError, match="the parallel loop i race") as error:
        tedsl.lower(te.create_schedule(made.op), [a, made])
    assert f"\n  from: hybrid script racing_twice ({made.op.source})\n" in str(error.value)

"""`python -m tedsl COMMAND`: what each prints, and what wrong arguments get."""

import subprocess
import sys

import pytest

import tedsl
from tedsl.cache.store import CODE, Store
from tedsl.shell.table import COMMANDS, main

PROGRAM = """
from tedsl import te
print("the file prints")
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
s = te.create_schedule(B.op)

def halves():
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], nparts=2)
    return s, [A, B]

def scaled():
    m = te.var("m")
    C = te.compute((4,), lambda i: te.const(1.0) * m, name="C")
    return te.create_schedule(C.op)

def needy(n):
    return halves()

if __name__ == "__main__":
    raise SystemExit("this is not run")
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_lower_prints_the_loops_of_the_only_schedule(program, capsys):
    status, out, err = run(capsys, "lower", program)
    assert status == 0
    assert out.startswith("def main(A: float32[n], B: float32[n]):")
    assert err == "the file prints\n"


def test_lower_calls_the_named_function(program, capsys):
    _, out, _ = run(capsys, "lower", f"{program}:halves")
    assert "for i.outer in range(2):" in out
    _, out, _ = run(capsys, "lower", "--tvm", f"{program}:halves")
    assert "for (i.outer: int32, 0, 2)" in out


def test_sizes_that_no_input_gives_become_arguments(program, capsys):
    _, out, _ = run(capsys, "lower", f"{program}:scaled")
    assert out.startswith("def main(m: int32, C: float32[4]):")


def test_trace_shows_the_directives(program, capsys):
    _, out, _ = run(capsys, "trace", f"{program}:halves")
    assert "i_outer, i_inner = s[B].split(s[B].op.axis[0], nparts=2)" in out


def test_trace_writes_a_page(program, tmp_path, capsys):
    page = tmp_path / "trace.html"
    status, out, _ = run(capsys, "trace", f"{program}:halves", "--html", page)
    assert status == 0 and out.endswith(f"written to {page}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("place, words", [
    (":nothing", "has no function or variable 'nothing'\n"
                 "  hint: write {file}:NAME, where NAME is one of s, halves, scaled, needy"),
    (":A", "gives a Tensor, not a schedule or loops"),
    ("x.py", "there is no file '{file}x.py'"),
    (":", "names nothing behind the colon"),
    (":needy", ":needy is called without arguments: missing a required argument: 'n'"),
])
def test_a_wrong_place_is_named(place, words, program, capsys):
    status, out, err = run(capsys, "lower", f"{program}{place}")
    assert status == 1 and out == ""
    assert words.format(file=program) in err


def test_a_module_is_told_what_it_can_do_itself(tmp_path, capsys):
    file = tmp_path / "built.py"
    file.write_text(PROGRAM + "import tedsl\nm = tedsl.build(s, [A, B])\n")
    status, _, err = run(capsys, "wheel", f"{file}:m", "-o", tmp_path / "m-1.0.whl")
    assert status == 1 and "gives a Module, not a schedule or loops" in err and "module.export_library" in err


def test_a_file_that_is_not_python_is_named(tmp_path, capsys):
    file = tmp_path / "notes.txt"
    file.write_text("not a program")
    status, out, err = run(capsys, "lower", file)
    assert (status, out) == (1, "") and err.startswith(f"ArgumentError: {file} is not a Python file: ")


def test_a_file_with_several_schedules_asks_for_a_name(tmp_path, capsys):
    file = tmp_path / "two.py"
    file.write_text(PROGRAM + "t = s.copy()\n")
    status, _, err = run(capsys, "lower", file)
    assert status == 1 and "several variables (s, t)" in err and f"{file}:NAME" in err


def test_a_trace_of_loops_says_what_prints_them(tmp_path, capsys):
    file = tmp_path / "loops.py"
    file.write_text(PROGRAM + "mod = tedsl.lower(s, [A, B])\n".replace("tedsl", "__import__('tedsl')"))
    status, _, err = run(capsys, "trace", f"{file}:mod")
    assert status == 1 and f"python -m tedsl lower {file}:mod" in err


def test_info_names_the_machine_and_its_variables(capsys, monkeypatch):
    monkeypatch.setenv("TEDSL_NUM_THREADS", "2")
    status, out, _ = run(capsys, "info")
    facts = dict(line.split(":", 1) for line in out.splitlines() if not line.startswith(" "))
    assert status == 0
    assert facts["tedsl"].strip() == tedsl.__version__
    assert facts["TEDSL_NUM_THREADS"].split()[0] == "2"
    assert {"Python", "numpy", "LLVM", "target", "features", "vectors", "threads", "cache", "TEDSL_CHECKED"} <= facts.keys()


def test_the_cache_is_shown_and_cleared(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TEDSL_CACHE_SIZE", "2M")
    assert run(capsys, "cache") == (0, "the cache is off: kernels live as long as their process\n", "")
    monkeypatch.setenv("TEDSL_CACHE_DIR", str(tmp_path / "kernels"))
    _, out, _ = run(capsys, "cache")
    assert out.splitlines()[1:] == ["entries:   0 modules, 0 schedules that lead to them", "size:      0 bytes of 2.0 MB",
                                    "hits:      0"]
    store = Store(str(tmp_path / "kernels"), 1 << 21)
    store.save("1" * 48, CODE, {"code": bytes(3000)})
    store.load("1" * 48, CODE)
    _, out, _ = run(capsys, "cache", "show")
    assert out.splitlines() == [f"folder:    {tmp_path / 'kernels'}", "entries:   1 modules, 0 schedules that lead to them",
                                "size:      3.0 kB of 2.0 MB", "hits:      1"]
    assert f"{tmp_path / 'kernels'}: 1 entries, 3.0 kB of 2.0 MB" in run(capsys, "info")[1].replace("\n" + " " * 20, " ")
    assert run(capsys, "cache", "clear") == (0, f"1 entry removed from {tmp_path / 'kernels'}\n", "")
    assert store.contents().size == store.contents().hits == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"python -m tedsl {name}" in capsys.readouterr().out


def test_version_and_a_command_that_does_not_exist(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out == f"tedsl {tedsl.__version__}\n"
    with pytest.raises(SystemExit) as stop:
        main(["compile"])
    assert stop.value.code == 2 and "choose from" in capsys.readouterr().err


def test_the_commands_are_listed_from_a_shell():
    shown = subprocess.run([sys.executable, "-m", "tedsl", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(f"    {name} " in shown for name in COMMANDS)

"""`python -m tedsl migrate`: programs of TVM's versions become programs of tedsl, which run."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("libcst", reason="rewriting programs needs the extra: pip install 'tedsl[migrate]'")

import tedsl
from tedsl.compat.migrate import migrate, migrate_file
from tedsl.compat.migrate.names import RENAMED, name_here, why_not_there
from tedsl.errors import ArgumentError, ArgumentTypeError
from tedsl.shell.table import main
from tests.compat.programs_of_tvm import PROGRAMS


def test_there_are_thirty():
    assert len(PROGRAMS) == 30


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs(name, tmp_path):
    before = PROGRAMS[name]
    after, notes = migrate(before)
    assert notes == () and after != before
    assert not re.search(r"^\s*(import|from) tvm", after, re.M)
    assert re.findall("#.*", after) == re.findall("#.*", before), "comments stay"
    file = tmp_path / "program.py"
    file.write_text(after)  # hybrid scripts read their source
    exec(compile(after, str(file), "exec"), {"__name__": "program"})
    assert migrate(after) == (after, ()), "a second time changes nothing"


def test_comments_and_layout_stay():
    before = 'import tvm  # TVM\n\n\nA = tvm.placeholder( (4,),\n                     name = "A" )   # the input\n'
    assert migrate(before)[0] == \
        'import tedsl as tvm  # TVM\n\n\nA = tvm.te.placeholder( (4,),\n                     name = "A" )   # the input\n'


@pytest.mark.parametrize("before, after", [
    ("import tvm as t\nt.var('x')", "import tedsl as t\nt.te.var('x')"),
    ("import tvm\nimport tvm.testing\n", "import tedsl as tvm\n"),
    ("import tvm.testing as tt", "import tedsl.testing as tt"),
    ("import os, tvm.te", "import os, tedsl as tvm"),
    ("from tvm import expr, te", "from tedsl import tir as expr, te"),
    ("from tvm.expr import Var as V", "from tedsl.tir import Var as V"),
    ("from tvm.hybrid import script", "from tedsl.te.hybrid import script"),
    ("from tvm import gpu", "from tedsl import cuda as gpu"),
    ("from tvm import var, build", "from tedsl.te import var, build"),
    ("import tvm\ntvm.module.enabled('llvm')", "import tedsl as tvm\ntvm.runtime.enabled('llvm')"),
    ("from tvm import module\nmodule.load_module", "from tedsl import runtime as module\nmodule.load_module"),
    ("from tvm.module import load", "from tedsl.runtime import load_module as load"),
    ("import tvm\nx = tvm.api.convert", "import tedsl as tvm\nx = tvm.runtime.convert"),
    ("import tvm\nf.time_evaluator('f', ctx=tvm.cpu())",
     "import tedsl as tvm\nf.time_evaluator('f', dev=tvm.cpu())"),
    ("import tvm\ntvm.make.For(i, 0, 8, tvm.stmt.For.Vectorized, 0, tvm.make.Evaluate(0))",
     "import tedsl as tvm\ntvm.compat.make.For(i, 0, 8, tvm.tir.ForKind.VECTORIZED, 0, tvm.tir.Evaluate(0))"),
    ("import tvm\ntvm.make.Call('float32', 'exp', [x], tvm.expr.Call.PureIntrinsic, None, 0)",
     "import tedsl as tvm\ntvm.compat.make.Call('float32', 'exp', [x], tvm.compat.make.Call.PureIntrinsic, None, 0)"),
    ("import tvm\nisinstance(x, (tvm.stmt.Block, tvm.stmt.For)) and tvm.make.Block(x, y)",
     "import tedsl as tvm\nisinstance(x, (tvm.compat.make.Block, tvm.tir.For)) and tvm.compat.make.Block(x, y)"),
    ("import tvm\nb = tvm.lower(s, [A], simple_mode=True).body\nm = tvm.lower(s, [A])",
     "import tedsl as tvm\nb = tvm.compat.build_module.lower(s, [A], simple_mode=True).body\nm = tvm.lower(s, [A])"),
    ("import tvm\ntvm.node.NodeBase, tvm.container.LoweredFunc, tvm.container.Array, tvm.TVMType",
     "import tedsl as tvm\ntvm.compat.node.NodeBase, tvm.compat.container.LoweredFunc, tvm.ir.container.Array, "
     "tvm.runtime.DataType"),
    ("from tvm._ffi.base import TVMError", "from tedsl._ffi.base import TVMError"),
    ("import numpy\nnumpy.tvm.var", "import numpy\nnumpy.tvm.var"),
    ("from .tvm import te", "from .tvm import te"),
    ("tvm = 3\nprint(tvm.var)", "tvm = 3\nprint(tvm.var)"), ("", "")])
def test_what_a_text_becomes(before, after):
    assert migrate(before)[0] == after


def test_what_is_left_to_hand():
    text = ("import tvm.testing\nimport tvm\nfrom tvm import relay, te\nfrom tvm import var, build\n"
            "mod = tvm.relay.build(net)\nte.computed(3)\nfrom tvm.script import relax as R\n")
    after, notes = migrate(text)
    lines = after.splitlines()
    assert {lines[note.line - 1]: note.name for note in notes} == {
        "mod = tvm.relay.build(net)": "tvm.relay.build", "te.computed(3)": "tvm.te.computed",
        "from tedsl.te import var, build": "from tvm import build", "from tedsl.script import relax as R": "tvm.script.relax"}
    said = {note.name: note.reason for note in notes}
    assert migrate("from tvm import lower\nlower(s, [A]).body")[1][0].reason == \
        "write: from tedsl.compat.build_module import lower"
    assert said["tvm.script.relax"].endswith("; to import it does no harm, to use it raises this error")
    assert "is not part of tedsl" in said["tvm.relay.build"] and "no harm" not in said["tvm.relay.build"]
    assert "compute" in said["tvm.te.computed"]
    assert said["from tvm import build"] == "write: from tedsl import build"


def test_names_are_there_in_a_program_that_imports_tedsl_alone(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("import tvm\nfrom tvm import module\n\nassert tvm.module.enabled('llvm') and module.enabled('llvm')\n"
                    "A = tvm.placeholder((8,), name='A')\nB = tvm.compute((8,), lambda i: A[i] + 1, name='B')\n"
                    "s = tvm.create_schedule(B.op)\nprint(tvm.ir_pass.Simplify(tvm.lower(s, [A, B], simple_mode=True)))\n"
                    "tvm.build_module.BuildConfig, tvm.codegen.build_module, tvm.expr.UIntImm\n")
    for command in (["-m", "tedsl", "migrate", str(file)], [str(file)]):  # each an interpreter that has imported nothing else
        ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_module_that_nothing_imports_is_left_to_hand(monkeypatch):
    monkeypatch.delattr(tedsl.target, "intrin", raising=False)  # other tests import it
    for _ in range(2):
        _, (note,) = migrate("import tvm\ntvm.target.intrin.register_intrin_lowering")
        assert str(note) == "line 2: tvm.target.intrin.register_intrin_lowering: it is there after: import tedsl.target.intrin"
    assert migrate("import tvm.target.intrin as rules\nrules.register_intrin_lowering")[1] == ()


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_what_has_another_name_is_there(name):
    assert why_not_there(name_here(name)) is None


def notebook(*cells):
    made = [{"cell_type": "markdown", "metadata": {}, "source": ["import tvm is *text*"]}]
    made += [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def test_a_notebook(tmp_path):
    file = tmp_path / "book.ipynb"
    cells = [["%matplotlib inline\n", "import tvm\n", "!pip list"], "", "%%bash\nimport tvm", ["x = tvm.var('é')\n", "x"]]
    file.write_text(notebook(*cells), encoding="utf-8")
    assert main(["migrate", str(file)]) == 0
    expected = [["%matplotlib inline\n", "import tedsl as tvm\n", "!pip list"], "", "%%bash\nimport tvm",
                ["x = tvm.te.var('é')\n", "x"]]
    assert file.read_text(encoding="utf-8") == notebook(*expected)
    assert not migrate_file(file).is_changed


def test_the_command(tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text("import tvm\nx = tvm.var('x')\n")
    assert main(["migrate", "--diff", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "-x = tvm.var('x')\n+import tedsl as tvm\n+x = tvm.te.var('x')" in shown and "tvm.var" in file.read_text()
    assert main(["migrate", str(file)]) == 0 and "rewritten" in capsys.readouterr().out
    assert file.read_text() == "import tedsl as tvm\nx = tvm.te.var('x')\n"
    file.write_text("import tvm\ntvm.relax.build\n")
    assert main(["migrate", str(file), str(file)]) == 1 and "line 2: tvm.relax.build: tedsl.relax" in capsys.readouterr().out


@pytest.mark.parametrize("first", ["syntax", "missing", "read_only"])
def test_a_file_that_cannot_be_rewritten_does_not_stop_the_others(first, tmp_path, capsys, monkeypatch):
    good, bad = tmp_path / "good.py", tmp_path / f"{first}.py"
    good.write_text("import tvm\n")
    words = {"syntax": "is no Python: line 1", "missing": "cannot be read", "read_only": "cannot be written"}[first]
    if first != "missing":
        bad.write_text("print 'x'" if first == "syntax" else "import tvm\n")
    write = pathlib.Path.write_text
    monkeypatch.setattr(pathlib.Path, "write_text", lambda path, *a, **k: write(tmp_path if path == bad else path, *a, **k))
    assert main(["migrate", str(bad), str(good)]) == 1
    shown = capsys.readouterr()
    assert good.read_text() == "import tedsl as tvm\n" and shown.out == f"{good}: rewritten\n"
    assert words in shown.err and str(bad) in shown.err


@pytest.mark.parametrize("name, text, words", [
    ("a.py", "print 'x'", "is no Python: line 1"), ("a.ipynb", "{}", "is no notebook"),
    ("a.ipynb", "import tvm", "is no notebook"),
    ("missing.py", None, "cannot be read")])
def test_what_cannot_be_rewritten(name, text, words, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ArgumentError, match=words):
        migrate_file(tmp_path / name)


def test_no_text():
    with pytest.raises(ArgumentTypeError, match="it takes the text of a program, not an int"):
        migrate(3)


def test_dtypes_had_names_at_the_root():
    assert migrate("import tvm\nx = tvm.var('b', dtype=tvm.float32)\n")[1] == ()

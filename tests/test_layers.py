"""The house as tests: the direction of imports, the sizes of files, the cost of importing, one home per concept."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = ROOT / "tedsl"
LAYERS = ["version", "errors", "absent", "plugins", "display", "ir", "target", "arith", "runtime", "lang", "autodiff",
          "schedule", "lower", "passes", "codegen", "driver", "tracing", "te", "tir", "nd", "transform", "testing", "error",
          "names", "tune", "graph", "contrib", "fuzz", "shell", "__main__", "__init__"]
NAMES = {"te", "tir", "nd", "transform", "testing", "error", "names"}  # the top floor: modules of names, side by side
FRONT, BACK = {"lang", "autodiff", "schedule", "lower"}, {"passes", "codegen"}
# Late imports that the design allows, all inside functions: operators on tensors, a schedule that shows its loops, and loops
# that are shown with the indices that are proved for them.
# Type checkers see in tedsl.ir the name `transform`, which programs look for there.
LATE = {("lang/tensor.py", "lang"), ("schedule/explain.py", "driver"), ("ir/script/__init__.py", "arith"),
        ("ir/__init__.py", "transform")}


def layer_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """The layers of tedsl that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module] if node.module != "tedsl" else [f"tedsl.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found |= {(name.split(".") + ["__init__"])[1] for name in names if name.split(".")[0] == "tedsl"}
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_lower_layers(path):
    mine = layer_of(path)
    if mine == "__init__":
        return
    late = {layer for name, layer in LATE if str(path.relative_to(PACKAGE)) == name}
    imported = {layer for layer in imports_of(path) if layer in LAYERS} - late - {mine}
    if mine in NAMES:
        imported -= NAMES
    above = sorted(layer for layer in imported if LAYERS.index(layer) > LAYERS.index(mine))
    assert not above, f"{path} ({mine}) imports from {above}: the arrow points the other way"
    across = imported & (BACK if mine in FRONT else FRONT if mine in BACK else set())
    assert not across, f"{path} ({mine}) imports from the other wing: {across}"


def test_every_package_stands_in_the_list_of_layers():
    homes = {layer_of(p) for p in PACKAGE.rglob("*.py")}
    assert homes <= set(LAYERS), f"new rooms {homes - set(LAYERS)} need a place in LAYERS"


@pytest.mark.parametrize("path", sorted((ROOT / "topi").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_topi_imports_only_public_names(path):
    assert imports_of(path) <= {"te", "tir", "target", "errors", "__init__", "nd"}


@pytest.mark.parametrize("path", sorted([*PACKAGE.rglob("*.py"), *(ROOT / "topi").rglob("*.py")]),
                         ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_readable(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 600, f"{path} has {len(lines)} lines: split it"
    assert all(len(line) <= 128 for line in lines)


@pytest.mark.parametrize("folder", sorted({p.parent for p in [*PACKAGE.rglob("*.py"), *(ROOT / "topi").rglob("*.py")]}),
                         ids=lambda p: str(p.relative_to(ROOT)))
def test_a_folder_can_be_overlooked(folder):
    assert len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) <= 20


def test_no_drawer_for_odds_and_ends():
    theirs = PACKAGE / "contrib" / "utils.py"  # what it is called in programs: tedsl.contrib.utils.tempdir
    names = {p.stem for p in PACKAGE.rglob("*.py") if p != theirs} | {p.name for p in PACKAGE.rglob("*") if p.is_dir()}
    assert not names & {"utils", "util", "common", "helpers", "helper", "misc"}


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_import_is_light():
    modules = run_python("import tedsl, sys; print(*sorted(m.split('.')[0] for m in sys.modules))").split()
    assert "sympy" not in modules
    assert "llvmlite" not in modules


def test_import_time():
    """At most 150 ms beyond numpy; the best of five, for the machine may be busy."""
    code = "import time, numpy; t = time.perf_counter(); import tedsl; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(5)) < 0.150
